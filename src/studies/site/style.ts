import { drawingStyle } from "../../report/index.js";

/** The site's stylesheet: system fonts, two colour schemes, one column that narrows to a phone. */
export const style = `
:root { color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #1d1f23; --soft: #5a6068; --line: #dedbd3; --accent: #0b5d66;
  --accent-ink: #ffffff; --warn: #8a3b00; --warn-paper: #fff3e4; --good: #dff2e3; --bad: #fbe3e1; --code: #f2f0ea; }
@media screen and (prefers-color-scheme: dark) { :root {
  --paper: #15171a; --card: #1c1f23; --ink: #e8e6e1; --soft: #a3a9b2; --line: #33383f; --accent: #6cc7d1;
  --accent-ink: #0c1719; --warn: #ffb877; --warn-paper: #33240f; --good: #16341f; --bad: #411f1c; --code: #22262b; } }
* { box-sizing: border-box; }
html { font: 17px/1.6 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif; background: var(--paper); color: var(--ink); }
body { margin: 0; overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: .15em; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .5rem 1rem; z-index: 2; }
header.top { border-bottom: 1px solid var(--line); background: var(--card); }
header.top > div, main, footer { max-width: 52rem; margin: 0 auto; padding: 0 1.25rem; }
header.top > div { display: flex; flex-wrap: wrap; gap: .3rem 1.25rem; align-items: center; padding-top: .7rem; padding-bottom: .7rem; }
.brand { font-weight: 700; font-size: 1.15rem; text-decoration: none; color: var(--ink); letter-spacing: -.01em; }
.brand span { color: var(--accent); }
nav, .meta, .badge, button, .button, label, th, .tabs, footer, .hint, .notice, .toc { font-family: system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
nav { font-size: .9rem; display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: center; margin-left: auto; }
nav a, nav .who { color: var(--soft); text-decoration: none; } nav a:hover, nav a[aria-current] { color: var(--ink); text-decoration: underline; }
main { padding-top: 1.75rem; padding-bottom: 3rem; min-height: 60vh; }
footer { color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line); padding-top: 1rem; padding-bottom: 2rem; }
h1 { font-size: 1.85rem; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 .6rem; text-wrap: balance; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; line-height: 1.3; } h3 { font-size: 1.05rem; margin: 0 0 .3rem; }
p { margin: .4rem 0 .9rem; } .lead { color: var(--soft); }
.meta { font-size: .85rem; color: var(--soft); display: flex; flex-wrap: wrap; gap: .1rem .9rem; margin: .2rem 0; padding: 0; list-style: none; }
.text { white-space: pre-wrap; margin: .3rem 0 .9rem; }
.search { display: flex; gap: .5rem; margin: 0 0 1.1rem; } .search input { flex: 1; min-width: 0; }
input[type=text], input[type=search], input[type=number], textarea, select { font: inherit; font-size: 1rem; padding: .45rem .65rem; border: 1px solid var(--soft); border-radius: 6px; background: var(--card); color: var(--ink); max-width: 100%; }
textarea { width: 100%; min-height: 6rem; }
button, .button { font-size: .95rem; font-weight: 600; padding: .5rem .95rem; border-radius: 6px; border: 1px solid var(--accent); background: var(--accent); color: var(--accent-ink); cursor: pointer; text-decoration: none; display: inline-block; line-height: 1.3; }
button.quiet, .button.quiet { background: transparent; color: var(--accent); } button.danger, .button.danger { background: transparent; color: var(--warn); border-color: var(--warn); }
button.plain { background: none; border: 0; padding: 0; color: var(--soft); font: inherit; text-decoration: underline; text-underline-offset: .15em; } .count { font: 600 .8em system-ui, sans-serif; color: var(--soft); font-variant-numeric: tabular-nums; } nav .count { background: var(--accent); color: var(--accent-ink); border-radius: 99px; padding: .05rem .4rem; }
form.inline { display: inline; } fieldset { border: 1px solid var(--line); border-radius: 8px; margin: 0 0 1rem; padding: .6rem 1rem .9rem; } legend { font-weight: 600; padding: 0 .4rem; }
label { font-size: .95rem; } .field { margin: .6rem 0; } .field > label { display: block; font-weight: 600; margin-bottom: .15rem; } .field > .choice { font-weight: 400; } .hint { color: var(--soft); font-size: .85rem; }
.tabs { display: flex; gap: 1.2rem; border-bottom: 1px solid var(--line); margin: 0 0 .4rem; padding: 0; list-style: none; font-size: .95rem; }
.tabs a { display: block; padding: .4rem 0; color: var(--soft); text-decoration: none; border-bottom: 3px solid transparent; } .tabs a[aria-current] { color: var(--ink); border-color: var(--accent); font-weight: 600; }
.feed { list-style: none; margin: 0; padding: 0; } .feed > li { padding: 1.1rem 0; border-bottom: 1px solid var(--line); }
.feed h2, .feed h3 { font-size: 1.2rem; margin: 0 0 .15rem; } .feed h2 a { color: var(--ink); text-decoration: none; } .feed h2 a:hover { text-decoration: underline; }
.feed p { margin: .25rem 0; }
.badge { font-size: .72rem; font-weight: 600; text-transform: uppercase; letter-spacing: .05em; border: 1px solid var(--line); border-radius: 99px; padding: .1rem .55rem; color: var(--soft); background: var(--card); }
.badge.new { border-color: var(--accent); background: var(--accent); color: var(--accent-ink); } .notifications h2 { font-size: 1.05rem; font-weight: 500; } .notifications .unread h2 { font-weight: 700; }
.badge.result { border-color: var(--accent); color: var(--accent); } .badge.outcome-held { border-color: var(--accent); color: var(--accent); } .badge.outcome-failed, .badge.error, .badge.revoked, .badge.expired { border-color: var(--warn); color: var(--warn); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.2rem; margin: 1rem 0; }
.notice { background: var(--warn-paper); border-left: 4px solid var(--warn); padding: .7rem 1rem; margin: 1rem 0; border-radius: 4px; font-size: .95rem; } .notice.good { background: var(--good); border-color: var(--accent); }
.notice :last-child { margin-bottom: 0; } .notice ul { margin: .3rem 0; padding-left: 1.2rem; }
.tree, .tree ul { list-style: none; margin: 0; padding: 0; } .tree-level, .tree-deep { border-left: 2px solid var(--line); padding-left: 1rem; margin-left: .3rem; }
.handle { color: var(--soft); font-family: system-ui, sans-serif; font-size: .9em; } .gone { color: var(--soft); font-style: italic; }
.actions { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; align-items: baseline; } .actions > * { margin: .2rem 0; } .actions details[open] { flex-basis: 100%; }
.tree .tree-deep { border-left-style: dotted; padding-left: .2rem; margin-left: 0; } .entry { margin: .9rem 0; }
details { margin: .35rem 0; } summary { cursor: pointer; font-family: system-ui, sans-serif; font-size: .9rem; color: var(--soft); font-weight: 600; }
pre, code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .85em; } pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; overflow: auto; white-space: pre-wrap; max-height: 36rem; line-height: 1.45; }
pre.code { max-height: none; tab-size: 4; margin: .3rem 0 .9rem; } .code-label { margin: .3rem 0 0; } .code-label + pre { margin-top: .1rem; }
.entry .text { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem; }
.secret { font-size: 1.05rem; user-select: all; max-height: none; }
.hidden-char { background: var(--warn); color: var(--paper); border-radius: 3px; padding: 0 .25em; font: 600 .75em system-ui, sans-serif; unicode-bidi: isolate; direction: ltr; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; } th { text-align: left; font-size: .8rem; color: var(--soft); } th, td { overflow-wrap: break-word; padding: .45rem .7rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top; } .scroll { overflow-x: auto; } td.whole { white-space: nowrap; } td.detail { min-width: 12rem; overflow-wrap: anywhere; }
.measured { font-family: system-ui, sans-serif; } .measured.wide { min-width: 46rem; } .measured th[scope=row] { color: var(--ink); font-size: .88rem; min-width: 7rem; } .measured .hint { font-weight: 400; } .measured .whole { white-space: nowrap; }
blockquote { border-left: 3px solid var(--line); padding-left: .8rem; margin-left: 0; color: var(--soft); }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .6rem 0; align-items: baseline; } dl.facts dt { color: var(--soft); font-size: .9rem; font-family: system-ui, sans-serif; } dl.facts dd { margin: 0; }
.comments { list-style: none; padding: 0; margin: 0; } .comments > li { padding: .7rem 0 .3rem; border-top: 1px solid var(--line); }
.depth-1 { margin-left: 1.2rem; } .depth-2 { margin-left: 2.4rem; } .depth-3 { margin-left: 3.6rem; } .depth-4 { margin-left: 4.8rem; } .depth-5 { margin-left: 6rem; }
ins { background: var(--good); text-decoration: none; } del { background: var(--bad); } ins, del { display: block; white-space: pre-wrap; padding: .2rem .5rem; border-radius: 4px; max-height: 16rem; overflow: auto; }
.pages { display: flex; justify-content: space-between; margin: 1.2rem 0; }
.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.prose { margin: .3rem 0 .9rem; } .prose > :first-child { margin-top: 0; } .prose > :last-child { margin-bottom: 0; }
.prose p, .prose li, .prose h3, .prose h4, .prose h5, .prose h6 { white-space: pre-wrap; } .prose li > p { margin: .2rem 0; } .prose ul, .prose ol { margin: .4rem 0 .9rem; padding-left: 1.6rem; } .prose li { margin: .15rem 0; }
.prose h3 { font-size: 1.12rem; margin: 1.4rem 0 .3rem; } .prose h4, .prose h5, .prose h6 { font-size: 1rem; margin: 1.1rem 0 .2rem; } .prose hr { border: 0; border-top: 1px solid var(--line); margin: 1.2rem 0; }
.prose code { background: var(--code); border-radius: 4px; padding: .05em .3em; } .prose table { width: auto; min-width: 50%; font-family: system-ui, sans-serif; } .prose .right { text-align: right; } .prose .center { text-align: center; } del.struck { display: inline; background: none; text-decoration: line-through; padding: 0; }
.formula { overflow-x: auto; overflow-y: hidden; margin: .6rem 0; padding: .2rem 0; } math { font-size: 1.08em; } .tex-line { display: inline-flex; max-width: 100%; overflow-x: auto; overflow-y: hidden; vertical-align: baseline; } .tex-line > math { flex: none; } .entry .prose { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem; }
nav.toc { margin: .8rem 0 1rem; font-size: .88rem; } .toc ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
.long > .toc > ul { display: block; columns: 15rem; column-gap: 2rem; } .long > .toc ul ul { display: block; margin: 0 0 .3rem; padding-left: .9rem; font-size: .95em; } .long > .toc li { break-inside: avoid; margin: .1rem 0; } .long > .toc li li { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
@media screen and (min-width: 83rem) { .study.long { display: grid; grid-template-columns: 13rem minmax(0, 1fr); column-gap: 2rem; margin-left: -15rem; align-items: start; } .study.long > * { grid-column: 2; } .study.long > .toc { grid-column: 1; grid-row: 2 / span 2; position: sticky; top: 1rem; max-height: calc(100vh - 2rem); overflow-y: auto; } .study.long > .toc > ul { columns: auto; } .study.long > .abstract { grid-row: 2; } .study.long > .body { grid-row: 3; } }
.abstract h2, .abstract h3 { margin-top: 0; } .abstract .short { display: grid; grid-template-columns: 4rem 1fr; gap: 0 1rem; align-items: baseline; } .abstract h3 { font: 600 .85rem system-ui, sans-serif; color: var(--soft); } .abstract .prose { margin: 0 0 .5rem; } .headline { margin-top: .6rem; }
dl.facets { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: .6rem 0; font: .88rem system-ui, sans-serif; align-items: baseline; } .facets dt { color: var(--soft); } .facets dd { margin: 0; display: flex; flex-wrap: wrap; gap: .2rem .9rem; } .facets a { text-decoration: none; } .facets a:hover { text-decoration: underline; } .facets a[aria-current] { font-weight: 700; text-decoration: underline; }
.quote { font: .85rem system-ui, sans-serif; color: var(--soft); } .entry h3 .quote { font-weight: 400; margin-left: .3rem; } ul.plain { list-style: none; margin: 0; padding: 0; } a.author { color: inherit; } a.author:not(:hover) { text-decoration: none; }
.search { flex-wrap: wrap; } details.filters { flex-basis: 100%; } .filter-fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(12rem, 45%), 1fr)); gap: .2rem 1rem; align-items: end; } .filter-fields input, .filter-fields select { width: 100%; }
.snippet { color: var(--soft); font-size: .92rem; border-left: 3px solid var(--line); padding-left: .7rem; } mark { background: var(--warn-paper); color: inherit; border-radius: 2px; }
.copying { position: relative; } .copying pre { padding-right: 5rem; } .copy { position: absolute; right: .45rem; top: .45rem; font-size: .75rem; padding: .15rem .5rem; background: var(--card); }
.permanent { color: var(--soft); text-decoration: none; font-size: .85em; padding: 0 .3em; } .permanent:hover, .permanent:focus { color: var(--accent); }
${drawingStyle}.result figure { margin: 1.2rem 0; padding: 0; } figcaption { font-size: .9rem; color: var(--soft); margin-bottom: .5rem; font-family: system-ui, sans-serif; } figcaption strong { color: var(--ink); font-size: 1rem; display: block; } .drawing.narrow { display: none; } .result table { font-family: system-ui, sans-serif; }
@media (max-width: 47rem) { .drawing.wide { display: none; } .drawing.narrow { display: flex; } }
@media (max-width: 36rem) { html { font-size: 16px; } h1 { font-size: 1.5rem; } nav { margin-left: 0; } .tree-level { padding-left: .6rem; } dl.facts, dl.facets { grid-template-columns: 1fr; } dl.facts dd { margin-bottom: .4rem; } .abstract .short { display: block; } .headline { margin-left: -1rem; margin-right: -1rem; } .headline .hint { margin-left: 1rem; }
  .depth-1, .depth-2, .depth-3, .depth-4, .depth-5 { margin-left: .8rem; } }
@media print { :root { color-scheme: light; } .copy { display: none; } .drawing.wide { display: flex; } .drawing.narrow { display: none; } figure { break-inside: avoid; } header.top, footer, form, .tabs, .toc, .quote, .entry .permanent { display: none; } pre, ins, del { max-height: none; } }
`;

/** The site's icon: a tap over a line of text. */
export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><style>path{stroke:#0b5d66}@media (prefers-color-scheme:dark){path{stroke:#6cc7d1}}</style><path d="M4 24h24M16 24V10M8 10h16" fill="none" stroke-width="4" stroke-linecap="round"/></svg>`;
