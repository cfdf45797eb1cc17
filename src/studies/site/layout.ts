import { createHash } from "node:crypto";
import { hiddenCharacters, studyLimits } from "../../contracts/studies/index.js";
import { copyScriptPath } from "./copy-script.js";
import { type Html, html } from "./html.js";
import { revealed } from "./reveal.js";
import { style } from "./style.js";
import type { Visit } from "./visit.js";

export const stylePath = `/assets/${createHash("sha256").update(style).digest("hex").slice(0, 16)}.css`;

/**
 * Answers with a complete page.
 * @param extra `code` if the page may show code: it then loads our one script, which its policy allows by URL
 */
export function page(
  visit: Visit,
  title: string,
  body: Html,
  extra: { status?: number; head?: Html; code?: boolean } = {},
): void {
  const { ctx, session } = visit;
  const link = (path: string, text: string | Html) =>
    html`<a href="${path}"${ctx.path === path ? html` aria-current="page"` : null}>${text}</a>`;
  const here = ctx.path === "/sign-in" ? "" : `?return=${encodeURIComponent(ctx.path)}`;
  const visibleTitle = title.replace(hiddenCharacters, "");
  const document = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${visibleTitle} · tapline studies</title><link rel="icon" href="/favicon.svg" type="image/svg+xml">
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="${stylePath}">${extra.head}${
    extra.code ? html`<script src="${copyScriptPath}" defer></script>` : null
  }</head>
<body><a class="skip" href="#main">Skip to content</a>
<header class="top"><div><a class="brand" href="/"><span>tap</span>line studies</a>
<nav aria-label="Main">${link("/", "Studies")}${link("/models", "Models")}${
    session === null
      ? link(`/sign-in${here}`, "Sign in")
      : [
          link("/drafts", "My drafts"),
          link("/notifications", html`Notifications${unreadBadge(session.unread)}`),
          link("/agents", "Agent access"),
          session.isModerator ? link("/moderation", "Moderation") : null,
          link("/account", revealed(session.account.name)),
        ]
  }</nav></div></header>
<main id="main">${body}</main>
<footer><p>Research text on this site was written by its authors and their models. Its claims have not been verified.
<a href="/docs">API</a> · <a href="/api/v1/openapi.json">OpenAPI</a></p></footer></body></html>`;
  if (extra.code) {
    const policy = ctx.response.get("Content-Security-Policy");
    ctx.set("Content-Security-Policy", `${policy}; script-src ${visit.service.origin}${copyScriptPath}`);
  }
  ctx.status = extra.status ?? 200;
  ctx.set("Content-Type", "text/html; charset=utf-8");
  ctx.body = document.markup;
}

function unreadBadge(unread: number): Html | null {
  if (unread === 0) return null;
  return html` <span class="count">${unread > 99 ? "99+" : unread}<span class="visually-hidden"> unread</span></span>`;
}

/** A person: name (not unique) and handle (unique). */
export function signature(name: string, handle: string | null): Html {
  if (handle === null) return html`<span class="gone">${revealed(name)}</span>`;
  return html`<bdi>${revealed(name)}</bdi> <span class="handle">@${handle}</span>`;
}

/** The same as a link to the person's studies; plain text for deleted accounts. */
export function authorLink({ author, handle }: { author: string; handle: string | null }): Html {
  return handle === null
    ? signature(author, handle)
    : html`<a class="author" href="/authors/${handle}">${signature(author, handle)}</a>`;
}

/** A field for a reason. The id must be unique on the page. */
export function reasonField(id: string, label: string): Html {
  return html`<div class="field"><label for="reason-${id}">${label}</label>
<textarea id="reason-${id}" name="reason" required maxlength="${studyLimits.reason}"></textarea></div>`;
}

/** The hidden CSRF field. */
export function csrfField(visit: Visit): Html {
  return html`<input type="hidden" name="csrf" value="${visit.csrf}">`;
}

export function when(ms: number): Html {
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
