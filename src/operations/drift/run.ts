import type { DriftConfig, DriftResult } from "../../contracts/index.js";
import { limits } from "../../contracts/limits.js";
import { pointField } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { taplineHome } from "../../files/home.js";
import { aurocOf, bootstrap, type Measured } from "../../findings/uncertainty.js";
import { checkDictionary, type Reading, readThrough } from "../../lab/rows/dictionary-reading.js";
import { bosOf } from "../../lab/rows/example-tokens.js";
import { openContext } from "../../lab/rows/open-context.js";
import { checkLayers, tokenizeInput } from "../../lab/rows/tokens.js";
import {
  Dictionaries,
  dot,
  type ModelIdentity,
  modelFingerprint,
  type OpenDictionary,
  Probes,
  Vectors,
} from "../../library/index.js";
import type { Context, Model } from "../../native/index.js";
import type { Findings, OperationInput, Run, Split } from "../run.js";
import { runWhole } from "../run-parts.js";

/** Resamples of a bootstrap interval. */
const resamples = 2000;

type Both<T> = [first: T, second: T];

/** The artefacts to measure in both models. */
interface Artefacts {
  dictionary?: OpenDictionary;
  probe?: { name: string; sha256: string; layer: number; weight: Float64Array; bias: number };
  vector?: { name: string; sha256: string; layer: number; weight: Float32Array };
}

/** Sums over one text's tokens, without BOS. */
interface TextSums {
  tokens: number;
  /** By layer, in the order of the request. */
  cosine: number[];
  length: number[];
  difference: number[];
  /** Features active in both models, and in either. */
  shared: number;
  either: number;
  /** Tokens in the dictionary's measurements. */
  read: number;
  active: Both<number>;
  /** Loss of the text's next tokens, in nats: ablated minus reconstructed, and ablated minus clean. */
  recovered: Both<number>;
  span: Both<number>;
  /** At the last token. */
  score: Both<number>;
  projection: Both<number>;
}

/** What all texts share. */
interface Head {
  models: DriftResult["models"];
  addBos: boolean;
  dictionary?: Pick<OpenDictionary["stored"], "name" | "sha256" | "layer" | "point" | "features">;
  probe?: { name: string; sha256: string; layer: number };
  vector?: { name: string; sha256: string; layer: number };
}

/** Compares two models of the same shape on the same texts: their block outputs, and how artefacts perform on both. */
export function drift(input: OperationInput<DriftConfig>): Promise<Findings<DriftResult>> {
  return runWhole(split, input);
}

/** The items are the examples. */
const split: Split<DriftConfig, DriftResult, Head, TextSums> = {
  count: ({ examples }) => examples.length,
  async compute(input, own) {
    const { config, model, clock, progress } = input;
    checkLayers(model, config.layers);
    const other = await input.openOther(config.other, config.other_revision);
    checkShapes(model, other);
    const models: Both<Model> = [model, other];
    const artefacts = await openArtefacts(config, models);
    const texts = await tokenizeAll(config, models);
    // Of all texts, so that every part has the same contexts.
    const longest = Math.max(...texts.map(({ length }) => length));
    const open = (each: Model) => openContext(each, { nCtx: longest, nBatch: longest });
    const contexts: Both<Context> = await clock.measure("context", async () => [
      await open(model),
      await open(other),
    ]);
    const items: TextSums[] = [];
    try {
      const { dictionary } = artefacts;
      if (dictionary !== undefined) for (const each of contexts) checkDictionary(dictionary.stored, each);
      for (const [done, index] of own.entries()) {
        progress({ stage: "comparing the models", done, total: own.length });
        const tokens = texts[index] as Int32Array;
        items.push(
          await clock.measure("compute", () => compareText(input, models, contexts, artefacts, tokens)),
        );
      }
    } finally {
      for (const context of contexts) await context.close();
    }
    const head = headOf(models, artefacts);
    await other.close();
    return { head, items };
  },
  finish: async (config, { head, items }) => describe(config, head, items),
};

function headOf(models: Both<Model>, { dictionary, probe, vector }: Artefacts): Head {
  const named = ({ name, sha256, layer }: { name: string; sha256: string; layer: number }) => ({
    ...{ name, sha256, layer },
  });
  return {
    models: models.map(({ info }) => ({
      name: info.name,
      quantization: info.quantization,
      bytes: info.bytes,
    })) as DriftResult["models"],
    addBos: models[0].info.addBos,
    ...(dictionary && {
      dictionary: {
        ...named(dictionary.stored),
        ...{ point: dictionary.stored.point, features: dictionary.stored.features },
      },
    }),
    ...(probe && { probe: named(probe) }),
    ...(vector && { vector: named(vector) }),
  };
}

/** @throws UserError unless the models have the same architecture and shape */
function checkShapes({ info: one }: Model, { info: other }: Model): void {
  const fields = { architecture: "architecture", nLayer: "blocks", nEmbd: "hidden size" } as const;
  for (const [field, what] of Object.entries(fields)) {
    const [a, b] = [one[field as keyof typeof fields], other[field as keyof typeof fields]];
    if (a !== b) throw new UserError(`The models differ in their ${what}: ${a} and ${b}.`);
  }
}

async function openArtefacts(config: DriftConfig, models: Both<Model>): Promise<Artefacts> {
  const home = taplineHome();
  const { nEmbd, nLayer } = models[0].info;
  const owned = async <T>(look: (model: ModelIdentity) => Promise<T>): Promise<T> => {
    const [first, second] = (await Promise.all(
      models.map(async ({ info }) => ({
        id: info.name,
        fingerprint: await modelFingerprint(info.path),
        ...{ nEmbd, nLayer },
      })),
    )) as Both<ModelIdentity>;
    // An artefact belongs to one of the two models, and the comparison applies it to both.
    return look(first).catch((error) => look(second).catch(() => Promise.reject(error)));
  };
  const artefacts: Artefacts = {};
  if (config.dictionary !== undefined) {
    artefacts.dictionary = await new Dictionaries(home).fitting(config.dictionary, { nEmbd, nLayer });
  }
  if (config.probe !== undefined) {
    const name = config.probe;
    const probe = await owned((model) => new Probes(home).ofBlockOutput(name, model));
    checkWidth(`The probe ${name}`, probe.weight.length, nEmbd);
    artefacts.probe = { name, ...probe };
  }
  if (config.vector !== undefined) {
    const name = config.vector;
    const vectors = new Vectors(home);
    const own = await vectors.layers(name);
    const layer = config.layers.find((each) => own.includes(each));
    if (layer === undefined) {
      throw new UserError(
        `The vector ${name} has layers ${own.join(", ")}; none of them is among the compared layers.`,
      );
    }
    const { vector: weight, sha256 } = await owned((model) => vectors.layer(name, layer, model));
    artefacts.vector = { name, sha256, layer, weight };
  }
  return artefacts;
}

function checkWidth(what: string, width: number, nEmbd: number): void {
  if (width === nEmbd) return;
  throw new UserError(`${what} has ${width} values; the models' hidden size is ${nEmbd}.`);
}

/** @throws UserError if the models tokenize a text differently */
async function tokenizeAll(config: DriftConfig, [model, other]: Both<Model>): Promise<Int32Array[]> {
  const texts: Int32Array[] = [];
  for (const [index, { text }] of config.examples.entries()) {
    const what = `examples[${index}].text`;
    const tokens = await tokenizeInput(model, text, config.max_input_tokens, what);
    const others = await tokenizeInput(other, text, config.max_input_tokens, what);
    if (tokens.length !== others.length || tokens.some((token, i) => token !== others[i])) {
      throw new UserError(`The models tokenize ${what} differently (different vocabularies).`);
    }
    texts.push(tokens);
  }
  const total = texts.reduce((sum, { length }) => sum + length, 0);
  if (total > limits.feature_tokens) {
    throw new UserError(`The examples have ${total} tokens; the limit is ${limits.feature_tokens}.`);
  }
  return texts;
}

async function compareText(
  { config, signal }: OperationInput<DriftConfig>,
  models: Both<Model>,
  contexts: Both<Context>,
  { dictionary, probe, vector }: Artefacts,
  tokens: Int32Array,
): Promise<TextSums> {
  const { nEmbd } = models[0].info;
  const layers = [...new Set([...config.layers, ...[probe, vector].flatMap((each) => each?.layer ?? [])])];
  const options = { sequences: [tokens], layers, rows: "all" as const, ...(signal && { signal }) };
  const rows = [await contexts[0].features(options), await contexts[1].features(options)];
  const first = bosOf(models[0], tokens);
  const of = (which: number, layer: number) => rows[which]?.get(layer)?.data as Float32Array;
  const last = (which: number, layer: number) => of(which, layer).subarray(-nEmbd);
  const none: Both<number> = [0, 0];
  const sums: TextSums = {
    ...{
      tokens: tokens.length - first,
      cosine: [],
      length: [],
      difference: [],
      shared: 0,
      either: 0,
      read: 0,
    },
    ...{ active: none, recovered: none, span: none },
    score:
      probe === undefined
        ? none
        : ([0, 1].map((i) => dot(probe.weight, last(i, probe.layer)) + probe.bias) as Both<number>),
    projection:
      vector === undefined
        ? none
        : ([0, 1].map((i) => dot(vector.weight, last(i, vector.layer))) as Both<number>),
  };
  for (const layer of config.layers) {
    const apart = rowsApart(of(0, layer), of(1, layer), nEmbd, first);
    sums.cosine.push(apart.cosine);
    sums.length.push(apart.length);
    sums.difference.push(apart.difference);
  }
  if (dictionary === undefined) return sums;
  const readings: Reading[] = [];
  for (const [i, context] of contexts.entries()) {
    readings.push(await readThrough({ model: models[i] as Model, signal }, context, dictionary, tokens));
  }
  const [one, two] = readings as Both<Reading>;
  return { ...sums, ...overlap(one, two), ...losses(one, two) };
}

function rowsApart(a: Float32Array, b: Float32Array, width: number, first: number) {
  const sums = { cosine: 0, length: 0, difference: 0 };
  for (let at = first * width; at < a.length; at += width) {
    let [aa, bb, ab, apart] = [0, 0, 0, 0];
    for (let i = at; i < at + width; i++) {
      const [x, y] = [a[i] as number, b[i] as number];
      aa += x * x;
      bb += y * y;
      ab += x * y;
      apart += (x - y) ** 2;
    }
    const perLength = aa > 0 ? 1 / Math.sqrt(aa) : 0;
    sums.cosine += aa > 0 && bb > 0 ? ab / Math.sqrt(aa * bb) : 0;
    sums.length += Math.sqrt(bb) * perLength;
    sums.difference += Math.sqrt(apart) * perLength;
  }
  return sums;
}

/** Overlap of the active features, over tokens that count in both models. */
function overlap({ sparse: one, counted }: Reading, { sparse: two, counted: also }: Reading) {
  let [shared, either, read] = [0, 0, 0];
  const active: Both<number> = [0, 0];
  for (let token = 0; token < counted.length; token++) {
    if (!counted[token] || !also[token]) continue;
    read++;
    const own = (rows: Reading["sparse"]) =>
      rows.indices.subarray(rows.pointers[token] as number, rows.pointers[token + 1] as number);
    const [a, b] = [own(one), own(two)];
    const known = new Set(a);
    const common = b.reduce((count, feature) => count + (known.has(feature) ? 1 : 0), 0);
    shared += common;
    either += a.length + b.length - common;
    active[0] += a.length;
    active[1] += b.length;
  }
  return { shared, either, read, active };
}

function losses(...readings: Both<Reading>) {
  const sum = (scores: Float64Array) => scores.reduce((a, b) => a + b, 0);
  const parts = readings.map(({ scores }) => {
    const ablated = sum(scores.ablated);
    return [sum(scores.reconstructed) - ablated, sum(scores.clean) - ablated] as const;
  }) as Both<readonly [recovered: number, span: number]>;
  return {
    recovered: parts.map(([recovered]) => recovered) as Both<number>,
    span: parts.map(([, span]) => span) as Both<number>,
  };
}

function describe(
  config: DriftConfig,
  { models, addBos, dictionary, probe, vector }: Head,
  texts: readonly TextSums[],
): Findings<DriftResult> {
  const draws = { resamples, seed: config.seed };
  const measure = (figures: (times: Uint32Array) => number[]) => bootstrap(texts.length, draws, figures);
  /** Sum over the texts, weighted by how often each was drawn. */
  const total = (times: Uint32Array, of: (text: TextSums) => number) =>
    texts.reduce((sum, text, i) => sum + (times[i] as number) * of(text), 0);
  const labels = config.examples.map(({ label }) => label ?? 0);
  const apart = (of: "score" | "projection") => {
    const [one, two] = [0, 1].map((i) =>
      aurocOf(
        labels,
        texts.map((text) => text[of][i] as number),
      ),
    ) as Both<(times: Uint32Array) => number>;
    const [first, second, difference] = measure((times) => {
      const [a, b] = [one(times), two(times)];
      return [a, b, b - a];
    });
    return { pair: [first, second] as Both<Measured>, difference: difference as Measured };
  };
  const result: Findings<DriftResult> = {
    models,
    texts: texts.length,
    tokens: texts.reduce((sum, { tokens }) => sum + tokens, 0),
    layers: config.layers.map((layer, index) => {
      const mean = (of: (text: TextSums) => number[]) => (times: Uint32Array) =>
        total(times, (text) => of(text)[index] as number) / total(times, ({ tokens }) => tokens);
      const [cosine, length, difference] = measure((times) => [
        mean((text) => text.cosine)(times),
        mean((text) => text.length)(times),
        mean((text) => text.difference)(times),
      ]) as [Measured, Measured, Measured];
      return { layer, cosine, relative_length: length, relative_difference: difference };
    }),
    note: addBos ? "Values per token exclude BOS tokens." : "",
  };
  if (dictionary !== undefined) {
    const { name, sha256, layer, point, features } = dictionary;
    const tokens = texts.reduce((sum, { read }) => sum + read, 0);
    const [jaccard] = texts.every(({ either }) => either === 0)
      ? []
      : measure((times) => [total(times, ({ shared }) => shared) / total(times, ({ either }) => either)]);
    const active = (i: 0 | 1) => texts.reduce((sum, text) => sum + text.active[i], 0) / tokens;
    const recovered = texts.every(({ span }) => span.every((one) => one === 0))
      ? null
      : measure((times) => {
          const share = (i: 0 | 1) =>
            total(times, (text) => text.recovered[i]) / total(times, (text) => text.span[i]);
          return [share(0), share(1), share(1) - share(0)];
        });
    result.dictionary = {
      ...{
        name,
        sha256,
        layer,
        ...pointField(point),
        features,
        jaccard: jaccard ?? null,
        l0: [active(0), active(1)],
      },
      loss_recovered: recovered && (recovered.slice(0, 2) as Both<Measured>),
      loss_recovered_difference: recovered && (recovered[2] as Measured),
    };
  }
  if (probe !== undefined) {
    const { pair, difference } = apart("score");
    result.probe = { name: probe.name, sha256: probe.sha256, layer: probe.layer, auroc: pair, difference };
  }
  if (vector !== undefined) {
    const { pair, difference } = apart("projection");
    const { name, sha256, layer } = vector;
    result.vector = { name, sha256, layer, separation: pair, difference };
  }
  return result;
}

export default {
  run: drift,
  split,
} satisfies Run<"drift">;
