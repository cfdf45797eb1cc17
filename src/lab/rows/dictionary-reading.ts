import type { Excluded } from "../../contracts/excluded.js";
import type { Fidelity } from "../../contracts/index.js";
import type { StoredDictionary } from "../../contracts/library.js";
import type { BlockPoint } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { type OpenDictionary, writtenPoint } from "../../library/index.js";
import {
  type Context,
  countedRows,
  decodeRows,
  type Edit,
  encodeRows,
  type Model,
  type SparseRows,
} from "../../native/index.js";
import { bosOf } from "./example-tokens.js";
import { checkPoints } from "./open-context.js";

/** Readings of one text by the model and the dictionary. */
export interface Reading {
  tokens: Int32Array;
  /** The activations that the dictionary reads, [tokens, hidden]. */
  states: Float32Array;
  /** The activations that it reconstructs: the same, or for a transcoder those of the point that it writes. */
  targets: Float32Array;
  /** [tokens, hidden] */
  reconstruction: Float32Array;
  sparse: SparseRows;
  /** 1 for a token whose activation counts in figures. */
  counted: Uint8Array;
  /** Log-probability of each next token: unmodified, with the reconstruction, and with zeros. */
  scores: { clean: Float64Array; reconstructed: Float64Array; ablated: Float64Array };
}

/**
 * Runs one text through a dictionary: features, reconstruction, and their effect on the model's predictions.
 * @param context a context of the model; its sequence is reset
 */
export async function readThrough(
  { model, signal }: { model: Model; signal?: AbortSignal | undefined },
  context: Context,
  { stored, places }: OpenDictionary,
  tokens: Int32Array,
): Promise<Reading> {
  const { nEmbd } = model.info;
  const { layer, point } = stored;
  const place = { layer, point: writtenPoint(stored) };
  const states = new Float32Array(tokens.length * nEmbd);
  const targets = place.point === point ? states : new Float32Array(tokens.length * nEmbd);
  const options = signal === undefined ? {} : { signal };
  const read = { layer, points: [...new Set([point, place.point])] };
  const clean = await scorePass(context, tokens, read, options, (at, start, rows) =>
    (at === point ? states : targets).set(rows, start * nEmbd),
  );
  const sparse = await encodeRows(places, states, options);
  const reconstruction = await decodeRows(places, sparse, states, options);
  const counted = countedRows(targets, nEmbd, bosOf(model, tokens));
  const replaced = (vectorOf: (token: number) => Float32Array | undefined) => (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => from + i)
      .filter((token) => counted[token])
      .map((token): Edit => {
        const vector = vectorOf(token);
        return { ...place, positions: [[token, token]], scale: 0, ...(vector && { vector, strength: 1 }) };
      });
  const row = (token: number) => reconstruction.subarray(token * nEmbd, (token + 1) * nEmbd);
  const edited = { layer, points: [place.point] };
  const reconstructed = await scorePass(context, tokens, edited, options, undefined, replaced(row));
  const ablated = await scorePass(
    context,
    tokens,
    edited,
    options,
    undefined,
    replaced(() => undefined),
  );
  return {
    tokens,
    states,
    targets,
    reconstruction,
    sparse,
    counted,
    scores: { clean, reconstructed, ablated },
  };
}

/** Log-probabilities of a text's next tokens, [tokens]; 0 for the last one, which has none. */
async function scorePass(
  context: Context,
  tokens: Int32Array,
  { layer, points }: { layer: number; points: BlockPoint[] },
  options: { signal?: AbortSignal },
  onRows?: (point: BlockPoint, start: number, rows: Float32Array) => void,
  editsOf: (from: number, to: number) => Edit[] = () => [],
): Promise<Float64Array> {
  const scores = new Float64Array(tokens.length);
  await context.reset();
  for (let start = 0; start < tokens.length; start += context.nBatch) {
    const chunk = tokens.slice(start, start + context.nBatch);
    const end = start + chunk.length;
    const found = await context.advance({
      tokens: chunk,
      layers: [layer],
      points,
      rows: "all",
      keepStates: onRows !== undefined,
      scored: Int32Array.from(chunk, (_, i) => tokens[start + i + 1] ?? -1),
      edits: editsOf(start, end),
      ...options,
    });
    for (const [i, point] of onRows === undefined ? [] : points.entries()) {
      onRows?.(point, start, found.layers[i]?.states?.data as Float32Array);
    }
    scores.set(found.logProbabilities as Float64Array, start);
  }
  return scores;
}

/**
 * Refuses dictionaries of points that the model lacks, and transcoders of an MLP's own output in models that normalise it
 * before it is added, where `ffn_out` is after that norm.
 * @throws UserError
 */
export function checkDictionary(stored: StoredDictionary, context: Context): void {
  checkPoints(context, [stored.point, writtenPoint(stored)]);
  const { name, hook_out: hook } = stored;
  if (hook === undefined || !hook.endsWith("mlp.hook_out") || !context.form.normed) return;
  throw new UserError(
    `The transcoder ${name} predicts ${hook}, before the norm that this model applies to MLP outputs; only ffn_out, after it, can be replaced.`,
  );
}

/** The share of one text in how well a dictionary fits several. Sums are over counted tokens. */
export interface TextFit {
  tokens: number;
  bos: number;
  outliers: number;
  /** Active features. */
  active: number;
  cosines: number;
  /** Of |x - y|^2, with y the reconstruction of x. */
  error: number;
  /** Of |x|^2. */
  square: number;
  /** Of x. float64 [hidden] */
  sum: Float64Array;
  /** Of |x - m|^2, with m the text's own mean. */
  around: number;
  /** Next tokens, and the sums of their log-probabilities. */
  scored: number;
  scores: { clean: number; reconstructed: number; ablated: number };
}

/** How well a dictionary fits one text. */
export function textFit(model: Model, reading: Reading): TextFit {
  const { nEmbd } = model.info;
  const { tokens, counted, sparse, targets, reconstruction, scores } = reading;
  const sum = new Float64Array(nEmbd);
  let [count, active, cosines, error, square, around] = [0, 0, 0, 0, 0, 0];
  const over = (visit: (x: Float32Array, y: Float32Array, token: number) => void) => {
    for (let token = 0; token < tokens.length; token++) {
      if (!counted[token]) continue;
      const row = (data: Float32Array) => data.subarray(token * nEmbd, (token + 1) * nEmbd);
      visit(row(targets), row(reconstruction), token);
    }
  };
  over((x, y, token) => {
    count++;
    active += (sparse.pointers[token + 1] as number) - (sparse.pointers[token] as number);
    let [product, xx, yy] = [0, 0, 0];
    for (let i = 0; i < nEmbd; i++) {
      const [a, b] = [x[i] as number, y[i] as number];
      sum[i] = (sum[i] as number) + a;
      error += (a - b) ** 2;
      product += a * b;
      xx += a * a;
      yy += b * b;
    }
    square += xx;
    cosines += xx > 0 && yy > 0 ? product / Math.sqrt(xx * yy) : 0;
  });
  over((x) => {
    for (let i = 0; i < nEmbd; i++) around += ((x[i] as number) - (sum[i] as number) / count) ** 2;
  });
  const bos = bosOf(model, tokens);
  const total = (of: Float64Array) => of.reduce((a, b) => a + b, 0);
  return {
    ...{ tokens: count, bos, outliers: tokens.length - count - bos },
    ...{ active, cosines, error, square, sum, around, scored: tokens.length - 1 },
    scores: {
      clean: total(scores.clean),
      reconstructed: total(scores.reconstructed),
      ablated: total(scores.ablated),
    },
  };
}

const totalOf = (fits: readonly TextFit[], of: (fit: TextFit) => number) =>
  fits.reduce((sum, fit) => sum + of(fit), 0);

/** Activations that the figures of some texts exclude. */
export function excludedIn(fits: readonly TextFit[]): Excluded {
  return { bos: totalOf(fits, ({ bos }) => bos), outliers: totalOf(fits, ({ outliers }) => outliers) };
}

/** How well a dictionary fits texts. */
export function fidelityOf(fits: readonly TextFit[]): Fidelity {
  const tokens = totalOf(fits, (fit) => fit.tokens);
  const error = totalOf(fits, (fit) => fit.error);
  const variance = varianceOf(fits, tokens);
  const entropy = crossEntropy(fits);
  const span = entropy === null ? 0 : entropy.ablated - entropy.clean;
  return {
    tokens,
    excluded: excludedIn(fits),
    l0: totalOf(fits, ({ active }) => active) / tokens,
    // If the activations hardly vary, their variance is rounding error.
    explained_variance:
      variance > 1e-10 * totalOf(fits, ({ square }) => square) ? 1 - error / variance : null,
    cosine: totalOf(fits, ({ cosines }) => cosines) / tokens,
    cross_entropy: entropy,
    loss_recovered:
      entropy !== null && Math.abs(span) > 1e-6 ? (entropy.ablated - entropy.reconstructed) / span : null,
  };
}

/** Sum of |x - mean x|^2 over all texts, from each text's sum around its own mean (Chan, Golub and LeVeque 1979). */
function varianceOf(fits: readonly TextFit[], tokens: number): number {
  const mean = new Float64Array(fits[0]?.sum.length ?? 0);
  for (const { sum } of fits) for (const [i, value] of sum.entries()) mean[i] = (mean[i] as number) + value;
  return totalOf(fits, (fit) => {
    if (fit.tokens === 0) return 0;
    let apart = 0;
    for (const [i, value] of fit.sum.entries()) {
      apart += (value / fit.tokens - (mean[i] as number) / tokens) ** 2;
    }
    return fit.around + fit.tokens * apart;
  });
}

function crossEntropy(fits: readonly TextFit[]): Fidelity["cross_entropy"] {
  const scored = totalOf(fits, (fit) => fit.scored);
  if (scored === 0) return null;
  const mean = (which: keyof TextFit["scores"]) => -totalOf(fits, ({ scores }) => scores[which]) / scored;
  return { clean: mean("clean"), reconstructed: mean("reconstructed"), ablated: mean("ablated") };
}
