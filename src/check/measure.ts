import { logSoftmax } from "../card/measure.js";
import type { ServingModel } from "../client/index.js";
import type { Budget, BudgetPrompt, BudgetVector } from "../contracts/budget.js";

import { dot, lengthOf } from "../library/index.js";
import { encodeRows, type SparseRows } from "../native/dictionary.js";
import type { BudgetItems, SavedItems } from "./items.js";
import { blockValues, floatsIn, readingsOf, sketchDirections, valuesPerToken } from "./readings.js";

/** The items and prompts of a measurement. */
export interface Measured {
  items: BudgetItems;
  prompts: readonly Pick<BudgetPrompt, "tokens">[];
  model: Pick<Budget["model"], "n_layer" | "n_embd">;
  seed: number;
}

export interface MeasureOptions {
  saved: Pick<SavedItems, "dictionaries">;
  /** The prompts that run together; by default eight each, in order. */
  batches?: readonly (readonly number[])[];
  signal?: AbortSignal | undefined;
}

/** A model's values on all prompts, [tokens of all prompts, values]: without a profile, and with each one. */
export interface Measurement {
  profile: string | null;
  values: Float32Array;
}

const batchSize = 8;

/** @throws TaplineError with the service's sentence, NativeError if a dictionary's file is unreadable */
export async function measure(
  serving: ServingModel,
  measured: Measured,
  options: MeasureOptions,
): Promise<Measurement[]> {
  const { items, prompts } = measured;
  const batches = options.batches ?? inOrder(prompts.length);
  const readers = readersOf(measured, options);
  const starts = startsOf(prompts);
  const found: Measurement[] = [];
  for (const profile of [null, ...items.profiles]) {
    const values = new Float32Array((starts.at(-1) as number) * readers.width);
    for (const batch of batches) {
      const run = await serving.forward(
        {
          sequences: batch.map((index) => (prompts[index] as BudgetPrompt).tokens),
          ...{ capture: ["block_out.*"], logits: "all", edits: profile?.edits ?? [] },
        },
        { signal: options.signal },
      );
      const own = await readers.read(
        run.tensors,
        batch.map((index) => prompts[index] as BudgetPrompt),
      );
      let from = 0;
      for (const index of batch) {
        const length = (prompts[index] as BudgetPrompt).tokens.length * readers.width;
        values.set(own.subarray(from, from + length), (starts[index] as number) * readers.width);
        from += length;
      }
    }
    found.push({ profile: profile?.name ?? null, values });
  }
  return found;
}

/** The first row of each prompt, and the number of all rows. */
export function startsOf(prompts: readonly Pick<BudgetPrompt, "tokens">[]): number[] {
  const starts = [0];
  for (const { tokens } of prompts) starts.push((starts.at(-1) as number) + tokens.length);
  return starts;
}

function inOrder(count: number): number[][] {
  const all = [...Array(count).keys()];
  return Array.from({ length: Math.ceil(count / batchSize) }, (_, batch) =>
    all.slice(batch * batchSize, (batch + 1) * batchSize),
  );
}

type Tensors = Awaited<ReturnType<ServingModel["forward"]>>["tensors"];

function readersOf({ items, model, seed }: Measured, { saved, signal }: MeasureOptions) {
  const readings = readingsOf(items, model.n_layer);
  const width = valuesPerToken(readings);
  const directions = sketchDirections(model.n_embd, seed);
  const probes = items.probes.map(({ weight, bias }) => ({ weight: floatsIn(weight), bias }));
  const vectors = items.vectors.map(({ values }: BudgetVector) => floatsIn(values));

  /** The values of one batch, [tokens, values]. */
  async function read(
    tensors: Tensors,
    prompts: readonly Pick<BudgetPrompt, "tokens">[],
  ): Promise<Float32Array> {
    const tokens = prompts.flatMap((prompt) => prompt.tokens);
    const rowsOf = (layer: number | null) => tensors.get(`block_out.${layer}`)?.data as Float32Array;
    const features = await featuresOf(rowsOf);
    const next = nextScores(tensors.get("logits")?.data as Float32Array, prompts);
    const values = new Float32Array(tokens.length * width);
    for (let row = 0; row < tokens.length; row++) {
      let at = row * width;
      const places = { probe: 0, vector: 0, feature: 0 };
      for (const { kind, layer } of readings) {
        const state =
          layer === null ? undefined : rowsOf(layer).subarray(row * model.n_embd, (row + 1) * model.n_embd);
        if (state === undefined) values[at++] = next[row] as number;
        else if (kind === "block") {
          values[at] = lengthOf(state);
          for (const [index, direction] of directions.entries())
            values[at + 1 + index] = dot(state, direction);
          at += blockValues;
        } else if (kind === "probe") {
          const { weight, bias } = probes[places.probe++] as (typeof probes)[number];
          values[at++] = 1 / (1 + Math.exp(-(dot(state, weight) + bias)));
        } else if (kind === "vector") {
          values[at++] = dot(state, vectors[places.vector++] as Float32Array) / lengthOf(state);
        } else values[at++] = features[places.feature++]?.[row] as number;
      }
    }
    return values;
  }

  /** The activations of each feature, by token. */
  async function featuresOf(rowsOf: (layer: number) => Float32Array): Promise<Float32Array[]> {
    const encoded = new Map<string, SparseRows>();
    const found: Float32Array[] = [];
    for (const { dictionary, layer, feature } of items.features) {
      let sparse = encoded.get(dictionary);
      if (sparse === undefined) {
        const { places } = await saved.dictionaries.open(dictionary);
        sparse = await encodeRows(places, rowsOf(layer), signal && { signal });
        encoded.set(dictionary, sparse);
      }
      found.push(activationsOf(sparse, feature));
    }
    return found;
  }

  return { read, width };
}

function activationsOf({ pointers, indices, values }: SparseRows, feature: number): Float32Array {
  const found = new Float32Array(pointers.length - 1);
  for (const row of found.keys()) {
    const [from, to] = [pointers[row] as number, pointers[row + 1] as number];
    const at = indices.subarray(from, to).indexOf(feature);
    if (at >= 0) found[row] = values[from + at] as number;
  }
  return found;
}

/** Log-probabilities of each prompt's next token; at its end, of the most probable one. */
function nextScores(logits: Float32Array, prompts: readonly Pick<BudgetPrompt, "tokens">[]): number[] {
  const rows = prompts.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const width = logits.length / rows;
  let row = 0;
  return prompts.flatMap(({ tokens }) =>
    tokens.map((_, place) => {
      const scores = logSoftmax(logits.subarray(row * width, ++row * width));
      const next = tokens[place + 1];
      return next === undefined ? scores.reduce((a, b) => Math.max(a, b)) : (scores[next] as number);
    }),
  );
}
