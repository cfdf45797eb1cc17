import { type Html, html, sheet as page } from "../report/index.js";

export { html };

const own = `
h1 { margin-top: .2rem; }
main section { margin: 1.6rem 0; } main table { margin: .6rem 0; }
.ranges { list-style: none; margin: .6rem 0; padding: 0; }
.ranges li { display: grid; grid-template-columns: minmax(0, 1fr) 20rem; gap: .2rem 1.6rem; align-items: center; padding: .7rem 0; border-top: 1px solid var(--line); }
.ranges p { margin: 0; } .ranges .soft { font-size: .85rem; } .ranges .figure { font: .92rem system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; font-variant-numeric: tabular-nums; }
.ranges strong { font-weight: 700; } .failed strong, .verdict.failed { color: var(--warn); }
.verdict { font-size: 1.35rem; line-height: 1.35; font-weight: 600; margin: 1.2rem 0 .3rem; }
.range { width: 100%; height: auto; display: block; font: 11px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
.range .axis { stroke: var(--soft); stroke-width: 1; } .range .end { fill: var(--soft); }
.range .band { fill: color-mix(in srgb, var(--accent) 28%, transparent); stroke: var(--accent); stroke-width: 1; }
.range .mark { fill: var(--accent); stroke: var(--card); stroke-width: 2; } .failed .range .mark { fill: var(--warn); }
.token { white-space: pre-wrap; background: rgb(230 120 0 / var(--score)); }
.token sub { font-size: .65rem; font-variant-numeric: tabular-nums; }
@media (max-width: 44rem) { .ranges li { grid-template-columns: minmax(0, 1fr); } }
@media print { .ranges li { break-inside: avoid; } .range * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }`;

/** A page of a reproduction in the design of reports, without scripts or network requests. */
export function sheet(title: string, content: Html): string {
  return page({ title, badge: "reproduction", style: own, content });
}
