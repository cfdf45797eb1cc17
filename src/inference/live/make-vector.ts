import type { Excluded } from "../../contracts/excluded.js";
import type { StoredVector, VectorRequest } from "../../contracts/library.js";
import { liveLimits } from "../../contracts/live-limits.js";
import { UserError } from "../../contracts/user-error.js";
import { type LayerReport, makeDirection, type States } from "../../library/index.js";
import type { Engine } from "../../native/engine.js";
import { sumOfExcluded } from "../../native/excluded.js";
import type { LiveLibrary } from "./library.js";

/**
 * Makes a direction from two lists of texts on the resident model and saves it. Each text is one forward pass between
 * two iterations of the scheduler, so that generation continues.
 * @throws UserError, NativeError TOKEN_LIMIT, LAYER_OUT_OF_RANGE
 */
export async function makeVector(
  engine: Engine,
  library: LiveLibrary,
  request: VectorRequest,
  signal: AbortSignal,
): Promise<StoredVector> {
  const { name, positive, negative, position = "last", method = "difference", seed = 0 } = request;
  if (method === "pca" && positive.length !== negative.length) {
    throw new UserError(
      `pca needs pairs: the same number of positive and negative texts, got ${positive.length} and ${negative.length}.`,
    );
  }
  if (method === "pca" && positive.length < 2) throw new UserError("pca needs at least 2 pairs, got 1.");
  const layers = [...request.layers].sort((a, b) => a - b);
  const states = (texts: string[]) => textStates(engine, texts, { layers, position, signal });
  const ones = await states(positive);
  const zeros = await states(negative);
  const vectors = new Map<number, Float32Array>();
  const reports = new Map<number, LayerReport>();
  for (const [index, layer] of layers.entries()) {
    const made = makeDirection(
      ones[index] as (typeof ones)[number],
      zeros[index] as (typeof zeros)[number],
      method,
      seed,
    );
    vectors.set(layer, made.vector);
    reports.set(layer, {
      typical_row: made.typicalRow,
      separation: made.separation,
      shuffled_separation: made.shuffledSeparation,
      ...(made.projections && { projections: made.projections }),
      ...(position === "mean" && {
        excluded: sumOfExcluded([ones[index], zeros[index]].map((each) => (each as TextStates).excluded)),
      }),
    });
  }
  const note =
    `${method === "pca" ? "First principal component of the paired differences" : "Difference of means"} of ` +
    `${positive.length} positive and ${negative.length} negative texts, ` +
    `${position === "last" ? "last token" : "mean over tokens without BOS and outliers"}, block outputs.`;
  return library.vectors.put(name, vectors, library.model, { note, reports });
}

interface TextStates extends States {
  /** Only for means. */
  excluded: Excluded;
}

/**
 * The activations of texts at each layer: [texts, hidden] each.
 * @throws NativeError TOKEN_LIMIT, LAYER_OUT_OF_RANGE
 */
export async function textStates(
  engine: Engine,
  texts: readonly string[],
  { layers, position, signal }: { layers: number[]; position: "last" | "mean"; signal: AbortSignal },
): Promise<TextStates[]> {
  const rows = layers.map(() => [] as Float32Array[]);
  const excluded = layers.map(() => [] as Excluded[]);
  for (const prompt of texts) {
    const captured = await engine.states({
      prompt,
      layers,
      rows: position,
      maxTokens: liveLimits.text_tokens,
      signal,
    });
    for (const [index, layer] of captured.entries()) {
      rows[index]?.push(layer.state);
      excluded[index]?.push(layer.excluded);
    }
  }
  return rows.map((layer, index) => ({
    ...{ data: joined(layer), hidden: engine.info.nEmbd },
    excluded: sumOfExcluded(excluded[index] ?? []),
  }));
}

function joined(rows: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(rows.reduce((sum, row) => sum + row.length, 0));
  let at = 0;
  for (const row of rows) {
    all.set(row, at);
    at += row.length;
  }
  return all;
}
