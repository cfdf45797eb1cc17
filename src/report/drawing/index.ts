import { rowsOf } from "../../findings/axes.js";
import type { Figure } from "../../findings/figure.js";
import type { Html } from "../markup.js";
import { drawBars } from "./bars.js";
import { drawDifferences, drawTokens } from "./grids.js";
import { drawLines } from "./lines.js";
import { drawMirror, drawScatter } from "./points.js";
import { drawSites } from "./sites.js";

/** Maximum rows of a drawn figure; larger figures only have a table. */
const mostRows = 6000;

/**
 * A figure as static SVG for pages without scripts, styled by class with {@link drawingStyle}. Unlike a report's interactive
 * figures, it needs neither a browser nor a document.
 * @param width available pixels; pictures may be narrower
 * @returns legends and pictures in order; empty if there is nothing to draw, or too much
 */
export function drawFigure(figure: Figure, width: number): Html[] {
  const rows = rowsOf(figure);
  if (rows.length === 0 || rows.length > mostRows) return [];
  const { chart } = figure;
  switch (chart.kind) {
    case "tokens":
      return drawTokens(figure, chart, rows, width);
    case "bars":
      return drawBars(figure, chart, rows, width);
    case "lines":
      return drawLines(figure, chart, rows, width);
    case "differences":
      return drawDifferences(figure, chart, rows, width);
    case "sites":
      return drawSites(figure, chart, rows, width);
    case "mirror":
      return drawMirror(figure, chart, rows, width);
    case "scatter":
      return drawScatter(figure, chart, rows, width);
  }
}

const light = ["#0b5d66", "#b5490f", "#5b4bb5", "#746a00", "#b0246e", "#2268b8", "#477a22", "#6b5b4f"];
const dark = ["#6cc7d1", "#ffa95e", "#b3a6ff", "#d9cf4a", "#ff8fc4", "#8ab8ff", "#a5d67a", "#cdb8a8"];
const variables = (colors: readonly string[]) => colors.map((color, at) => `--s${at}: ${color};`).join(" ");
const each = (rule: (at: number) => string) => light.map((_, at) => rule(at)).join(" ");

/** Colours of the marks, for pages with the variables `--ink`, `--soft` and `--line`; dark colours only on screen. */
export const drawingStyle = `
.drawing { --deep: #07505a; --other: #a8430a; ${variables(light)} display: flex; flex-wrap: wrap; gap: .5rem; }
.drawing svg { max-width: 100%; height: auto; font: 12px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.drawing text { fill: var(--ink); } .drawing .soft { fill: var(--soft); } .drawing .name { font-weight: 600; }
.drawing .grid { stroke: var(--line); fill: none; } .drawing .axis { stroke: var(--soft); fill: none; } .drawing .mark { stroke: var(--soft); stroke-dasharray: 4 4; fill: none; }
${each((at) => `.drawing .f${at} { fill: var(--s${at}); } .drawing .l${at} { stroke: var(--s${at}); stroke-width: 1.75; fill: none; }`)}
.drawing .strong { stroke-width: 3.5; } .drawing .ramp { fill: var(--deep); } .drawing .down { fill: var(--other); } .drawing .blank { fill: none; }
${Array.from({ length: 21 }, (_, at) => `.drawing .a${at} { fill-opacity: ${(0.05 + at * 0.0475).toFixed(3)}; }`).join(" ")}
.drawing text.full { fill: #fff; }
@media screen and (prefers-color-scheme: dark) { .drawing { --deep: #7fdbe4; --other: #ff9a4d; ${variables(dark)} } .drawing text.full, .drawing text.half { fill: #101214; } }
`;
