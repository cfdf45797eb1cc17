import { createHash } from "node:crypto";
import type { Middleware } from "koa";
import { Html, htmlTag } from "../markup/html.js";
import { remoteFault } from "./local-access.js";
import { sharedAccessFault } from "./page-access.js";

/** The page shown when a service's address is opened in a browser. */
export interface FrontPage {
  /** The command that started it. */
  name: string;
  /** What the service is, in one sentence. */
  what: string;
  /** Its current state, in one sentence. */
  state: string;
  endpoints: readonly (readonly [path: string, meaning: string])[];
  /** An example command for the address in the browser. */
  example: (url: string) => string;
}

const html = htmlTag((text) => text.replace(/[^\P{C}\n]/gu, "�"));

const style = `:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
dt,pre{font-family:ui-monospace,monospace}dd{margin:0 0 .6rem}
pre{padding:.8rem;background:#f2f2f2;color:#1a1a1a;white-space:pre-wrap}
body{background:#fff;color:#1a1a1a}
@media(prefers-color-scheme:dark){body{background:#161616;color:#e8e8e8}pre{background:#262626;color:#e8e8e8}}`;

const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * `GET /` for a browser on this machine: a small static page without scripts. It is served before the rules that reject
 * web pages, since it starts nothing and reveals no results. Other sites cannot read it, since no CORS header allows it.
 */
export function frontPage(describe: () => FrontPage): Middleware {
  return (ctx, next) => {
    // Navigation sends no Origin header; a fetch from a page does.
    const opened = ctx.headers.origin === undefined && (ctx.method === "GET" || ctx.method === "HEAD");
    const asked = ctx.path === "/" && opened;
    if (!asked || remoteFault(ctx.req) !== null || sharedAccessFault(ctx.req, []) !== null) {
      return next();
    }
    ctx.type = "html";
    ctx.set("Content-Security-Policy", policy);
    ctx.set("Referrer-Policy", "no-referrer");
    ctx.set("Cross-Origin-Resource-Policy", "same-origin");
    ctx.body = page(describe(), `http://${ctx.host}`).markup;
    return undefined;
  };
}

function page({ name, what, state, endpoints, example }: FrontPage, url: string): Html {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${name}</title>
<style>${new Html(style)}</style></head><body><main><h1>${name}</h1>
<p>${what}</p><p>${state}</p>
<h2>Endpoints</h2>
<dl>${endpoints.map(([path, meaning]) => html`<dt>${path}</dt><dd>${meaning}</dd>`)}</dl>
<h2>Example request</h2><pre><code>${example(url)}</code></pre></main></body></html>
`;
}
