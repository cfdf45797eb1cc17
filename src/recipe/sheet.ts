import { type Html, htmlTag } from "../markup/html.js";

export const html = htmlTag((text) => text);

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid #8886; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; }
.failed { font-weight: 700; }
dt { font-weight: 600; margin-top: 0.6rem; }
dd { margin: 0; }
pre { overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.85rem; }
.token { white-space: pre-wrap; background: rgb(230 120 0 / var(--score)); }
.token sub { font-size: 0.65rem; font-variant-numeric: tabular-nums; }`;

/** A page of a reproduction, without scripts or network requests. */
export function sheet(title: string, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<h1>${title}</h1>
${content}</body>
</html>
`.markup;
}
