/** The page's stylesheet: light and dark (system or chosen), and print. */
const light = `--paper: #fbfaf7; --card: #ffffff; --ink: #1d1f23; --soft: #5a6068; --line: #dedbd3; --accent: #0b5d66;
  --warn: #8a3b00; --warn-paper: #fff3e4; --good: #dff2e3; --bad: #fbe3e1; --code: #f2f0ea;`;
const dark = `--paper: #15171a; --card: #1c1f23; --ink: #e8e6e1; --soft: #a3a9b2; --line: #33383f; --accent: #6cc7d1;
  --warn: #ffb877; --warn-paper: #33240f; --good: #16341f; --bad: #411f1c; --code: #22262b;`;

/** The colours for the system's theme or the chosen one. */
export const palette = `
:root { color-scheme: light; ${light} }
@media screen and (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { color-scheme: dark; ${dark} } }
@media screen { :root[data-theme="dark"] { color-scheme: dark; ${dark} } }
`;

/** Rules that reports and the workbench's page share. */
export const base = `* { box-sizing: border-box; }
body { margin: 0; overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
main:focus { outline: none; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .5rem 1rem; z-index: 2; }
.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
a { color: var(--accent); }
.card, .turn, figure, .passage { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.notice { background: var(--warn-paper); border-left: 4px solid var(--warn); border-radius: 4px; } .notice strong { color: var(--warn); }
.chart { display: flex; flex-wrap: wrap; border-radius: 4px; } .chart svg text { pointer-events: none; } .chart svg { max-width: 100%; height: auto; display: block; overflow: visible; }
.chart > .legend { flex: 0 0 100%; } .detail { white-space: pre-wrap; }
summary { cursor: pointer; color: var(--soft); font-weight: 600; }
.scroll { overflow: auto; max-height: 32rem; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; } th { text-align: left; color: var(--soft); } tbody th { color: var(--ink); font-weight: 500; }
th, td { border-bottom: 1px solid var(--line); vertical-align: top; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre, code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; } pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; overflow: auto; white-space: pre-wrap; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; }
.bar { display: inline-block; width: 4rem; border: 1px solid var(--line); border-radius: 2px; background: linear-gradient(to right, var(--accent) calc(var(--share) * 100%), transparent 0); }
`;

export const style = `${palette}${base}html { font: 17px/1.6 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif; background: var(--paper); color: var(--ink); }
header.top { border-bottom: 1px solid var(--line); background: var(--card); }
header.top > div, main, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
header.top > div { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; padding-top: .6rem; padding-bottom: .6rem; }
.brand { font-weight: 700; font-size: 1.15rem; letter-spacing: -.01em; } .brand span { color: var(--accent); }
.badge, button, th, .meta, .soft, .label, summary, footer, .detail, .number, figcaption p, .passage > p, .facts dt { font-family: system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
.badge { font-size: .75rem; font-weight: 600; text-transform: uppercase; letter-spacing: .05em; border: 1px solid var(--line); border-radius: 99px; padding: .1rem .6rem; color: var(--soft); }
.tools, .scripted .unscripted { display: none; } .scripted .tools { display: flex; flex-wrap: wrap; gap: .4rem; } header .tools { margin-left: auto; }
button { font-size: .82rem; font-weight: 600; padding: .3rem .7rem; border-radius: 6px; border: 1px solid var(--line); background: var(--card); color: var(--accent); cursor: pointer; line-height: 1.3; }
button:hover { border-color: var(--accent); } .views { margin-bottom: .6rem; } .views [aria-pressed="true"] { background: var(--accent); color: var(--card); }
main { padding-top: 1.75rem; padding-bottom: 2rem; }
h1 { font-size: 1.85rem; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 .5rem; font-weight: 500; } h1 bdi { font-weight: 700; }
h2 { font-size: 1.25rem; margin: 0 0 .2rem; line-height: 1.3; } h3 { font-size: 1rem; margin: 0; }
p { margin: .4rem 0 .8rem; } .lead { font-size: 1.08rem; margin: 1.2rem 0; } .soft, figcaption p, .passage > p { color: var(--soft); font-size: .92rem; }
.meta { font-size: .85rem; color: var(--soft); display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: .2rem 0; padding: 0; list-style: none; }
.notice { padding: .7rem 1rem; margin: 1.2rem 0; font-size: .93rem; } .notice p { margin: .3rem 0; }
figure, .passage, .card { padding: 1rem 1.2rem; margin: 1.2rem 0; position: relative; }
.chart { margin: .6rem 0 0; gap: .6rem; min-height: 2rem; } .save { position: absolute; top: 1rem; right: 1.2rem; } figcaption { padding-right: 11rem; }
.detail { font-size: .85rem; color: var(--soft); margin: .2rem 0; min-height: 1.4em; }
.scripted .chart:empty { min-height: 12rem; }
details { margin: .35rem 0; } summary { font-size: .88rem; }
details.prompt > summary { color: var(--ink); }
th { font-size: .8rem; } td .soft, td.soft { font-size: .78rem; } th, td { padding: .35rem .8rem .35rem 0; }
td.number { font-size: .85rem; } .text { white-space: pre-wrap; unicode-bidi: isolate; } .sample { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .92em; }
.label { font-size: .78rem; text-transform: uppercase; letter-spacing: .05em; color: var(--soft); margin: .6rem 0 0; } .label + p { margin-top: 0; }
ins { background: var(--good); text-decoration: underline; text-decoration-thickness: 2px; } del { background: var(--bad); text-decoration: line-through; }
tr.wrong td { background: var(--bad); }
.features { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .8rem 1.4rem; } .feature p { margin: 0 0 .2rem; font-size: .8rem; }
.feature ol { list-style: none; margin: 0; padding: 0; } .feature li { display: flex; justify-content: space-between; gap: .6rem; font-size: .86rem; line-height: 1.45; margin: .15rem 0; }
.shaded { background: color-mix(in srgb, var(--accent) calc(var(--share) * 55%), transparent); border-radius: 2px; }
.feature .number span + span { display: inline-block; min-width: 3.2rem; } .bar { height: .55rem; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .6rem 0; font-size: .92rem; } .facts dt { font-size: .85rem; }
pre, code { font-size: .88em; } pre { padding: .8rem 1rem; max-height: 30rem; line-height: 1.45; }
footer { color: var(--soft); font-size: .82rem; border-top: 1px solid var(--line); padding-top: 1rem; padding-bottom: 2rem; }
@media (max-width: 36rem) { html { font-size: 16px; } h1 { font-size: 1.45rem; } header .tools { margin-left: 0; } figure, .passage, .card { padding: .8rem .7rem; } .save { position: static; } figcaption { padding-right: 0; } .facts { grid-template-columns: 1fr; gap: 0; } .facts dd { margin-bottom: .5rem; } }
@media print { :root { --paper: #ffffff; }
  html { font-size: 11pt; } header.top, .tools, .scripted .tools, .skip, .detail, figure > details { display: none; }
  main, footer { max-width: none; padding-left: 0; padding-right: 0; } figure, .card, .feature { break-inside: avoid; } h2 { break-after: avoid; } figcaption { padding-right: 0; } figure, .passage, .card { border-color: #ccc; padding: .6rem .8rem; }
  .scroll, pre { max-height: none; overflow: visible; } ins, del, tr.wrong td, .notice, .bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; } .chart svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
`;
