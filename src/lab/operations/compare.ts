import type { CompareConfig, CompareResult } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import type { Context, ContextOptions, Model, SweepTrial } from "../../native/index.js";
import { editFor, steeringDirection } from "./intervention.js";
import { openContext } from "./open-context.js";
import type { Findings, OperationInput } from "./operation.js";
import { checkLayers, checkPositions, pieceLookup, tokenizeInput } from "./tokens.js";

/** Sequences that a context holds at once. */
const mostSequences = 64;
/** Most memory that a sweep's K/V cache may take, by the upper bound below. */
const cacheBytes = 1024 ** 3;

const note =
  "The target token's probabilities are compared at the same input; greedy continuations may diverge. The edit " +
  "applies to the last token on every forward pass and the K/V cache is kept, so a token generated under an " +
  "edit stays edited for the tokens after it.";

/**
 * Compares each prompt's next token and greedy continuation with and without an edit of the first selected
 * block's last-token output, for every strength, all rows in common batches.
 */
export async function compare(input: OperationInput<CompareConfig>): Promise<Findings<CompareResult>> {
  const { config, model, clock, progress, signal } = input;
  checkLayers(model, config.layers);
  const layer = config.layers[0] as number;
  const texts = config.prompts ?? [config.prompt];
  const prompts = await tokenizeAll(model, config, texts);
  const target = config.target_token === undefined ? -1 : await targetToken(model, config.target_token);
  const vectors = await vectorTexts(model, config);
  const context = await clock.measure("context", () =>
    openContext(model, contextSize(model, config, [...prompts, ...vectors])),
  );
  try {
    const vector = await clock.measure("compute", () => editVector(input, context, layer, vectors));
    const trials = await clock.measure("compute", () =>
      context.sweep({
        prompts,
        plans: config.strengths.map((strength) => [editFor(config.intervention, layer, strength, vector)]),
        targets: new Int32Array(prompts.length).fill(target),
        maxTokens: config.max_tokens,
        onProgress: (done, total) => progress({ stage: "sweep", done, total }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    checkFinite(config, trials);
    return {
      trials: await describe(model, config, layer, texts, trials),
      intervention: config.intervention,
      position: "last token",
      note: [ignoredLayers(config), note, context.blockOutputs.sidePath]
        .filter((part) => part !== "")
        .join(" "),
    };
  } finally {
    await context.close();
  }
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

async function targetToken(model: Model, text: string): Promise<number> {
  const tokens = await model.tokenize(text, { special: false, parseSpecial: false });
  if (tokens.length === 1) return tokens[0] as number;
  const pieces = await model.pieces(tokens);
  throw new UserError(
    `target_token must encode to exactly one token; ${JSON.stringify(text)} gives ${tokens.length}: ` +
      `${pieces.map((piece) => JSON.stringify(piece)).join(" ")}.`,
  );
}

/** Tokens of the texts whose states an intervention needs. */
async function vectorTexts(model: Model, config: CompareConfig): Promise<Int32Array[]> {
  const names: Array<"donor_prompt" | "positive" | "negative"> =
    config.intervention === "patch"
      ? ["donor_prompt"]
      : config.intervention === "steer"
        ? ["positive", "negative"]
        : [];
  return Promise.all(
    names.map((name) => tokenizeInput(model, config[name] as string, config.max_input_tokens, name)),
  );
}

async function editVector(
  { config, model, progress, signal }: OperationInput<CompareConfig>,
  context: Context,
  layer: number,
  sequences: Int32Array[],
): Promise<Float32Array | undefined> {
  if (sequences.length === 0) return undefined;
  progress({ stage: "capture", done: 0, total: sequences.length });
  const features = await context.features({
    sequences,
    layers: [layer],
    ...(signal === undefined ? {} : { signal }),
  });
  const states = features.get(layer)?.data as Float32Array;
  const hidden = model.info.nEmbd;
  const row = (index: number) => states.slice(index * hidden, (index + 1) * hidden);
  return config.intervention === "patch" ? row(0) : steeringDirection(row(0), row(1));
}

/** Room for as many prompts at once as fit into the cache's share of memory, and for at least one. */
function contextSize(model: Model, config: CompareConfig, sequences: Int32Array[]): ContextOptions {
  const rows = 1 + config.strengths.length;
  const needs = sequences.map((tokens) => tokens.length + rows * config.max_tokens);
  const longest = Math.max(...sequences.map(({ length }) => length));
  // Keys and values of every head in float16; models that share heads need less.
  const bytesPerToken = 4 * model.info.nEmbd * model.info.nLayer;
  const affordable = Math.floor(cacheBytes / bytesPerToken);
  const all = needs.reduce((sum, need) => sum + need, 0);
  return {
    nCtx: Math.max(...needs, Math.min(all, affordable)),
    nBatch: Math.max(longest, 256),
    maxSequences: Math.min(mostSequences, rows * sequences.length),
  };
}

/** @throws UserError where a row's numbers mean nothing */
function checkFinite(config: CompareConfig, trials: SweepTrial[]): void {
  for (const [index, { baseline, rows }] of trials.entries()) {
    const what = `model's probabilities for ${nameOf(config, index)} are not finite`;
    if (!baseline.finite) throw new UserError(`The ${what}; the model file may be damaged.`);
    const broken = rows.findIndex(({ finite }) => !finite);
    if (broken === -1) continue;
    throw new UserError(
      `At strength ${config.strengths[broken]} the ${what}; the change is too large for its arithmetic.`,
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
      const { probability, continuation } = rows[row] as SweepTrial["rows"][number];
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
      });
    }
  }
  return described;
}

function ignoredLayers(config: CompareConfig): string {
  const [first, ...others] = config.layers;
  return others.length === 0
    ? ""
    : `Only the first selected layer, ${first}, is changed; ${others.join(", ")} had no part.`;
}
