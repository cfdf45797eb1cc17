import { promptPairs } from "../../contracts/check-patch-sweep.js";
import type { PatchSweepConfig, PatchSweepResult } from "../../contracts/index.js";
import { limits } from "../../contracts/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { randomVector } from "../../library/index.js";
import { type Context, type Model, type PatchSweep, patchCells } from "../../native/index.js";
import { writeNpz } from "../npz.js";
import { checkPoints, openContext } from "./open-context.js";
import type { Findings, OperationInput } from "./operation.js";
import { describePatches, type Grid, type Pair } from "./patch-sweep-figures.js";
import { checkLayers, targetToken, tokenizeInput } from "./tokens.js";

/** Sequences that a context holds at once: sites of one batch, and the run that they leave. */
const mostSequences = 256;
/** Tokens of a batch; of a prompt that is longer, its own. */
const batchTokens = 512;
/** Most memory that the states of two prompts may take. */
const stateBytes = 1024 ** 3;
/**
 * Puts each layer's output at each token of one prompt into the run of the other, a site at a time, and tells how far the
 * logit difference between two tokens goes with it (activation patching: Vig et al. 2020; Meng et al. 2022).
 */
export async function patchSweep(
  input: OperationInput<PatchSweepConfig>,
): Promise<Findings<PatchSweepResult>> {
  const { config, model, clock } = input;
  const layers = config.layers ?? Array.from({ length: model.info.nLayer }, (_, layer) => layer);
  checkLayers(model, layers);
  const pairs = await tokenizePairs(input);
  const positions = config.positions ?? [...(pairs[0] as Pair).clean.keys()];
  const grid = { layers, points: config.points, positions };
  checkSize(model, grid, pairs);
  const sweeps: PatchSweep[] = [];
  const context = await clock.measure("context", () => openContext(model, contextSize(pairs)));
  try {
    checkPoints(context, grid.points);
    for (const index of pairs.keys()) {
      sweeps.push(await clock.measure("compute", () => sweepPair(input, context, grid, pairs, index)));
    }
    await clock.measure("artifact", () => writeArrays(input, grid, sweeps));
    return await describePatches(config, model, grid, pairs, sweeps, context.blockOutputs.sidePath);
  } finally {
    await context.close();
  }
}

async function tokenizePairs({ config, model }: OperationInput<PatchSweepConfig>): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for (const [index, pair] of promptPairs(config).entries()) {
    const where = config.pairs === undefined ? "" : `pairs[${index}].`;
    const read = (side: "clean" | "corrupted") =>
      tokenizeInput(model, pair[side], config.max_input_tokens, `${where}${side}`);
    const [clean, corrupted] = [await read("clean"), await read("corrupted")];
    if (clean.length !== corrupted.length) {
      throw new UserError(
        `${where}clean has ${clean.length} tokens and ${where}corrupted ${corrupted.length}; positions need as many in both: ` +
          `${await spelled(model, clean)} against ${await spelled(model, corrupted)}.`,
      );
    }
    pairs.push({
      clean,
      corrupted,
      positions: placesOf(config, clean.length, where),
      ...(pair.target_token === undefined
        ? {}
        : { target: await targetToken(model, pair.target_token, `${where}target_token`) }),
      ...(pair.foil_token === undefined
        ? {}
        : { foil: await targetToken(model, pair.foil_token, `${where}foil_token`) }),
    });
  }
  const [first, ...others] = pairs as [Pair, ...Pair[]];
  const other = others.findIndex(({ clean }) => clean.length !== first.clean.length);
  if (other !== -1 && config.positions?.every((position) => position < 0) !== true) {
    throw new UserError(
      `pairs[0] has ${first.clean.length} tokens and pairs[${other + 1}] ${others[other]?.clean.length}; pairs of different ` +
        "lengths have no token in common by its index: give positions that count from the end, as -1.",
    );
  }
  return pairs;
}

/** The first tokens of a prompt, for a sentence. */
async function spelled(model: Model, tokens: Int32Array): Promise<string> {
  const shown = 24;
  const pieces = (await model.pieces(tokens.slice(0, shown))).map((piece) => JSON.stringify(piece)).join(" ");
  return tokens.length > shown ? `${pieces} …` : pieces;
}

/** Token indices from 0, of positions that may count from the end. @throws UserError where there is no such token */
function placesOf({ positions }: PatchSweepConfig, tokens: number, where: string): number[] {
  if (positions === undefined) return Array.from({ length: tokens }, (_, place) => place);
  const places = positions.map((position) => (position < 0 ? tokens + position : position));
  for (const [index, place] of places.entries()) {
    const said = positions[index] as number;
    if (place < 0 || place >= tokens) {
      throw new UserError(
        `positions: ${said} does not exist; ${where}clean has ${tokens} tokens, 0 to ${tokens - 1} or -${tokens} to -1.`,
      );
    }
    const earlier = places.indexOf(place);
    if (earlier !== index)
      throw new UserError(`positions: ${positions[earlier]} and ${said} are the same of ${tokens} tokens.`);
  }
  return places;
}

/** Tells what would be too much before anything is computed. */
function checkSize(model: Model, { layers, points, positions }: Grid, pairs: Pair[]): void {
  const sites = layers.length * points.length * positions.length;
  const times = points.length === 1 ? "" : ` times ${points.length} points`;
  const grid = `${layers.length} layers${times} times ${positions.length} positions are ${sites} sites`;
  if (sites > limits.patch_sites) {
    throw new UserError(
      `${grid}; at most ${limits.patch_sites} are patched at once: choose layers or positions.`,
    );
  }
  const bytes = 2 * sites * model.info.nEmbd * 4;
  if (bytes > stateBytes) {
    throw new UserError(
      `${grid} of ${model.info.nEmbd} numbers, which take ${Math.ceil(bytes / 1024 ** 2)} MiB for both prompts; at most ` +
        `${stateBytes / 1024 ** 2} MiB are kept: choose layers or positions.`,
    );
  }
  const figures = sites * pairs.length;
  const most = 16 * limits.patch_sites;
  if (figures > most) {
    throw new UserError(
      `${grid}, for ${pairs.length} pairs ${figures}; at most ${most}: choose layers or positions.`,
    );
  }
}

function contextSize(pairs: Pair[]) {
  const longest = Math.max(...pairs.map(({ clean }) => clean.length));
  return {
    nCtx: patchCells(longest, batchTokens),
    nBatch: Math.max(longest, batchTokens),
    maxSequences: mostSequences,
  };
}

function sweepPair(
  { config, model, progress, signal }: OperationInput<PatchSweepConfig>,
  context: Context,
  { layers, points }: Grid,
  pairs: Pair[],
  index: number,
): Promise<PatchSweep> {
  const { clean, corrupted, positions, target, foil } = pairs[index] as Pair;
  return context.patchSweep({
    clean,
    corrupted,
    denoise: config.direction === "denoise",
    layers,
    points,
    positions,
    ...(target === undefined ? {} : { target }),
    ...(foil === undefined ? {} : { foil }),
    ...(config.controls
      ? { controls: randomDirections(model.info.nEmbd, { layers, points }, config.seed + index) }
      : {}),
    onProgress: (done, total) =>
      progress({ stage: "patch", done: index + done / Math.max(1, total), total: pairs.length }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** A direction for each place, [layers, points, hidden], that another choice of places does not change. */
function randomDirections(
  hidden: number,
  { layers, points }: Omit<Grid, "positions">,
  seed: number,
): Float32Array {
  const directions = new Float32Array(layers.length * points.length * hidden);
  for (const [row, layer] of layers.entries()) {
    // Points of one block get one direction: what is compared are places, not draws.
    const direction = randomVector(hidden, 1, seed * (limits.layer_index + 1) + layer);
    for (const at of points.keys()) directions.set(direction, (row * points.length + at) * hidden);
  }
  return directions;
}

/** Of every pair what the result has as means: float64 [pairs, layers, positions]; for several points one of each. */
async function writeArrays(
  { artifacts, config }: OperationInput<PatchSweepConfig>,
  { layers, points, positions }: Grid,
  sweeps: PatchSweep[],
): Promise<void> {
  const shape = [sweeps.length, layers.length, positions.length];
  const all = (name: string, of: (sweep: PatchSweep) => Float64Array) =>
    Object.fromEntries(
      points.map((point, at) => {
        const rows = sweeps.flatMap((sweep) =>
          layers.map((_, layer) => {
            const start = (layer * points.length + at) * positions.length;
            return of(sweep).subarray(start, start + positions.length);
          }),
        );
        const data = new Float64Array(rows.length * positions.length);
        for (const [row, values] of rows.entries()) data.set(values, row * positions.length);
        return [point === "block_out" ? name : `${name}_${point}`, { shape, data }];
      }),
    );
  const each = (of: (sweep: PatchSweep) => number) => ({
    shape: [sweeps.length],
    data: Float64Array.from(sweeps, of),
  });
  await writeNpz(artifacts, "patch-sweep.npz", {
    layers: { shape: [layers.length], data: Int32Array.from(layers) },
    positions: { shape: [positions.length], data: Int32Array.from(positions) },
    clean: each(({ clean }) => clean),
    corrupted: each(({ corrupted }) => corrupted),
    restored: each(({ restored }) => restored),
    ...all("logit_difference", ({ patched }) => patched),
    ...(config.controls ? all("control", ({ control }) => control as Float64Array) : {}),
  });
}
