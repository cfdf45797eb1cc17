import type { GraphEdge, GraphNode, GraphResult } from "../contracts/index.js";
import { listed } from "../text/words.js";

/** The numbers of nodes, embeddings and targets aside, and of edges that are drawn at most: the strongest. */
export interface DrawnMost {
  nodes: number;
  edges: number;
}
/** In a report, every node and edge has a tooltip. */
export const reportMost: DrawnMost = { nodes: 150, edges: 500 };
/** On a page, edges are drawn once. */
export const pageMost: DrawnMost = { nodes: 1000, edges: 10_000 };
/** Colors of edges, readable on light and on dark cards. */
const [raises, lowers] = ["#2a8f9b", "#d9722e"];
const [left, top, below, gap, right] = [64, 34, 40, 11, 16];

/** A drawn node, by its index in the result. */
export interface Dot {
  index: number;
  node: GraphNode;
  x: number;
  y: number;
  /** Half its width. */
  size: number;
}

/** A drawn edge. */
export interface Line {
  edge: GraphEdge;
  path: string;
  color: string;
  /** By influence, as is the opacity. */
  width: number;
  opacity: number;
}

export interface GraphLayout {
  width: number;
  height: number;
  /** Upwards. */
  dots: Dot[];
  /** The weakest first. */
  lines: Line[];
  tokens: { text: string; x: number; y: number }[];
  blocks: { layer: number; x: number; y: number }[];
}

/** Where a graph's nodes and edges are drawn: tokens from left to right, blocks upwards, targets on top. */
export function graphLayout(
  result: Pick<GraphResult, "tokens" | "blocks" | "nodes" | "edges">,
  most: DrawnMost = reportMost,
): GraphLayout {
  const { tokens, blocks, nodes, edges } = result;
  const cells = cellsOf(nodes, most.nodes);
  const widths = tokens.map(() => 48);
  for (const [cell, list] of cells) {
    const position = Number(cell.split(" ")[0]);
    widths[position] = Math.max(widths[position] as number, (list.length + 1) * gap);
  }
  let end = left;
  const middles = widths.map((width) => {
    end += width;
    return end - width / 2;
  });
  const middle = (position: number) => middles[position] as number;
  const step = Math.max(12, Math.min(30, 520 / blocks));
  const height = top + (blocks + 1) * step + below;
  const y = (row: number) => height - below - row * step;
  const dots = [...cells].flatMap(([cell, list]) => {
    const [position, row] = cell.split(" ").map(Number) as [number, number];
    return list.map((index, i): Dot => {
      const node = nodes[index] as GraphNode;
      const ends = node.kind === "embedding" || node.kind === "target";
      return {
        ...{ index, node },
        x: rounded(middle(position) + (i - (list.length - 1) / 2) * gap),
        y: rounded(row < 0 ? top - 10 : y(row)),
        size: ends ? 4 : rounded(3 + 4 * Math.sqrt(Math.min(1, node.influence * 8))),
      };
    });
  });
  dots.sort((a, b) => b.y - a.y || a.x - b.x);
  const every = Math.max(1, Math.ceil(14 / step));
  return {
    width: end + right,
    height: rounded(height),
    dots,
    lines: linesOf(edges, new Map(dots.map((dot) => [dot.index, dot])), most.edges),
    tokens: tokens.map((text, position) => ({
      text,
      x: rounded(middle(position)),
      y: rounded(height - below + 22),
    })),
    blocks: Array.from({ length: blocks }, (_, layer) => layer)
      .filter((layer) => layer % every === 0)
      .map((layer) => ({ layer, x: left - 12, y: rounded(y(layer + 1) + 4) })),
  };
}

/** Drawn nodes by token and row, which is -1 for targets, 0 for embeddings and otherwise the block plus one. */
function cellsOf(nodes: readonly GraphNode[], most: number): Map<string, number[]> {
  const ends = ({ kind }: GraphNode) => kind === "embedding" || kind === "target";
  const strong = [...nodes.keys()]
    .filter((at) => !ends(nodes[at] as GraphNode))
    .sort((a, b) => (nodes[b] as GraphNode).influence - (nodes[a] as GraphNode).influence)
    .slice(0, most);
  const shown = new Set(strong);
  const cells = new Map<string, number[]>();
  for (const [index, node] of nodes.entries()) {
    if (!ends(node) && !shown.has(index)) continue;
    const row = node.kind === "target" ? -1 : node.layer === null ? 0 : node.layer + 1;
    const cell = `${node.position} ${row}`;
    const list = cells.get(cell);
    if (list === undefined) cells.set(cell, [index]);
    else list.push(index);
  }
  return cells;
}

function linesOf(edges: readonly GraphEdge[], dots: ReadonlyMap<number, Dot>, mostEdges: number): Line[] {
  const drawn = edges
    .filter(({ source, target }) => dots.has(source) && dots.has(target))
    .slice(0, mostEdges);
  const most = drawn.reduce((greatest, { influence }) => Math.max(greatest, influence), Number.MIN_VALUE);
  return drawn.reverse().map((edge) => {
    const [from, to] = [dots.get(edge.source) as Dot, dots.get(edge.target) as Dot];
    const half = rounded((from.y + to.y) / 2);
    const strength = Math.sqrt(edge.influence / most);
    return {
      edge,
      path: `M${from.x} ${from.y}C${from.x} ${half} ${to.x} ${half} ${to.x} ${to.y}`,
      color: edge.value < 0 ? lowers : raises,
      width: 0.5 + 2.5 * strength,
      opacity: 0.08 + 0.8 * strength,
    };
  });
}

/** The path of a diamond, which marks other neurons and rounding. */
export function diamond({ x, y, size }: Pick<Dot, "x" | "y" | "size">): string {
  return `M${x} ${y - size}L${x + size} ${y}L${x} ${y + size}L${x - size} ${y}Z`;
}

/** The path of a triangle, which marks errors. */
export function triangle({ x, y, size }: Pick<Dot, "x" | "y" | "size">): string {
  return `M${x} ${y - size}L${x + size} ${y + size}L${x - size} ${y + size}Z`;
}

const markNames = [
  ["neuron", "circles are neurons"],
  ["feature", "circles are features"],
  ["head", "squares are heads"],
  ["error", "triangles are errors, which no feature explains"],
  ["rest", "diamonds are other neurons or features, or rounding"],
] as const;

/** What the marks of these nodes mean, as a clause. */
export function markLegend(nodes: readonly Pick<GraphNode, "kind">[]): string {
  const kinds = new Set(nodes.map(({ kind }) => (kind === "rounding" ? "rest" : kind)));
  return listed(markNames.filter(([kind]) => kinds.has(kind)).map(([, words]) => words));
}

/** The strongest edges into a node and out of it, by influence. */
export function neighbours(
  edges: readonly GraphEdge[],
  index: number,
  most: number,
): { parents: GraphEdge[]; children: GraphEdge[] } {
  const strongest = (all: GraphEdge[]) => all.sort((a, b) => b.influence - a.influence).slice(0, most);
  return {
    parents: strongest(edges.filter(({ target }) => target === index)),
    children: strongest(edges.filter(({ source }) => source === index)),
  };
}

const rounded = (value: number) => Number(value.toFixed(1));
