import type { Description, ExplainConfig, ExplainedRow, ExplainResult } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import type { NamedArrays } from "../../formats/npz-writer.js";
import type { Artifacts } from "../../lab/artifacts.js";
import { writeNpz } from "../../lab/npz.js";
import { inContext } from "../../lab/rows/open-context.js";
import {
  checkLayers,
  checkPositions,
  pieceLookup,
  tokenIndex,
  tokenizeInput,
} from "../../lab/rows/tokens.js";
import { shuffle, uniformNumbers } from "../../library/index.js";
import type { Context, Explanation, Filling, Model } from "../../native/index.js";
import type { Findings, OperationInput, Run } from "../run.js";

/** The verbaliser's prompt: tokens before the activation, the token that it replaces, and the tokens after it. */
interface Prompt {
  before: Int32Array;
  marker: number;
  after: Int32Array;
}

const note =
  "A description is the verbaliser's answer, not the activation's meaning. Compare it with the controls: the same values " +
  "shuffled, and no activation.";

/** Independent streams of random numbers from one seed. */
const [ofDraws, ofOrders] = [0, 1];

/**
 * Inserts activations of a block output, one at a time, in place of a token embedding in another model's prompt, and records
 * that model's answers (natural-language autoencoders; activation oracles; SelfIE, if both models are the same). Controls:
 * its answers to the same values shuffled, and without an activation.
 */
export async function explain(input: OperationInput<ExplainConfig>): Promise<Findings<ExplainResult>> {
  const { config, model } = input;
  checkLayers(model, [config.layer]);
  const tokens = await tokenizeInput(model, config.prompt, config.max_input_tokens, "prompt");
  const positions = config.positions.map((position) => tokenIndex("positions", position, tokens.length));
  if (config.verbaliser === undefined) return explainWith(model, input, tokens, positions);
  // First, because it fails if there is not enough memory for both models.
  const verbaliser = await input.openOther(config.verbaliser, config.verbaliser_revision);
  try {
    return await explainWith(verbaliser, input, tokens, positions);
  } finally {
    await verbaliser.close();
  }
}

async function explainWith(
  verbaliser: Model,
  input: OperationInput<ExplainConfig>,
  tokens: Int32Array,
  positions: number[],
): Promise<Findings<ExplainResult>> {
  const { config, model, clock, artifacts } = input;
  checkWidths(model, verbaliser);
  const prompt = await readTemplate(verbaliser, config);
  const length = prompt.before.length + 1 + prompt.after.length;
  const nCtx = length + config.description_tokens;
  checkPositions(
    verbaliser,
    nCtx,
    `The template has ${length} tokens and a description up to ${config.description_tokens}`,
  );
  const context = await clock.measure("context", () => verbaliser.createContext({ nCtx }));
  try {
    const { tokenScale } = await checkInput(context);
    const rows = await readRows(input, tokens, positions);
    const norms = rows.map((row) => Math.hypot(...row));
    const put = rows.map((row, i) => scaled(row, norms[i] as number, config, positions[i] as number));
    const orders = config.controls ? put.map((row, i) => shuffled(row, config.seed, i)) : [];
    await clock.measure("artifact", () => writeRows(artifacts, { rows, shuffled: orders }, positions));
    const fillings: Filling[] = [...put, ...orders].map((row) => ({ row }));
    if (config.controls) fillings.push({ token: prompt.marker });
    const answers = await clock.measure("compute", () => answer(input, context, prompt, fillings));
    const described = await describeAll(verbaliser, answers);
    const ids = positions.map((position) => tokens[position] as number);
    const piece = await pieceLookup(model, ids);
    const { name, quantization, bytes } = verbaliser.info;
    return {
      layer: config.layer,
      verbaliser: { name, quantization, bytes, prompt_tokens: length, token_scale: tokenScale },
      length: config.length ?? null,
      explained: positions.map(
        (position, i): ExplainedRow => ({
          ...{ position, token: piece(ids[i] as number), token_id: ids[i] as number },
          norm: norms[i] as number,
          descriptions: described[i] as Description[],
          ...(config.controls && { shuffled: described[positions.length + i] as Description[] }),
        }),
      ),
      ...(config.controls && { unfilled: described.at(-1) as Description[] }),
      note,
    };
  } finally {
    await context.close();
  }
}

/** @throws UserError if an activation cannot replace an embedding */
function checkWidths({ info: one }: Model, { info: other }: Model): void {
  if (one.nEmbd === other.nEmbd) return;
  throw new UserError(
    `Activations of ${one.name} have ${one.nEmbd} values, token embeddings of the verbaliser ${other.name} have ${other.nEmbd}; both must have the same size.`,
  );
}

/** @throws UserError if the verbaliser does not process an inserted embedding as it does tokens */
async function checkInput(context: Context): Promise<{ tokenScale: number }> {
  const found = await context.embeddingInput();
  if (!found.supported) throw new UserError(found.reason);
  return found;
}

/** @throws UserError unless the marker is a single token that the template contains once */
async function readTemplate(verbaliser: Model, { template, marker }: ExplainConfig): Promise<Prompt> {
  const own = await verbaliser.tokenize(marker, { special: false, parseSpecial: true });
  if (own.length !== 1) {
    const pieces = (await verbaliser.pieces(own)).map((piece) => JSON.stringify(piece)).join(" ");
    throw new UserError(
      `marker must be exactly one token of the verbaliser; ${JSON.stringify(marker)} gives ${own.length}: ${pieces}.`,
    );
  }
  const [id] = own as unknown as [number];
  const all = withoutSecondBos(
    await verbaliser.tokenize(template, { special: true, parseSpecial: true }),
    verbaliser,
  );
  const places = [...all.keys()].filter((place) => all[place] === id);
  const [place] = places;
  if (place === undefined || places.length > 1) {
    throw new UserError(
      `The marker ${JSON.stringify(marker)} occurs ${places.length} times in the template as a separate token, not once: ` +
        "the tokenizer may merge it with neighboring text.",
    );
  }
  return { before: all.slice(0, place), marker: id, after: all.slice(place + 1) };
}

/** A template in a chat format may already start with the BOS token that the tokenizer adds. */
function withoutSecondBos(tokens: Int32Array, { info }: Model): Int32Array {
  return info.addBos && tokens.length > 1 && tokens[0] === tokens[1] ? tokens.slice(1) : tokens;
}

async function readRows(
  { config, model, clock, progress, signal }: OperationInput<ExplainConfig>,
  tokens: Int32Array,
  positions: readonly number[],
): Promise<Float32Array[]> {
  progress({ stage: "reading activations", done: 0, total: 1 });
  return inContext({ model, clock }, { nCtx: tokens.length, nBatch: tokens.length }, async (context) => {
    const found = await clock.measure("compute", () =>
      context.features({
        ...{ sequences: [tokens], layers: [config.layer], rows: "all" as const },
        ...(signal && { signal }),
      }),
    );
    const { nEmbd } = model.info;
    const all = found.get(config.layer)?.data as Float32Array;
    return positions.map((position) => all.slice(position * nEmbd, (position + 1) * nEmbd));
  });
}

/** Writes the activations before scaling, and those of the control as inserted. */
async function writeRows(
  artifacts: Artifacts,
  lists: Record<string, Float32Array[]>,
  positions: readonly number[],
): Promise<void> {
  const arrays: NamedArrays = { positions: { data: Int32Array.from(positions), shape: [positions.length] } };
  for (const [name, rows] of Object.entries(lists)) {
    const [first] = rows;
    if (first === undefined) continue;
    const data = new Float32Array(first.length * rows.length);
    for (const [i, row] of rows.entries()) data.set(row, i * first.length);
    arrays[name] = { data, shape: [rows.length, first.length] };
  }
  await writeNpz(artifacts, "rows.npz", arrays);
}

/** @throws UserError for a zero vector */
function scaled(row: Float32Array, norm: number, { length }: ExplainConfig, position: number): Float32Array {
  if (length === undefined) return row;
  if (norm === 0) throw new UserError(`The activation of token ${position} is zero and cannot be scaled.`);
  return row.map((value) => (value * length) / norm);
}

/** The same values in a uniformly random order. */
function shuffled(row: Float32Array, seed: number, which: number): Float32Array {
  return shuffle(row.slice(), uniformNumbers(streamSeed(seed, ofOrders, which)));
}

function streamSeed(seed: number, stream: number, which: number): number {
  return (seed + Math.imul(stream * 65_536 + which + 1, 0x9e3779b1)) >>> 0;
}

async function answer(
  { config, progress, signal }: OperationInput<ExplainConfig>,
  context: Context,
  { before, after }: Prompt,
  fillings: readonly Filling[],
): Promise<Explanation[]> {
  const { samples, description_tokens: maxTokens, temperature, seed } = config;
  const random = uniformNumbers(streamSeed(seed, ofDraws, 0));
  // Every activation and control uses the same random draws, so that only the activation differs.
  const draws = Float64Array.from({ length: samples * maxTokens }, random);
  const stage = "describing activations";
  progress({ stage, done: 0, total: fillings.length * samples * maxTokens });
  return context.explain({
    ...{ before, after, fillings, maxTokens, samples },
    ...(temperature > 0 && { temperature, draws }),
    onProgress: (done, total) => progress({ stage, done, total }),
    ...(signal && { signal }),
  });
}

async function describeAll(
  verbaliser: Model,
  explanations: readonly Explanation[],
): Promise<Description[][]> {
  const described: Description[][] = [];
  for (const { answers } of explanations) {
    const texts = answers.map(async ({ tokens, ended }) => ({
      ...{ text: await verbaliser.detokenize(tokens), tokens: tokens.length, ended },
    }));
    described.push(await Promise.all(texts));
  }
  return described;
}

export default {
  run: explain,
  // Tokens generated by the verbaliser.
  generated: ({ description_tokens }) => description_tokens,
  layers: ({ layer }) => [layer],
} satisfies Run<"explain">;
