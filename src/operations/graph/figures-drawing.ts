import type { GraphNode, GraphResult } from "../../contracts/index.js";
import { nodeName, shortName } from "../../findings/graph.js";
import { figureOf, percent, signed } from "../../findings/numbers.js";
import { visible } from "../../findings/text.js";
import { type Html, html } from "../../report/markup.js";

/** At most these are drawn: the strongest. */
const [mostNodes, mostEdges] = [150, 500];
const [left, top, below, gap] = [64, 34, 40, 11];
/** Readable on light and on dark cards. */
const [raises, lowers] = ["#2a8f9b", "#d9722e"];

interface Dot {
  node: GraphNode;
  x: number;
  y: number;
}

/** A graph as SVG: tokens along the bottom, blocks upwards, targets on top. */
export function drawGraph(
  result: Pick<GraphResult, "tokens" | "targets" | "blocks" | "nodes" | "edges">,
): Html {
  const { tokens, blocks: layers, nodes, edges } = result;
  const shown = shownNodes(nodes);
  const at = cellsOf(nodes, shown);
  const widest = tokens.map((_, position) =>
    Math.max(
      0,
      ...[...at].filter(([cell]) => cell.startsWith(`${position} `)).map(([, list]) => list.length),
    ),
  );
  const widths = widest.map((count) => Math.max(48, (count + 1) * gap));
  const starts = widths.map(
    (_, position) => left + widths.slice(0, position).reduce((sum, one) => sum + one, 0),
  );
  const step = Math.max(12, Math.min(30, 520 / layers));
  const height = top + (layers + 1) * step + below;
  const width = left + widths.reduce((sum, one) => sum + one, 0) + 16;
  const y = (row: number) => height - below - row * step;
  const dots = new Map<number, Dot>();
  for (const [cell, list] of at) {
    const [position, row] = cell.split(" ").map(Number) as [number, number];
    for (const [i, index] of list.entries()) {
      const middle = (starts[position] as number) + (widths[position] as number) / 2;
      const x = middle + (i - (list.length - 1) / 2) * gap;
      dots.set(index, { node: nodes[index] as GraphNode, x, y: row < 0 ? top - 10 : y(row) });
    }
  }
  const drawn = edges
    .filter(({ source, target }) => dots.has(source) && dots.has(target))
    .slice(0, mostEdges);
  const most = Math.max(...drawn.map(({ influence }) => influence), Number.MIN_VALUE);
  const lines = [...drawn].reverse().map(({ source, target, value, influence }) => {
    const [from, to] = [dots.get(source) as Dot, dots.get(target) as Dot];
    const share = Math.sqrt(influence / most);
    const about = `${nodeName(result, from.node)} to ${nodeName(result, to.node)}: ${signed(value)}`;
    return html`<path d="M${f(from.x)} ${f(from.y)}C${f(from.x)} ${f((from.y + to.y) / 2)} ${f(to.x)} ${f((from.y + to.y) / 2)} ${f(to.x)} ${f(to.y)}" fill="none" stroke="${value < 0 ? lowers : raises}" stroke-width="${(0.5 + 2.5 * share).toFixed(2)}" stroke-opacity="${(0.08 + 0.8 * share).toFixed(2)}"><title>${about}</title></path>`;
  });
  const marks = [...dots.values()].map(({ node, x, y: down }) => mark(result, node, x, down));
  const columns = tokens.map((token, position) => {
    const middle = (starts[position] as number) + (widths[position] as number) / 2;
    return html`<text x="${f(middle)}" y="${f(height - below + 22)}" text-anchor="middle" fill="currentColor">${short(token)}</text>`;
  });
  const every = Math.max(1, Math.ceil(14 / step));
  const rows = Array.from({ length: layers }, (_, layer) => layer).filter((layer) => layer % every === 0);
  const scale = rows.map(
    (layer) =>
      html`<text x="${left - 12}" y="${f(y(layer + 1) + 4)}" text-anchor="end" fill="currentColor" fill-opacity="0.7">${layer === 0 ? "block 0" : layer}</text>`,
  );
  return html`<div class="wide" tabindex="0" role="group" aria-label="Picture of the graph; scrolls sideways"><svg viewBox="0 0 ${f(width)} ${f(height)}" width="${f(width)}" height="${f(height)}" font-size="11" role="img" aria-label="Attribution graph: tokens from left to right, blocks upwards">${lines}${marks}${columns}${scale}</svg></div>`;
}

/** Nodes to draw, by index: all tokens and targets, and the strongest others. */
function shownNodes(nodes: readonly GraphNode[]): Set<number> {
  const fixed = [...nodes.keys()].filter((at) =>
    ["embedding", "target"].includes((nodes[at] as GraphNode).kind),
  );
  const others = [...nodes.keys()]
    .filter((at) => !fixed.includes(at))
    .sort((a, b) => (nodes[b] as GraphNode).influence - (nodes[a] as GraphNode).influence)
    .slice(0, mostNodes);
  return new Set([...fixed, ...others]);
}

/** Drawn nodes by token and row, which is -1 for targets, 0 for embeddings and otherwise the block plus one. */
function cellsOf(nodes: readonly GraphNode[], shown: ReadonlySet<number>): Map<string, number[]> {
  const cells = new Map<string, number[]>();
  for (const [index, { kind, layer, position }] of nodes.entries()) {
    if (!shown.has(index)) continue;
    const row = kind === "target" ? -1 : layer === null ? 0 : layer + 1;
    const cell = `${position} ${row}`;
    cells.set(cell, [...(cells.get(cell) ?? []), index]);
  }
  return cells;
}

function mark(result: Parameters<typeof drawGraph>[0], node: GraphNode, x: number, y: number): Html {
  const size = 3 + 4 * Math.sqrt(Math.min(1, node.influence * 8));
  const value = node.value === null ? "" : `, value ${figureOf(node.value)}`;
  const title = html`<title>${nodeName(result, node)} (${shortName(node)}): ${percent(node.influence)} of the influence${value}</title>`;
  switch (node.kind) {
    case "neuron":
      return html`<circle cx="${f(x)}" cy="${f(y)}" r="${f(size)}" fill="currentColor" fill-opacity="0.85">${title}</circle>`;
    case "head":
      return html`<rect x="${f(x - size)}" y="${f(y - size)}" width="${f(2 * size)}" height="${f(2 * size)}" fill="currentColor" fill-opacity="0.85">${title}</rect>`;
    case "rest":
    case "rounding":
      return html`<path d="M${f(x)} ${f(y - size)}L${f(x + size)} ${f(y)}L${f(x)} ${f(y + size)}L${f(x - size)} ${f(y)}Z" fill="none" stroke="currentColor" stroke-opacity="0.6">${title}</path>`;
    default:
      return html`<circle cx="${f(x)}" cy="${f(y)}" r="4" fill="none" stroke="currentColor" stroke-width="1.5">${title}</circle>`;
  }
}

const f = (value: number) => Number(value.toFixed(1));

function short(token: string): string {
  const text = Array.from(visible(token));
  return text.length <= 9 ? text.join("") : `${text.slice(0, 8).join("")}…`;
}
