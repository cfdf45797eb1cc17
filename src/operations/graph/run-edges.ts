import type { Pause } from "./run-pause.js";

export type VisitEdge = (influence: number, row: number, column: number) => void;

/** The edges with a positive influence, row by row and always in the same order. */
export interface Edges {
  rows: number;
  of(row: number, visit: VisitEdge): void;
}

export interface PrunedEdge {
  row: number;
  column: number;
  influence: number;
}

/** Calls `visit` for each edge. */
export async function eachEdge(edges: Edges, pause: Pause, visit: VisitEdge): Promise<void> {
  for (let row = 0; row < edges.rows; row++) {
    edges.of(row, visit);
    if (pause.isDue()) await pause.take();
  }
}

/** The smallest of the strongest influences that together have a share of their sum; 0 without edges. */
export function leastInfluence(edges: Edges, share: number, pause: Pause): Promise<number> {
  return leastOf(
    edges,
    (influence) => influence,
    (total) => share * total,
    pause,
  );
}

/** The `most` strongest edges; of equal ones the first. */
export async function strongestEdges(edges: Edges, most: number, pause: Pause): Promise<PrunedEdge[]> {
  const least = await leastOf(
    edges,
    () => 1,
    (total) => Math.min(most, total),
    pause,
  );
  const stronger: PrunedEdge[] = [];
  const equal: PrunedEdge[] = [];
  await eachEdge(edges, pause, (influence, row, column) => {
    if (influence > least) stronger.push({ row, column, influence });
    else if (influence === least && equal.length < most) equal.push({ row, column, influence });
  });
  return [...stronger.sort((a, b) => b.influence - a.influence), ...equal].slice(0, most);
}

const values = 1 << 16;

/**
 * The smallest of the largest influences that together weigh enough. Positive doubles are in the order of their bits, so
 * four passes over the edges find it 16 bits at a time: a graph may have more edges than fit into a list.
 */
async function leastOf(
  edges: Edges,
  weigh: (influence: number) => number,
  enough: (total: number) => number,
  pause: Pause,
): Promise<number> {
  const [one, found] = [new Float64Array(1), new Float64Array(1)];
  // The highest bits are last on all supported machines.
  const [bits, foundBits] = [new Uint16Array(one.buffer), new Uint16Array(found.buffer)];
  const weights = new Float64Array(values);
  let missing = 0;
  for (let level = 3; level >= 0; level--) {
    weights.fill(0);
    await eachEdge(edges, pause, (influence) => {
      one[0] = influence;
      for (let above = 3; above > level; above--) if (bits[above] !== foundBits[above]) return;
      weights[bits[level] as number]! += weigh(influence);
    });
    if (level === 3) missing = enough(weights.reduceRight((total, weight) => total + weight, 0));
    let last = 0;
    let isEnough = false;
    for (let at = values - 1; at >= 0 && !isEnough; at--) {
      const weight = weights[at] as number;
      if (weight === 0) continue;
      foundBits[level] = at;
      last = weight;
      isEnough = missing <= weight;
      if (!isEnough) missing -= weight;
    }
    // Rounding of the sums: then it is the smallest one of all.
    if (!isEnough) missing += last;
  }
  return found[0] as number;
}
