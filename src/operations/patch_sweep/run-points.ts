import type { PatchSweep } from "../../native/index.js";
import type { Grid, SweptPair } from "./run-figures.js";

/** Points of one pair that are swept together. */
export interface PairPoints {
  pair: number;
  points: Grid["points"];
}

/** The items of a sweep are the points of its pairs, pair by pair. @returns the pairs of some items, in order */
export function pairsOf(items: readonly number[], points: Grid["points"]): PairPoints[] {
  const found: PairPoints[] = [];
  for (const item of items) {
    const pair = Math.floor(item / points.length);
    const point = points[item % points.length] as Grid["points"][number];
    const last = found.at(-1);
    if (last?.pair === pair) last.points.push(point);
    else found.push({ pair, points: [point] });
  }
  return found;
}

/** The sites of some of a grid's points. */
export function gridOfPoints({ heads, ...grid }: Grid, points: Grid["points"]): Grid {
  const own = [...grid.places.keys()].filter((place) => points.includes(pointAt(grid, place)));
  return {
    ...{ ...grid, points },
    ...(heads && points.includes("head_out") && { heads }),
    places: own.map((place) => grid.places[place] as Grid["places"][number]),
    widths: own.map((place) => grid.widths[place] as number),
  };
}

const pointAt = ({ places }: Pick<Grid, "places">, place: number) =>
  places[place]?.point as Grid["points"][number];

/** Arrays of a sweep with a value per site. */
const arrays = ["patched", "control", "changeLength", "rowLength"] as const;

/** One item per point of a swept pair. Counts that belong to all of its points are in the first. */
export function itemsOfPair(grid: Grid, swept: SweptPair): SweptPair[] {
  const { sweep } = swept;
  return grid.points.map((point, index) => {
    const own = { ...sweep, ...(index > 0 && { computedSites: 0, computedTokens: 0, restoredTokens: 0 }) };
    for (const name of arrays) {
      const all = sweep[name];
      if (all !== undefined) own[name] = valuesAt(grid, point, all);
    }
    return { ...swept, sweep: own };
  });
}

/** The values of a point's places, [places, positions]. */
function valuesAt({ places, positions }: Grid, point: Grid["points"][number], all: Float64Array) {
  const own = places.flatMap((place, index) => (place.point === point ? [index] : []));
  const values = new Float64Array(own.length * positions.length);
  for (const [row, place] of own.entries()) {
    values.set(
      all.subarray(place * positions.length, (place + 1) * positions.length),
      row * positions.length,
    );
  }
  return values;
}

/** The reverse of {@link itemsOfPair}, for all items of all pairs, which may have been swept in several parts. */
export function pairsOfItems(grid: Grid, items: readonly SweptPair[]): SweptPair[] {
  const each = grid.points.length;
  return Array.from({ length: items.length / each }, (_, pair) =>
    joined(grid, items.slice(pair * each, (pair + 1) * each)),
  );
}

function joined(grid: Grid, points: readonly SweptPair[]): SweptPair {
  const sweeps = points.map(({ sweep }) => sweep);
  // The first that put a row back: it says what batches change.
  const first = points.find(({ sweep }) => sweep.restoredTokens > 0) ?? (points[0] as SweptPair);
  const sweep = { ...first.sweep, ...countsOf(sweeps) };
  for (const name of arrays) {
    if (sweep[name] !== undefined) {
      sweep[name] = allValues(
        grid,
        sweeps.map((own) => own[name] as Float64Array),
      );
    }
  }
  return { ...first, sweep };
}

/** The values of all places, from those of each point. */
function allValues({ places, points, positions }: Grid, of: readonly Float64Array[]): Float64Array {
  const values = new Float64Array(places.length * positions.length);
  const next = points.map(() => 0);
  for (const [place, { point }] of places.entries()) {
    const at = points.indexOf(point as Grid["points"][number]);
    const from = (next[at] as number) * positions.length;
    values.set((of[at] as Float64Array).subarray(from, from + positions.length), place * positions.length);
    next[at] = (next[at] as number) + 1;
  }
  return values;
}

/**
 * Sites and tokens of one sweep over all points. Each sweep puts one row back, at the first token that it computes, and one
 * over all of them does so once: at the earliest of these tokens, whose site takes the most tokens.
 */
function countsOf(sweeps: readonly PatchSweep[]) {
  const sum = (of: (sweep: PatchSweep) => number) => sweeps.reduce((total, sweep) => total + of(sweep), 0);
  const putBack = sweeps.filter(({ restoredTokens }) => restoredTokens > 0);
  const computing = putBack.filter(({ computedSites }) => computedSites > 1);
  const restoredTokens = Math.max(
    0,
    ...(computing.length > 0 ? computing : putBack).map((sweep) => sweep.restoredTokens),
  );
  return {
    computedSites: sum(({ computedSites }) => computedSites) - Math.max(0, putBack.length - 1),
    computedTokens: sum((sweep) => sweep.computedTokens - sweep.restoredTokens) + restoredTokens,
    restoredTokens,
  };
}
