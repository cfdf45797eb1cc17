import { version } from "../contracts/version.js";
import { Html, html } from "./markup.js";
import { style } from "./style.js";

/** A page in the design of reports. */
export interface Sheet {
  title: string;
  /** Default: the title. */
  heading?: Html | string;
  /** The kind of page, in its header. */
  badge: string;
  /** Rules in addition to those of reports. */
  style: string;
  content: Html;
}

/** One self-contained HTML page without scripts or network requests. */
export function sheet({ title, heading = title, badge, style: own, content }: Sheet): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="tapline ${version}">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${new Html(style + own)}</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header class="top"><div><span class="brand">tap<span>line</span></span> <span class="badge">${badge}</span></div></header>
<main id="content" tabindex="-1">
<h1>${heading}</h1>
${content}</main>
<footer><p>Made by tapline ${version}. This file is self-contained and makes no network requests.</p></footer>
</body>
</html>
`.markup;
}
