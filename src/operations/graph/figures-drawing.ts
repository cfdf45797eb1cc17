import type { GraphResult } from "../../contracts/index.js";
import { nodeName, shortName, shortToken } from "../../findings/graph.js";
import { type Dot, diamond, graphLayout, triangle } from "../../findings/graph-layout.js";
import { figureOf, percent, signed } from "../../findings/numbers.js";
import { type Html, html } from "../../report/markup.js";

type Drawn = Pick<GraphResult, "tokens" | "targets" | "blocks" | "nodes" | "edges">;

/** A graph as SVG: tokens along the bottom, blocks upwards, targets on top. */
export function drawGraph(result: Drawn): Html {
  const { width, height, dots, lines, tokens, blocks } = graphLayout(result);
  const paths = lines.map(({ edge: { source, target, value }, path, color, width, opacity }) => {
    const [from, to] = [result.nodes[source], result.nodes[target]];
    if (from === undefined || to === undefined) return "";
    const about = `${nodeName(result, from)} to ${nodeName(result, to)}: ${signed(value)}`;
    return html`<path d="${path}" fill="none" stroke="${color}" stroke-width="${width.toFixed(2)}" stroke-opacity="${opacity.toFixed(2)}"><title>${about}</title></path>`;
  });
  const names = tokens.map(
    ({ text, x, y }) =>
      html`<text x="${x}" y="${y}" text-anchor="middle" fill="currentColor">${shortToken(text)}</text>`,
  );
  const scale = blocks.map(
    ({ layer, x, y }) =>
      html`<text x="${x}" y="${y}" text-anchor="end" fill="currentColor" fill-opacity="0.7">${layer === 0 ? "block 0" : layer}</text>`,
  );
  return html`<div class="wide" tabindex="0" role="group" aria-label="Picture of the graph; scrolls sideways"><svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-size="11" role="img" aria-label="Attribution graph: tokens from left to right, blocks upwards">${paths}${dots.map((dot) => mark(result, dot))}${names}${scale}</svg></div>`;
}

function mark(result: Drawn, dot: Dot): Html {
  const { node, x, y, size } = dot;
  const value = node.value === null ? "" : `, value ${figureOf(node.value)}`;
  const influence = node.kind === "target" ? "" : `, ${percent(node.influence)} of the influence`;
  const title = html`<title>${nodeName(result, node)} (${shortName(node)})${influence}${value}</title>`;
  switch (node.kind) {
    case "neuron":
    case "feature":
      return html`<circle cx="${x}" cy="${y}" r="${size}" fill="currentColor" fill-opacity="0.85">${title}</circle>`;
    case "head":
      return html`<rect x="${x - size}" y="${y - size}" width="${2 * size}" height="${2 * size}" fill="currentColor" fill-opacity="0.85">${title}</rect>`;
    case "error":
      return html`<path d="${triangle(dot)}" fill="none" stroke="currentColor">${title}</path>`;
    case "rest":
    case "rounding":
      return html`<path d="${diamond(dot)}" fill="none" stroke="currentColor" stroke-opacity="0.6">${title}</path>`;
    default:
      return html`<circle cx="${x}" cy="${y}" r="${size}" fill="none" stroke="currentColor" stroke-width="1.5">${title}</circle>`;
  }
}
