import type { PatchPair, PatchSite, PatchSweepConfig, PatchSweepResult } from "../../contracts/index.js";
import { alignedPositions, type ChangedPoint } from "../../contracts/names.js";
import { drawnInterval, pairDraws } from "../../findings/uncertainty.js";
import { pieceLookup } from "../../lab/rows/tokens.js";
import type { Model, PatchPlace, PatchSweep } from "../../native/index.js";
import type { Findings } from "../run.js";

/** Resamples of the bootstrap over pairs. */
const resamples = 1000;
/** Runs whose logit differences are closer than this count as equal: recovery is undefined. */
export const leastDifference = 1e-6;

/** The sites: each point (for head_out each head) of each layer at each position. */
export interface Grid {
  layers: number[];
  points: ChangedPoint[];
  /** For head_out. */
  heads?: number[];
  /** As requested: they may count from the end, or be numbers of spans. */
  positions: number[];
  /** What is patched at each position, in order. */
  places: PatchPlace[];
  /** Number of values at each place. */
  widths: number[];
}

/** A tokenized prompt and the positions to patch. */
export interface PairPrompt {
  tokens: Int32Array;
  /** Token indices, from 0. */
  positions: number[];
  /** For a marked text: the span that ends at each position. */
  spans?: string[];
}

export interface Pair {
  clean: PairPrompt;
  corrupted: PairPrompt;
  target?: number;
  foil?: number;
}

/** Logit differences of the patched run, and of the run that the activations come from. */
interface Sides {
  base: number;
  donor: number;
}

/** A pair whose sites are computed. */
export interface SweptPair {
  sweep: PatchSweep;
  described: PatchPair;
  /** Patched token indices. */
  positions: { clean: number[]; corrupted: number[] };
  /** Notes about its target and foil. */
  hints: string[];
}

export async function sweptPair(
  model: Model,
  pair: Pair,
  sweep: PatchSweep,
  hints: string[],
): Promise<SweptPair> {
  const positions = { clean: pair.clean.positions, corrupted: pair.corrupted.positions };
  return { sweep, described: await describePair(model, pair, sweep), positions, hints };
}

/** Combines the sweeps of all pairs: means over the pairs, with bootstrap intervals. */
export function describePatches(
  config: PatchSweepConfig,
  grid: Grid,
  pairs: readonly SweptPair[],
  sidePath: string,
): Findings<PatchSweepResult> {
  const denoise = config.direction === "denoise";
  const sweeps = pairs.map(({ sweep }) => sweep);
  const sides: Sides[] = sweeps.map(({ clean, corrupted }) =>
    denoise ? { base: corrupted, donor: clean } : { base: clean, donor: corrupted },
  );
  const sum = (of: (sweep: PatchSweep) => number) => sweeps.reduce((total, sweep) => total + of(sweep), 0);
  const mean = (of: (sweep: PatchSweep) => number) => sum(of) / sweeps.length;
  const described = pairs.map(({ described }) => described);
  return {
    direction: config.direction,
    layers: grid.layers,
    points: grid.points,
    ...(grid.heads && { heads: grid.heads }),
    positions: grid.positions,
    pairs: described,
    clean: mean(({ clean }) => clean),
    corrupted: mean(({ corrupted }) => corrupted),
    restored: mean(({ restored }) => restored),
    sites: sitesOf(config, grid, sweeps, sides),
    computed_sites: sum(({ computedSites }) => computedSites),
    computed_tokens: sum(({ computedTokens }) => computedTokens),
    ...(config.controls ? { control_seed: config.seed } : {}),
    note: noteOf(config, described, sides, sidePath),
  };
}

async function describePair(model: Model, { clean, corrupted }: Pair, sweep: PatchSweep): Promise<PatchPair> {
  const ids = [...clean.tokens, ...corrupted.tokens, sweep.target, sweep.foil];
  const piece = await pieceLookup(model, ids);
  const prompt = ({ tokens, positions, spans }: PairPrompt, logit_difference: number) => ({
    tokens: Array.from(tokens, piece),
    token_ids: [...tokens],
    ...(spans && { spans: spans.map((text, index) => ({ text, position: positions[index] as number })) }),
    logit_difference,
  });
  return {
    clean: prompt(clean, sweep.clean),
    corrupted: prompt(corrupted, sweep.corrupted),
    restored: sweep.restored,
    target_token: piece(sweep.target),
    target_token_id: sweep.target,
    foil_token: piece(sweep.foil),
    foil_token_id: sweep.foil,
  };
}

function sitesOf(
  config: PatchSweepConfig,
  { places, positions }: Grid,
  sweeps: PatchSweep[],
  sides: Sides[],
): PatchSite[] {
  const count = sweeps.length;
  const average = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / count;
  const base = average(sides.map((side) => side.base));
  const ways = sides.map((side) => side.donor - side.base);
  const way = average(ways);
  const draws = count < 2 ? [] : pairDraws(count, { resamples, seed: config.seed });
  const figures = (values: number[]) => {
    const change = average(values) - base;
    return {
      logit_difference: average(values),
      change,
      recovery: Math.abs(way) < leastDifference ? null : change / way,
    };
  };
  const known = (values: number[]) => (values.some(Number.isNaN) ? null : average(values));
  return places.flatMap(({ layer, point, head }, row) =>
    positions.map((position, column): PatchSite => {
      const place = row * positions.length + column;
      const of = (array: (sweep: PatchSweep) => Float64Array | undefined) =>
        sweeps.map((sweep) => array(sweep)?.[place] as number);
      const patched = of((sweep) => sweep.patched);
      const changes = patched.map((value, index) => value - (sides[index] as Sides).base);
      const spread = draws.length === 0 ? undefined : drawnInterval(draws, changes);
      const found = figures(patched);
      const share =
        draws.length === 0 || found.recovery === null
          ? undefined
          : drawnInterval(draws, changes, { values: ways, least: leastDifference });
      return {
        layer,
        point: point as ChangedPoint,
        ...(head === undefined ? {} : { head }),
        position,
        ...found,
        ...(spread === undefined ? {} : { change_interval: spread }),
        ...(share === undefined ? {} : { recovery_interval: share }),
        change_length: known(of((sweep) => sweep.changeLength)),
        row_length: known(of((sweep) => sweep.rowLength)),
        ...(config.controls ? { control: figures(of((sweep) => sweep.control)) } : {}),
      };
    }),
  );
}

/** What each site patches. */
function statesText(points: PatchSweepConfig["points"]): string {
  if (points.join() === "block_out") return "one block output";
  const rows = points.filter((point) => point !== "head_out");
  return [
    ...(rows.length === 0 ? [] : [`one block's ${rows.join(", or its ")}`]),
    ...(rows.length === points.length ? [] : ["one head's output (head_out)"]),
  ].join(", or ");
}

function noteOf(config: PatchSweepConfig, pairs: PatchPair[], sides: Sides[], sidePath: string): string {
  const [from, into] = config.direction === "denoise" ? ["clean", "corrupted"] : ["corrupted", "clean"];
  const same = sides.filter(({ base, donor }) => Math.abs(donor - base) < leastDifference).length;
  const wrong = pairs.filter(({ clean }) => clean.logit_difference <= 0).length;
  const of = (count: number) => (pairs.length === 1 ? "the pair" : `${count} of ${pairs.length} pairs`);
  return [
    `Each site patches ${statesText(config.points)} of the ${from} run into the ${into} run, at ` +
      `${config.positions === alignedPositions ? "the last token of one span" : "one token"}; later tokens are computed with it.`,
    config.direction === "denoise"
      ? "A site that restores the answer is sufficient for it, but not necessarily required."
      : "A site that breaks the answer is necessary for it, but not necessarily sufficient.",
    same === 0 ? "" : `The two runs of ${of(same)} have the same logit difference, so recovery is undefined.`,
    wrong === 0 ? "" : `In the clean run of ${of(wrong)}, the foil's logit is at least the target's.`,
    sidePath,
  ]
    .filter((part) => part !== "")
    .join(" ");
}
