import { writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Context, Model } from "../../../src/native/index.js";
import { editFor } from "../../../src/operations/compare/run-intervention.js";
import { startServer } from "../../inference/support/serving.js";
import { type Place, Values } from "../values.js";
import { passage } from "./passage.js";

/** How much of a real model is looked at. */
export interface Extent {
  /** Tokens of each prompt. */
  lengths: readonly number[];
  /** Of the edits. */
  layers: readonly number[];
  /** Of the packed rows and of the attention weights. */
  featured: readonly number[];
  /** Steering strengths, about the activation norms of those layers. */
  steer: readonly number[];
}

const smolLm2 = { featured: [5, 15, 29], steer: [-200, -20, 20, 200] };

export const whole: Extent = {
  ...smolLm2,
  lengths: [1, 2, 3, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512],
  layers: [0, 9, 19, 29],
};

/** For every change: a quarter of the prompts, two of the layers. */
export const small: Extent = { ...smolLm2, lengths: [1, 8, 32, 128, 300], layers: [9, 29] };

const gemma = { featured: [5, 11, 17], steer: [-20_000, -2000, 2000, 20_000] };

/** Blocks 5, 11 and 17 of Gemma attend to the whole text, the others to its last 512 tokens. */
export const gemmaWhole: Extent = {
  ...gemma,
  lengths: [1, 2, 5, 16, 48, 64, 96, 160, 256, 384, 512, 560, 680],
  layers: [0, 5, 11, 17],
};

export const gemmaSmall: Extent = { ...gemma, lengths: [8, 64], layers: [11] };

const strengths = (extent: Extent) =>
  ({ scale: [0, 0.5, 1.5], ablate: [0.5, 1], patch: [0.5, 1], steer: extent.steer }) as const;

const starts = [
  "The capital of France is",
  "When Mary and John went to the store, John gave a drink to",
  "I did not like the film at all. It was",
];

const chats = [
  [{ role: "user", content: "What is the capital of Japan?" }],
  [
    { role: "system", content: "You answer in one word." },
    { role: "user", content: "Name a colour. \n\n 日本語, 12345 and  two spaces" },
    { role: "assistant", content: "Blue" },
    { role: "user", content: "Another one!" },
  ],
];

const continued = 16;

export interface Ours {
  cases: string;
  values: string;
}

/** The native core's results for the F32 model, written down for the tools that it is compared with. */
export async function computeOurs(path: string, extent: Extent, folder: string): Promise<Ours> {
  const model = await Model.open(path, { gpuLayers: 0 });
  const values = new Values();
  try {
    const context = await model.createContext({ nCtx: 1024, maxSequences: 16, threads: 1 });
    const prompts = await promptsOf(model, extent);
    const captured = [];
    for (const tokens of prompts) captured.push(await look(model, context, tokens, values, extent));
    const edits = await editAll(model, context, extent, values);
    const sentences = passage.split(/(?<=[.:?!])\s+/).slice(0, 32);
    const texts = await Promise.all(
      [passage, ...sentences, "1234567 x²+y² …\tçé ß\n\n  end", "don't we'll I'VE"].map(async (text) => ({
        text,
        tokens: [...(await model.tokenize(text, { special: false }))],
      })),
    );
    const cases = {
      texts,
      chats: model.info.chatTemplate ? await fillTemplates(path, model) : [],
      prompts: [...edits.prompts, ...captured],
      features: await features(model, context, sentences, values, extent),
      edits: edits.edits,
    };
    const at = join(folder, basename(path));
    const ours = { cases: `${at}.json`, values: `${at}.f32` };
    await writeFile(ours.cases, JSON.stringify(cases));
    await writeFile(ours.values, values.bytes());
    return ours;
  } finally {
    await model.close();
  }
}

/** Stretches of the passage, each beginning elsewhere, with the model's BOS before them where it has one. */
export async function promptsOf(model: Model, { lengths }: Pick<Extent, "lengths">): Promise<Int32Array[]> {
  const all = await model.tokenize(passage);
  const bos = model.info.addBos ? 1 : 0;
  return lengths.map((length, i) => {
    const own = length - bos;
    const start = Math.min(bos + i * 17, all.length - own);
    return Int32Array.from([...all.subarray(0, bos), ...all.subarray(start, start + own)]);
  });
}

const inner = ["attn_out", "mid", "ffn_in", "ffn_out"] as const;

interface Look {
  tokens: number[];
  states: Place;
  /** Weights of some blocks, [heads, tokens, tokens] each. */
  attention: { blocks: readonly number[]; weights: Place[] };
  /** [blocks, tokens, hidden] of each. */
  points: Record<(typeof inner)[number], Place>;
  logits: Place;
  lens: { ids: number[][]; probabilities: number[][] };
}

async function look(
  model: Model,
  context: Context,
  tokens: Int32Array,
  values: Values,
  { featured }: Extent,
): Promise<Look> {
  const { nLayer, nEmbd, nVocab } = model.info;
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const states = new Float32Array(nLayer * tokens.length * nEmbd);
  await context.reset();
  let logits = new Float32Array();
  for (let start = 0; start < tokens.length; start += context.nBatch) {
    const chunk = tokens.slice(start, start + context.nBatch);
    const found = await context.advance({ tokens: chunk, layers, logits: true });
    for (const [i, layer] of found.layers.entries()) {
      states.set(layer.states!.data, (i * tokens.length + start) * nEmbd);
    }
    logits = found.logits as Float32Array<ArrayBuffer>;
  }
  return {
    tokens: [...tokens],
    states: values.add(states, [nLayer, tokens.length, nEmbd]),
    points: await insideBlocks(model, context, tokens, values),
    attention: await attention(model, tokens, values, featured),
    logits: values.add(logits, [nVocab]),
    lens: await lens(context, tokens, layers),
  };
}

/** How much each token reads of each, in a separate context: of a text in one pass. */
async function attention(
  model: Model,
  tokens: Int32Array,
  values: Values,
  blocks: readonly number[],
): Promise<Look["attention"]> {
  const context = await model.createContext({
    ...{ nCtx: tokens.length, nBatch: tokens.length, threads: 1 },
    keepAttention: true,
  });
  try {
    const { attention: found = [] } = await context.advance({
      tokens,
      layers: [],
      attention: { layers: blocks },
    });
    return { blocks, weights: found.map(({ weights: { data, shape } }) => values.add(data, shape)) };
  } finally {
    await context.close();
  }
}

/** Every block's points inside it, at every token. */
async function insideBlocks(
  model: Model,
  context: Context,
  tokens: Int32Array,
  values: Values,
): Promise<Look["points"]> {
  const { nLayer, nEmbd } = model.info;
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const shape = [nLayer, tokens.length, nEmbd];
  const rows = inner.map(() => new Float32Array(nLayer * tokens.length * nEmbd));
  await context.reset();
  for (let start = 0; start < tokens.length; start += context.nBatch) {
    const chunk = tokens.slice(start, start + context.nBatch);
    const found = await context.advance({ tokens: chunk, layers, points: inner });
    for (const { layer, point, states } of found.layers) {
      const at = (layer * tokens.length + start) * nEmbd;
      rows[inner.indexOf(point as (typeof inner)[number])]!.set(states!.data, at);
    }
  }
  return Object.fromEntries(inner.map((point, i) => [point, values.add(rows[i]!, shape)])) as Look["points"];
}

/** The ten most probable tokens of every block at the last token. */
async function lens(context: Context, tokens: Int32Array, layers: number[]): Promise<Look["lens"]> {
  await context.reset();
  const start = Math.floor((tokens.length - 1) / context.nBatch) * context.nBatch;
  for (let at = 0; at < start; at += context.nBatch) {
    await context.advance({ tokens: tokens.slice(at, at + context.nBatch), layers: [] });
  }
  const found = await context.advance({
    tokens: tokens.slice(start),
    layers,
    rows: "last",
    keepStates: false,
    lensTopK: 10,
  });
  return {
    ids: found.layers.map((layer) => [...layer.lens!.tokenIds]),
    probabilities: found.layers.map((layer) => [...layer.lens!.probabilities]),
  };
}

async function editAll(model: Model, context: Context, extent: Extent, values: Values) {
  const { nVocab } = model.info;
  const tokens = await Promise.all(starts.map((text) => model.tokenize(text)));
  const prompts: Look[] = [];
  const last: Float32Array[][] = [];
  for (const each of tokens) {
    prompts.push(await look(model, context, each, values, extent));
    await context.reset();
    const layers = extent.layers;
    const found = await context.advance({ tokens: each, layers, rows: "last" });
    last.push(found.layers.map((layer) => layer.states!.data.slice()));
  }
  const edits = [];
  for (const [prompt, own] of tokens.entries()) {
    const [donor, minus] = [(prompt + 1) % tokens.length, (prompt + 2) % tokens.length];
    for (const [at, layer] of extent.layers.entries()) {
      const all = strengths(extent);
      const wanted = (Object.keys(all) as Array<keyof typeof all>).flatMap((kind) =>
        all[kind].map((strength) => {
          const from = last[donor]![at]!;
          const vector = kind === "steer" ? from.map((value, i) => value - last[minus]![at]![i]!) : from;
          return { kind, strength, edit: editFor({ intervention: kind }, layer, strength, vector) };
        }),
      );
      const [trial] = await context.sweep({
        prompts: [own],
        plans: wanted.map(({ edit }) => [edit]),
        maxTokens: continued,
      });
      for (const [i, { kind, strength, edit }] of wanted.entries()) {
        await context.reset();
        const found = await context.advance({
          tokens: own,
          layers: [layer],
          rows: "last",
          edits: [edit],
          logits: true,
        });
        edits.push({
          ...{ kind, strength, layer, donor, minus },
          tokens: [...own],
          continuation: [...trial!.rows[i]!.continuation],
          logits: values.add(found.logits!, [nVocab]),
        });
      }
    }
  }
  return { prompts, edits };
}

/** The packed way that probe and sae take. */
async function features(
  model: Model,
  context: Context,
  texts: string[],
  values: Values,
  { featured }: Extent,
) {
  const sequences = await Promise.all(texts.map((text) => model.tokenize(text)));
  const found = await context.features({ sequences, layers: featured });
  return sequences.map((tokens, i) => {
    const rows = featured.flatMap((layer) => {
      const { data, shape } = found.get(layer)!;
      return [...data.subarray(i * shape[1]!, (i + 1) * shape[1]!)];
    });
    return {
      tokens: [...tokens],
      layers: featured,
      states: values.add(Float32Array.from(rows), [featured.length, model.info.nEmbd]),
    };
  });
}

/** The model's template as the server fills it. */
async function fillTemplates(path: string, model: Model) {
  const server = await startServer({ model: path, parallel: 1, threads: 1, ctxSize: 512 });
  try {
    const filled = [];
    for (const messages of chats) {
      const { status, body } = await server.post("/apply-template", { messages });
      if (status !== 200) throw new Error(`/apply-template answered ${status}: ${JSON.stringify(body)}`);
      const text = body.prompt as string;
      filled.push({ messages, text, tokens: [...(await model.tokenize(text, { parseSpecial: true }))] });
    }
    return filled;
  } finally {
    await server.close();
  }
}
