import type { PatchPair, PatchSite, PatchSweepConfig, PatchSweepResult } from "../../contracts/index.js";
import { alignedPositions, type ChangedPoint } from "../../contracts/names.js";
import { pieceLookup } from "../../lab/rows/tokens.js";
import { drawnInterval, pairDraws } from "../../lab/uncertainty.js";
import type { Model, PatchPlace, PatchSweep } from "../../native/index.js";
import type { Findings } from "../run.js";

/** Draws of the bootstrap over pairs. */
const resamples = 1000;
/** Runs whose logit differences are closer than this have no way between them. */
export const leastDifference = 1e-6;

/** The sites: each point of each layer, of head_out each head, at each position. */
export interface Grid {
  layers: number[];
  points: ChangedPoint[];
  /** Of head_out. */
  heads?: number[];
  /** As asked for: they may count from the end, or be numbers of spans. */
  positions: number[];
  /** What is put in at each position, in order. */
  places: PatchPlace[];
  /** Numbers of each place. */
  widths: number[];
}

/** A prompt as the model sees it, and where it is patched. */
export interface PairPrompt {
  tokens: Int32Array;
  /** Token indices, from 0. */
  positions: number[];
  /** Of a marked text, what each position is the last token of. */
  spans?: string[];
}

export interface Pair {
  clean: PairPrompt;
  corrupted: PairPrompt;
  target?: number;
  foil?: number;
}

/** Logit differences of the run that is patched, and of the one that the states are from. */
interface Sides {
  base: number;
  donor: number;
}

/** What the sweeps of all pairs say together: means over the pairs, and how far chance alone moves them. */
export async function describePatches(
  config: PatchSweepConfig,
  model: Model,
  grid: Grid,
  pairs: Pair[],
  sweeps: PatchSweep[],
  sidePath: string,
): Promise<Findings<PatchSweepResult>> {
  const denoise = config.direction === "denoise";
  const sides: Sides[] = sweeps.map(({ clean, corrupted }) =>
    denoise ? { base: corrupted, donor: clean } : { base: clean, donor: corrupted },
  );
  const sum = (of: (sweep: PatchSweep) => number) => sweeps.reduce((total, sweep) => total + of(sweep), 0);
  const mean = (of: (sweep: PatchSweep) => number) => sum(of) / sweeps.length;
  const described = await describePairs(model, pairs, sweeps);
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

async function describePairs(model: Model, pairs: Pair[], sweeps: PatchSweep[]): Promise<PatchPair[]> {
  const ids = pairs.flatMap(({ clean, corrupted }) => [...clean.tokens, ...corrupted.tokens]);
  const piece = await pieceLookup(model, [...ids, ...sweeps.flatMap(({ target, foil }) => [target, foil])]);
  const prompt = ({ tokens, positions, spans }: PairPrompt, logit_difference: number) => ({
    tokens: Array.from(tokens, piece),
    token_ids: [...tokens],
    ...(spans && { spans: spans.map((text, index) => ({ text, position: positions[index] as number })) }),
    logit_difference,
  });
  return pairs.map(({ clean, corrupted }, index) => {
    const sweep = sweeps[index] as PatchSweep;
    return {
      clean: prompt(clean, sweep.clean),
      corrupted: prompt(corrupted, sweep.corrupted),
      restored: sweep.restored,
      target_token: piece(sweep.target),
      target_token_id: sweep.target,
      foil_token: piece(sweep.foil),
      foil_token_id: sweep.foil,
    };
  });
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

/** What a site puts in. */
function statesText(points: PatchSweepConfig["points"]): string {
  if (points.join() === "block_out") return "one block output";
  const rows = points.filter((point) => point !== "head_out");
  return [
    ...(rows.length === 0 ? [] : [`one block's ${rows.join(", or its ")}`]),
    ...(rows.length === points.length ? [] : ["what one head read (head_out)"]),
  ].join(", or ");
}

function noteOf(config: PatchSweepConfig, pairs: PatchPair[], sides: Sides[], sidePath: string): string {
  const [from, into] = config.direction === "denoise" ? ["clean", "corrupted"] : ["corrupted", "clean"];
  const same = sides.filter(({ base, donor }) => Math.abs(donor - base) < leastDifference).length;
  const wrong = pairs.filter(({ clean }) => clean.logit_difference <= 0).length;
  const of = pairs.length === 1 ? "the pair" : `${pairs.length} pairs`;
  return [
    `Each site puts ${statesText(config.points)} of the ${from} run into the ${into} run, at ` +
      `${config.positions === alignedPositions ? "the last token of one span" : "one token"}; later tokens compute with it.`,
    config.direction === "denoise"
      ? "A site that restores the answer is enough for it; that does not say that it is needed."
      : "A site that spoils the answer is needed for it; that does not say that it is enough.",
    same === 0
      ? ""
      : `The two runs of ${same} of ${of} do not differ, so nothing can be recovered between them.`,
    wrong === 0 ? "" : `The clean run of ${wrong} of ${of} gives the foil at least the target's logit.`,
    sidePath,
  ]
    .filter((part) => part !== "")
    .join(" ");
}
