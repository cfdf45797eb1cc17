import type { Change, CompareConfig, CompareResult } from "../../contracts/index.js";
import { interventionOf } from "../../contracts/interventions.js";
import { pointField } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { taplineHome } from "../../files/home.js";
import { headSize, headsOf } from "../../lab/rows/heads.js";
import { checkPoints, inContext } from "../../lab/rows/open-context.js";
import {
  checkLayers,
  checkPositions,
  pieceLookup,
  spaceNote,
  targetToken,
  tokenizeInput,
} from "../../lab/rows/tokens.js";
import { Dictionaries, lengthOf, randomVector } from "../../library/index.js";
import {
  type Context,
  type ContextOptions,
  type Edit,
  type EditEffect,
  type FeaturePlace,
  type Model,
  type SweepTrial,
  sweepCells,
} from "../../native/index.js";
import type { Findings, OperationInput, Run } from "../run.js";
import { positionText } from "./contract-position-text.js";
import { promptsOf } from "./contract-prompts.js";
import { editFor, editsFor, meanDifference } from "./run-intervention.js";
import { compareNote } from "./run-note.js";
import { type Swap, swapOf } from "./run-swap.js";
import { type SweepOne, swapTrials } from "./run-swap-trials.js";

/** Maximum number of sequences in a context. */
const mostSequences = 64;
/** Memory limit of a sweep's K/V cache, by the upper bound below. */
const cacheBytes = 1024 ** 3;

/**
 * Compares each prompt's next token and greedy continuation with and without an edit of the first selected block, for
 * every strength, all in shared batches.
 */
export async function compare(input: OperationInput<CompareConfig>): Promise<Findings<CompareResult>> {
  const { config, model, clock, progress, signal } = input;
  checkLayers(model, config.layers);
  const layer = config.layers[0] as number;
  const texts = promptsOf(config);
  const prompts = await tokenizeAll(model, config, texts);
  const target = config.target_token === undefined ? -1 : await targetToken(model, config.target_token);
  const given = await vectorTexts(model, config);
  const seeds = config.controls === true ? [config.seed] : [];
  const tries = config.strengths.length * (1 + seeds.length);
  return inContext(input, contextSize(config, model, prompts, given.flat(), tries), async (context) => {
    const point = config.point ?? "block_out";
    checkPoints(context, [point]);
    if (point === "head_out") headsOf(context, [layer], config.heads);
    const { vector, feature } = await clock.measure("compute", () =>
      editVector(input, context, layer, given),
    );
    const swap = config.intervention === "swap" ? await swapOf(config, model, context) : undefined;
    const length = vector === undefined ? undefined : lengthOf(vector);
    const controls = seeds.map((seed) => randomVector(vector?.length ?? model.info.nEmbd, length ?? 0, seed));
    const sweep = (
      of: Int32Array[],
      plans: Edit[][],
      followed = target,
      onProgress: (done: number, total: number) => void = (done, total) =>
        progress({ stage: "sweep", done, total }),
    ) =>
      context.sweep({
        prompts: of,
        plans,
        targets: new Int32Array(of.length).fill(followed),
        maxTokens: config.max_tokens,
        onProgress,
        ...(signal === undefined ? {} : { signal }),
      });
    const trials = await clock.measure("compute", async () => {
      if (swap === undefined) {
        const plans = [vector, ...controls].flatMap((along) =>
          config.strengths.map((strength) => editsFor(config, layer, strength, along, feature)),
        );
        return sweep(prompts, plans);
      }
      // The inserted values differ between prompts.
      const sweepOne: SweepOne = async (prompt, plans, { target: followed = target, pass, passes }) => {
        const [trial] = await sweep([prompt], plans, followed, (done, total) =>
          progress({ stage: "sweep", done: pass * total + done, total: passes * total }),
        );
        return trial as SweepTrial;
      };
      return swapTrials(config, context, prompts, swap, { seeds, sweepOne, signal });
    });
    checkFinite(config, trials);
    const described = await describe(model, config, layer, texts, trials);
    return {
      trials: described,
      intervention: config.intervention,
      ...pointField(point),
      ...(config.heads === undefined ? {} : { heads: config.heads }),
      ...(swap && (await swapped(model, config, swap))),
      position: positionText(config.positions, config.intervention),
      ...(config.strength_unit === undefined ? {} : { strength_unit: config.strength_unit }),
      ...(length === undefined ? {} : { vector_length: length }),
      ...(seeds[0] === undefined ? {} : { control_seed: seeds[0] }),
      note: [
        target === -1 ? "" : await spaceNotes(model, trials),
        compareNote(config, described, context.blockOutputs.sidePath),
      ]
        .filter((part) => part !== "")
        .join(" "),
    };
  });
}

/** The fields of a result that describe a swap. */
async function swapped(
  model: Model,
  { layers }: CompareConfig,
  { tokens, lens }: Swap,
): Promise<Pick<CompareResult, "layers" | "swapped" | "lens">> {
  const pieces = await model.pieces(Int32Array.from(tokens));
  return {
    layers,
    swapped: pieces.map((token, i) => ({ token, token_id: tokens[i] as number })),
    ...(lens && { lens }),
  };
}

async function tokenizeAll(model: Model, config: CompareConfig, texts: string[]): Promise<Int32Array[]> {
  return Promise.all(
    texts.map(async (text, index) => {
      const what = nameOf(config, index);
      const tokens = await tokenizeInput(model, text, config.max_input_tokens, what);
      checkPositions(
        model,
        tokens.length + config.max_tokens,
        `${what} has ${tokens.length} tokens and max_tokens adds ${config.max_tokens}`,
      );
      return tokens;
    }),
  );
}

/** How an error names a prompt. */
function nameOf(config: CompareConfig, index: number): string {
  return config.prompts === undefined ? "prompt" : `prompts[${index}]`;
}

/**
 * Tokens of the texts whose activations an intervention needs: none, the donor's, or those of a direction's two sides.
 */
async function vectorTexts(model: Model, config: CompareConfig): Promise<Int32Array[][]> {
  const sides: Array<[name: string, texts: string[]]> = [];
  const { needs } = interventionOf(config.intervention);
  if (needs === "donor") sides.push(["donor_prompt", [config.donor_prompt as string]]);
  else if (needs === "direction" && config.feature === undefined) {
    for (const side of ["positive", "negative"] as const) {
      const many = config[`${side}s`];
      sides.push(many === undefined ? [side, [config[side] as string]] : [`${side}s`, many]);
    }
  }
  return Promise.all(
    sides.map(([name, texts]) =>
      Promise.all(
        texts.map((text, index) =>
          tokenizeInput(
            model,
            text,
            config.max_input_tokens,
            name.endsWith("s") ? `${name}[${index}]` : name,
          ),
        ),
      ),
    ),
  );
}

/**
 * The donor's activation, the difference of the two sides' means, or a feature's decoder row; undefined if the
 * intervention needs no vector.
 */
async function editVector(
  { config, model, progress, signal }: OperationInput<CompareConfig>,
  context: Context,
  layer: number,
  sides: Int32Array[][],
): Promise<{ vector?: Float32Array; feature?: FeaturePlace }> {
  if (config.feature !== undefined) {
    const [name, index] = config.feature as [string, number];
    return new Dictionaries(taplineHome()).direction(name, index, layer, model.info, config.point);
  }
  const [first, second] = sides;
  if (first === undefined) return {};
  progress({ stage: "capture", done: 0, total: sides.flat().length });
  if (config.point === "head_out") {
    const row = await lastRow(context, first[0] as Int32Array, layer, signal);
    const size = headSize(context, layer);
    const parts = config.heads?.map((head) => row.subarray(head * size, (head + 1) * size)) ?? [row];
    return { vector: Float32Array.from(parts.flatMap((part) => [...part])) };
  }
  const features = await context.features({
    sequences: sides.flat(),
    layers: [layer],
    point: config.point ?? "block_out",
    onProgress: (done, total) => progress({ stage: "capture", done, total }),
    ...(signal === undefined ? {} : { signal }),
  });
  const states = features.get(layer)?.data as Float32Array;
  const vector =
    second === undefined ? states.slice() : meanDifference(states, first.length, model.info.nEmbd);
  return { vector };
}

/** The outputs of a block's heads at a text's last token, concatenated. */
async function lastRow(
  context: Context,
  tokens: Int32Array,
  layer: number,
  signal: AbortSignal | undefined,
): Promise<Float32Array> {
  await context.reset();
  const { layers } = await context.advance({
    tokens,
    layers: [layer],
    points: ["head_out"],
    rows: "last",
    ...(signal === undefined ? {} : { signal }),
  });
  await context.reset();
  return layers[0]?.states?.data as Float32Array;
}

/** Room for as many prompts as fit into the cache's memory limit, and for at least one. */
function contextSize(
  config: CompareConfig,
  model: Model,
  prompts: Int32Array[],
  others: Int32Array[],
  tries: number,
): ContextOptions {
  const one: Edit[] =
    config.intervention === "swap" ? [{ layer: 0, positions: [[0, 0]] }] : [editFor(config, 0, 0, undefined)];
  const plans = Array.from({ length: tries }, () => one);
  const needs = prompts.map((tokens) => sweepCells(tokens.length, plans, config.max_tokens));
  const longest = Math.max(...[...prompts, ...others].map(({ length }) => length));
  // Keys and values of every head in float16; models with shared K/V heads need less.
  const bytesPerToken = 4 * model.info.nEmbd * model.info.nLayer;
  const affordable = Math.floor(cacheBytes / bytesPerToken);
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
  const all = Math.max(sum(needs), sum(others.map(({ length }) => length)));
  return {
    nCtx: Math.max(...needs, longest, Math.min(all, affordable)),
    nBatch: Math.max(longest, 256),
    maxSequences: Math.min(mostSequences, Math.max((1 + tries) * prompts.length, others.length)),
  };
}

/** @throws UserError for results that are not finite */
function checkFinite(config: CompareConfig, trials: SweepTrial[]): void {
  for (const [index, { baseline, rows }] of trials.entries()) {
    const what = `model's probabilities for ${nameOf(config, index)} are not finite`;
    if (!baseline.finite) throw new UserError(`The ${what}; the model file may be damaged.`);
    const broken = rows.findIndex(({ finite }) => !finite);
    if (broken === -1) continue;
    throw new UserError(
      `At strength ${config.strengths[broken % config.strengths.length]} the ${what}; the change overflows the model's arithmetic, or ` +
        "leaves an activation of zeros that a norm with epsilon 0 divides by 0.",
    );
  }
}

async function describe(
  model: Model,
  config: CompareConfig,
  layer: number,
  texts: string[],
  trials: SweepTrial[],
): Promise<CompareResult["trials"]> {
  const piece = await pieceLookup(
    model,
    trials.map(({ target }) => target),
  );
  const text = (tokens: Int32Array) => (tokens.length === 0 ? "" : model.detokenize(tokens));
  const described: CompareResult["trials"] = [];
  for (const [index, { target, baseline, rows }] of trials.entries()) {
    const baselineText = await text(baseline.continuation);
    for (const [row, strength] of config.strengths.entries()) {
      const { probability, continuation, effects } = rows[row] as SweepTrial["rows"][number];
      const control = rows[config.strengths.length + row];
      described.push({
        prompt: texts[index] as string,
        strength,
        layer,
        target_token: piece(target),
        target_token_id: target,
        baseline_probability: baseline.probability,
        probability,
        delta: probability - baseline.probability,
        baseline: baselineText,
        output: await text(continuation),
        change: changeOf(effects),
        ...(control === undefined
          ? {}
          : {
              control: {
                probability: control.probability,
                delta: control.probability - baseline.probability,
                output: await text(control.continuation),
                change: changeOf(control.effects),
              },
            }),
      });
    }
  }
  return described;
}

/** Whether the tracked token is some prompt's answer but for the leading space; a comparison without continuations has no answer. */
async function spaceNotes(model: Model, trials: readonly SweepTrial[]): Promise<string> {
  const answered = trials.filter(({ baseline }) => baseline.continuation.length > 0);
  const first = ({ baseline }: SweepTrial) => baseline.continuation[0] as number;
  const piece = await pieceLookup(
    model,
    answered.flatMap((trial) => [trial.target, first(trial)]),
  );
  const notes = answered.map((trial) => spaceNote(piece(trial.target), piece(first(trial))));
  return notes.find((note) => note !== "") ?? "";
}

/** The effect of a plan; several edits are already combined into one. */
function changeOf([effect]: readonly EditEffect[]): Change {
  const { rows, changeLength, rowLength } = effect as EditEffect;
  return { rows, length: changeLength, row_length: rowLength };
}

export default {
  run: compare,
  generated: ({ max_tokens }) => max_tokens,
} satisfies Run<"compare">;
