import type { PatchSweepConfig, PatchSweepResult } from "../../contracts/index.js";
import { limits } from "../../contracts/limits.js";
import { alignedPositions } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import type { Artifacts } from "../../lab/artifacts.js";
import { writeNpz } from "../../lab/npz.js";
import { headSize, headsOf } from "../../lab/rows/heads.js";
import { checkPoints, inContext } from "../../lab/rows/open-context.js";
import { checkLayers, spaceNote, targetToken, tokenizeInput } from "../../lab/rows/tokens.js";
import { randomVector } from "../../library/index.js";
import {
  type Context,
  type Model,
  type PatchGrowth,
  type PatchSweep,
  patchCells,
  patchPlaces,
} from "../../native/index.js";
import type { Findings, OperationInput, Run, Split } from "../run.js";
import { runWhole } from "../run-parts.js";
import { type MarkedText, readMarks } from "./contract-marked-text.js";
import { promptPairs } from "./contract-pairs.js";
import { lastTokens } from "./run-aligned-spans.js";
import {
  describePatches,
  type Grid,
  leastDifference,
  type Pair,
  type PairPrompt,
  type SweptPair,
  sweptPair,
} from "./run-figures.js";
import { gridOfPoints, itemsOfPair, pairsOf, pairsOfItems } from "./run-points.js";

/** Maximum number of sequences in a context: the sites of one batch, and the run that they branch from. */
const mostSequences = 256;
/** Tokens per batch; a longer prompt determines its own. */
const batchTokens = 512;
/** Larger sweeps report only their progress while running, not partial results. */
const growingSites = 4096;
/** Memory limit of the activations of two prompts. */
const stateBytes = 1024 ** 3;

/** What all pairs share. */
interface Head {
  grid: Grid;
  sidePath: string;
}

/**
 * Activation patching (Vig et al. 2020; Meng et al. 2022): patches each layer's output, or another hook point, at each token
 * of one prompt into a run on the other, one site at a time, and reports how the logit difference between two tokens changes.
 */
export function patchSweep(input: OperationInput<PatchSweepConfig>): Promise<Findings<PatchSweepResult>> {
  return runWhole(split, input);
}

/** The items are the points of the pairs. */
const split: Split<PatchSweepConfig, PatchSweepResult, Head, SweptPair> = {
  count: (config) => promptPairs(config).length * config.points.length,
  async compute(input, own) {
    const { config, model, clock } = input;
    if (config.layers !== undefined) checkLayers(model, config.layers);
    const pairs = await tokenizePairs(input);
    return inContext(input, contextSize(pairs), async (context) => {
      checkPoints(context, config.points);
      const grid = gridOf(config, model, context, pairs);
      checkSize(grid, pairs);
      const chosen = pairsOf(own, grid.points);
      const hints = await clock.measure("compute", () =>
        spaceHints(
          input,
          context,
          chosen.map(({ pair }) => pairs[pair] as Pair),
        ),
      );
      const items: SweptPair[] = [];
      for (const [n, { pair, points }] of chosen.entries()) {
        const place = { done: n, total: chosen.length };
        const sites = gridOfPoints(grid, points);
        const sweep = await clock.measure("compute", () =>
          sweepPair(input, context, sites, pairs, pair, place),
        );
        const swept = await sweptPair(model, pairs[pair] as Pair, sweep, hints[n] as string[]);
        items.push(...itemsOfPair(sites, swept));
      }
      return { head: { grid, sidePath: context.blockOutputs.sidePath }, items };
    });
  },
  async finish(config, { head: { grid, sidePath }, items }, artifacts) {
    const pairs = pairsOfItems(grid, items);
    await writeArrays(artifacts, config, grid, pairs);
    const described = describePatches(config, grid, pairs, sidePath);
    const hints = new Set(pairs.flatMap(({ hints }) => hints));
    return { ...described, note: [...hints, described.note].join(" ") };
  },
};

/** The sites to patch. Default layers: those that have all of the points. */
function gridOf(config: PatchSweepConfig, model: Model, context: Context, pairs: Pair[]): Grid {
  const { points } = config;
  const first = context.points[points[0] as Grid["points"][number]].layers;
  const having = first.filter((layer) =>
    points.every((point) => context.points[point].layers.includes(layer)),
  );
  const layers = config.layers ?? having;
  const positions = Array.isArray(config.positions)
    ? config.positions
    : [...(pairs[0] as Pair).clean.positions.keys()];
  const heads = points.includes("head_out") ? headsOf(context, layers, config.heads) : undefined;
  const places = patchPlaces({ layers, points, heads });
  const sizeOf = ({ layer, head }: (typeof places)[number]) =>
    head === undefined ? model.info.nEmbd : headSize(context, layer);
  return { layers, points, ...(heads && { heads }), positions, places, widths: places.map(sizeOf) };
}

async function tokenizePairs({ config, model }: OperationInput<PatchSweepConfig>): Promise<Pair[]> {
  const pairs: Pair[] = [];
  const aligned = config.positions === alignedPositions;
  for (const [index, pair] of promptPairs(config).entries()) {
    const where = config.pairs === undefined ? "" : `pairs[${index}].`;
    const read = async (side: "clean" | "corrupted") => {
      const marked = aligned ? readMarks(pair[side], `${where}${side}`) : undefined;
      const text = marked?.text ?? pair[side];
      const tokens = await tokenizeInput(model, text, config.max_input_tokens, `${where}${side}`);
      return promptOf(model, config, tokens, `${where}${side}`, marked);
    };
    const [clean, corrupted] = [await read("clean"), await read("corrupted")];
    const size = ({ tokens, positions }: PairPrompt) => (aligned ? positions : tokens).length;
    if (size(clean) !== size(corrupted)) {
      throw new UserError(
        aligned
          ? `${where}clean marks ${spansText(clean)} and ${where}corrupted ${corrupted.positions.length}; both must mark the same number.`
          : `${where}clean has ${clean.tokens.length} tokens and ${where}corrupted ${corrupted.tokens.length}; both must have the same number of tokens: ` +
              `${await spelled(model, clean.tokens)} vs. ${await spelled(model, corrupted.tokens)}.`,
      );
    }
    pairs.push({
      clean,
      corrupted,
      ...(pair.target_token === undefined
        ? {}
        : { target: await targetToken(model, pair.target_token, `${where}target_token`) }),
      ...(pair.foil_token === undefined
        ? {}
        : { foil: await targetToken(model, pair.foil_token, `${where}foil_token`) }),
    });
  }
  checkAlike(config, pairs);
  return pairs;
}

function spansText({ positions }: PairPrompt): string {
  return `${positions.length} ${positions.length === 1 ? "span" : "spans"}`;
}

/** @throws UserError if positions do not correspond between the pairs */
function checkAlike({ positions }: PatchSweepConfig, pairs: Pair[]): void {
  const [first, ...others] = pairs as [Pair, ...Pair[]];
  const differs = (size: (pair: Pair) => number) => others.findIndex((pair) => size(pair) !== size(first));
  if (positions === alignedPositions) {
    const other = differs(({ clean }) => clean.positions.length);
    if (other === -1) return;
    throw new UserError(
      `pairs[0] marks ${spansText(first.clean)} and pairs[${other + 1}] ${others[other]?.clean.positions.length}; ` +
        "all pairs must mark the same number, because results are means over the pairs.",
    );
  }
  const other = differs(({ clean }) => clean.tokens.length);
  if (other !== -1 && positions?.every((position) => position < 0) !== true) {
    throw new UserError(
      `pairs[0] has ${first.clean.tokens.length} tokens and pairs[${other + 1}] ${others[other]?.clean.tokens.length}; token indices do not correspond between ` +
        "pairs of different lengths. Use negative positions, such as -1, or mark spans in the texts.",
    );
  }
}

/** The first tokens of a prompt, for an error message. */
async function spelled(model: Model, tokens: Int32Array): Promise<string> {
  const shown = 24;
  const pieces = (await model.pieces(tokens.slice(0, shown))).map((piece) => JSON.stringify(piece)).join(" ");
  return tokens.length > shown ? `${pieces} …` : pieces;
}

/** A prompt and the positions to patch: the last tokens of its marked spans, or token indices from 0. @throws UserError */
async function promptOf(
  model: Model,
  { positions }: PatchSweepConfig,
  tokens: Int32Array,
  what: string,
  marked: MarkedText | undefined,
): Promise<PairPrompt> {
  if (marked !== undefined) {
    const spans = marked.spans.map(({ text }) => text);
    return { tokens, positions: await lastTokens(model, tokens, marked, what), spans };
  }
  if (!Array.isArray(positions)) return { tokens, positions: [...tokens.keys()] };
  const places = positions.map((position) => (position < 0 ? tokens.length + position : position));
  for (const [index, place] of places.entries()) {
    const given = positions[index] as number;
    if (place < 0 || place >= tokens.length) {
      throw new UserError(
        `positions: ${given} does not exist; ${what} has ${tokens.length} tokens, 0 to ${tokens.length - 1} or -${tokens.length} to -1.`,
      );
    }
    const earlier = places.indexOf(place);
    if (earlier !== index) {
      throw new UserError(
        `positions: ${positions[earlier]} and ${given} are the same token of ${tokens.length}.`,
      );
    }
  }
  return { tokens, positions: places };
}

/** Rejects oversized sweeps before anything is computed. */
function checkSize({ layers, points, heads, positions, places, widths }: Grid, pairs: Pair[]): void {
  const sites = places.length * positions.length;
  const others = points.filter((point) => point !== "head_out").length;
  const factors = [
    `${layers.length} layers`,
    ...(others === 0 ? [`${heads?.length} heads`] : []),
    ...(others > 0 && heads !== undefined
      ? [`(${others} ${others === 1 ? "point" : "points"} and ${heads.length} heads)`]
      : []),
    ...(others > 1 && heads === undefined ? [`${others} points`] : []),
    `${positions.length} ${pairs[0]?.clean.spans === undefined ? "positions" : "spans"}`,
  ];
  const grid = `${factors.join(" times ")} are ${sites} sites`;
  const choose = `choose fewer ${heads === undefined ? "layers" : "layers, heads"} or positions`;
  if (sites > limits.patch_sites) {
    throw new UserError(`${grid}; the limit is ${limits.patch_sites}: ${choose}.`);
  }
  const numbers = widths.reduce((sum, width) => sum + width, 0) * positions.length;
  const bytes = 2 * numbers * 4;
  if (bytes > stateBytes) {
    throw new UserError(
      `${grid} with ${numbers} values, which take ${Math.ceil(bytes / 1024 ** 2)} MiB for both prompts; the limit is ` +
        `${stateBytes / 1024 ** 2} MiB: ${choose}.`,
    );
  }
  const figures = sites * pairs.length;
  const most = 16 * limits.patch_sites;
  if (figures > most) {
    throw new UserError(`${grid}, ${figures} for ${pairs.length} pairs; the limit is ${most}: ${choose}.`);
  }
}

function contextSize(pairs: Pair[]) {
  const longest = Math.max(
    ...pairs.flatMap(({ clean, corrupted }) => [clean.tokens.length, corrupted.tokens.length]),
  );
  return {
    nCtx: patchCells(longest, batchTokens),
    nBatch: Math.max(longest, batchTokens),
    maxSequences: mostSequences,
  };
}

/**
 * Whether a given target, or foil, is what the clean run answers, or the corrupted one, but for the leading space.
 * @returns notes of each pair
 */
async function spaceHints(
  { model, signal }: OperationInput<PatchSweepConfig>,
  context: Context,
  pairs: readonly Pair[],
): Promise<string[][]> {
  const hints: string[][] = [];
  for (const { clean, corrupted, target, foil } of pairs) {
    const found = new Set<string>();
    for (const [given, { tokens }, what] of [
      [target, clean, "target"],
      [foil, corrupted, "foil"],
    ] as const) {
      if (given === undefined) continue;
      await context.reset();
      const { next } = await context.advance({
        ...{ tokens, layers: [], nextTopK: 1 },
        ...(signal === undefined ? {} : { signal }),
      });
      const [wanted, answer] = await model.pieces(Int32Array.of(given, next?.tokenIds[0] as number));
      found.add(spaceNote(wanted as string, answer as string, what));
    }
    found.delete("");
    hints.push([...found]);
  }
  return hints;
}

async function sweepPair(
  { config, model, progress, signal }: OperationInput<PatchSweepConfig>,
  context: Context,
  grid: Grid,
  pairs: Pair[],
  index: number,
  items: { done: number; total: number },
): Promise<PatchSweep> {
  const { clean, corrupted, target, foil } = pairs[index] as Pair;
  const { layers, points, heads, positions, places } = grid;
  const spelled = ({ tokens, positions }: PairPrompt) =>
    model.pieces(Int32Array.from(positions, (position) => tokens[position] as number));
  // Partial results are sent repeatedly. For a large sweep that would cost too much, and heads have no map over tokens.
  const pieces =
    heads === undefined && places.length * positions.length <= growingSites
      ? { clean: await spelled(clean), corrupted: await spelled(corrupted) }
      : undefined;
  return context.patchSweep({
    clean: clean.tokens,
    corrupted: corrupted.tokens,
    denoise: config.direction === "denoise",
    layers,
    points,
    ...(heads && { heads }),
    positions: clean.positions,
    corruptedPositions: corrupted.positions,
    ...(target === undefined ? {} : { target }),
    ...(foil === undefined ? {} : { foil }),
    ...(config.controls ? { controls: randomDirections(grid, config.seed + index) } : {}),
    onProgress: (done, total, growth) =>
      progress({
        ...{ stage: "patch", done: items.done + done / Math.max(1, total), total: items.total },
        ...(pieces && {
          growth: {
            ...{ pair: index, pairs: pairs.length, layers, points, positions: clean.positions, ...pieces },
            recovery: recoveries(growth, config.direction),
          },
        }),
      }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** Recoveries; null if not computed yet or undefined. */
function recoveries(
  { clean, corrupted, patched }: PatchGrowth,
  direction: PatchSweepConfig["direction"],
): (number | null)[] {
  const [from, to] = direction === "denoise" ? [corrupted, clean] : [clean, corrupted];
  const way = to - from;
  return Array.from(patched, (difference) =>
    Number.isNaN(difference) || Math.abs(way) < leastDifference
      ? null
      : Number(((difference - from) / way).toPrecision(4)),
  );
}

/** A random direction for each place, concatenated; independent of which other places are chosen. */
function randomDirections({ places, widths }: Grid, seed: number): Float32Array {
  const directions = new Float32Array(widths.reduce((sum, width) => sum + width, 0));
  let start = 0;
  for (const [index, { layer }] of places.entries()) {
    const width = widths[index] as number;
    // All points and heads of one block share a direction, so that differences come from the place.
    directions.set(randomVector(width, 1, seed * (limits.layer_index + 1) + layer), start);
    start += width;
  }
  return directions;
}

/**
 * Writes the values per pair whose means the result has: float64 [pairs, layers, positions], or [pairs, layers, heads,
 * positions] for heads; one array per point.
 */
async function writeArrays(
  artifacts: Artifacts,
  config: PatchSweepConfig,
  { layers, points, heads = [], positions, places }: Grid,
  pairs: readonly SweptPair[],
): Promise<void> {
  const sweeps = pairs.map(({ sweep }) => sweep);
  const all = (name: string, of: (sweep: PatchSweep) => Float64Array) =>
    Object.fromEntries(
      points.map((point) => {
        const own = places.flatMap((place, index) => (place.point === point ? [index] : []));
        const data = new Float64Array(sweeps.length * own.length * positions.length);
        for (const [pair, sweep] of sweeps.entries()) {
          for (const [row, place] of own.entries()) {
            const values = of(sweep).subarray(place * positions.length, (place + 1) * positions.length);
            data.set(values, (pair * own.length + row) * positions.length);
          }
        }
        const each = point === "head_out" ? [layers.length, heads.length] : [layers.length];
        const shape = [sweeps.length, ...each, positions.length];
        return [point === "block_out" ? name : `${name}_${point}`, { shape, data }];
      }),
    );
  const each = (of: (sweep: PatchSweep) => number) => ({
    shape: [sweeps.length],
    data: Float64Array.from(sweeps, of),
  });
  const list = (values: number[]) => ({ shape: [values.length], data: Int32Array.from(values) });
  const tokens = (side: "clean" | "corrupted") => ({
    shape: [pairs.length, positions.length],
    data: Int32Array.from(pairs.flatMap((pair) => pair.positions[side])),
  });
  await writeNpz(artifacts, "patch-sweep.npz", {
    layers: list(layers),
    ...(heads.length > 0 && { heads: list(heads) }),
    positions: list(positions),
    ...(pairs[0]?.described.clean.spans && {
      clean_positions: tokens("clean"),
      corrupted_positions: tokens("corrupted"),
    }),
    clean: each(({ clean }) => clean),
    corrupted: each(({ corrupted }) => corrupted),
    restored: each(({ restored }) => restored),
    ...all("logit_difference", ({ patched }) => patched),
    ...(config.controls ? all("control", ({ control }) => control as Float64Array) : {}),
  });
}

export default {
  run: patchSweep,
  split,
  layers: ({ layers }) => layers,
} satisfies Run<"patch_sweep">;
