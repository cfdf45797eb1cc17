import { auroc } from "../findings/probe.js";
import { shuffle, uniformNumbers } from "../findings/random.js";

/** Activations of several texts at one layer, concatenated: [texts, hidden]. */
export interface States {
  data: Float32Array;
  hidden: number;
}

export type DirectionMethod = "difference" | "pca";

export interface Direction {
  vector: Float32Array;
  /** Mean L2 norm of the activations that it was made from. */
  typicalRow: number;
  /** AUROC of projections on directions made without the projected texts; null if there are too few. */
  separation: number | null;
  /** The same with shuffled labels, averaged over several shuffles. */
  shuffledSeparation: number | null;
  /**
   * The projections behind the AUROC, one per text, on a direction made without it, in units of the full direction's
   * length; null if there are too few.
   */
  projections: { positive: number[]; negative: number[] } | null;
}

const folds = 5;
const shuffles = 20;
const pcaSteps = 200;

/**
 * A direction from activations of positive and negative texts, and how well it separates held-out texts.
 *
 * `difference`: mean of the positive activations minus mean of the negative ones (Rimsky et al., 2312.06681; Marks
 * and Tegmark, 2310.06824). `pca`: first principal component of the paired differences, centred, as in repeng (Zou et
 * al., 2310.01405), oriented towards the positive texts, with their mean difference along it as its length.
 * @param seed of the shuffled labels
 */
export function makeDirection(
  positive: States,
  negative: States,
  method: DirectionMethod,
  seed: number,
): Direction {
  const rows = [...rowsOf(positive), ...rowsOf(negative)];
  const labels = rows.map((_, index) => index < rows.length - rowsOf(negative).length);
  const vector = directionOf(rows, labels, method);
  const { scores, ...told } = separations(rows, labels, method, seed);
  const unit = lengthOf(vector) || 1;
  const along = (side: boolean) =>
    [...(scores ?? [])].flatMap((score, index) =>
      labels[index] === side ? [Number((score / unit).toPrecision(6))] : [],
    );
  return {
    vector,
    typicalRow: rows.reduce((sum, row) => sum + lengthOf(row), 0) / rows.length,
    ...told,
    projections: scores === null ? null : { positive: along(true), negative: along(false) },
  };
}

function rowsOf({ data, hidden }: States): Float32Array[] {
  return Array.from({ length: data.length / hidden }, (_, row) =>
    data.subarray(row * hidden, (row + 1) * hidden),
  );
}

function directionOf(rows: Float32Array[], labels: boolean[], method: DirectionMethod): Float32Array {
  const ones = rows.filter((_, index) => labels[index]);
  const zeros = rows.filter((_, index) => !labels[index]);
  const difference = minus(mean(ones), mean(zeros));
  if (method === "difference") return Float32Array.from(difference);
  const component = firstComponent(ones.map((row, index) => minus(row, zeros[index] as Float32Array)));
  const along = dot(difference, component);
  return Float32Array.from(component, (value) => value * along);
}

/** By power iteration on the centred rows; a unit vector. */
function firstComponent(rows: Float64Array[]): Float64Array {
  const centre = mean(rows);
  const centred = rows.map((row) => minus(row, centre));
  // Start with the longest row, which has a share of the largest component unless all rows are equal.
  let vector = centred.reduce((best, row) => (dot(row, row) > dot(best, best) ? row : best));
  if (dot(vector, vector) === 0) vector = centre; // one pair, or pairs with equal differences
  for (let step = 0; step < pcaSteps; step++) {
    const next = new Float64Array(vector.length);
    for (const row of centred) {
      const share = dot(row, vector);
      for (let i = 0; i < next.length; i++) next[i] = (next[i] as number) + share * (row[i] as number);
    }
    const norm = lengthOf(next);
    if (norm === 0) break;
    const turned = next.map((value) => value / norm);
    const moved = 1 - Math.abs(dot(turned, vector)) / lengthOf(vector);
    vector = turned;
    if (moved < 1e-14) break;
  }
  const norm = lengthOf(vector) || 1;
  return vector.map((value) => value / norm);
}

/** Projects every text on a direction made from the other folds; pairs stay together. */
function separations(
  rows: Float32Array[],
  labels: boolean[],
  method: DirectionMethod,
  seed: number,
): Pick<Direction, "separation" | "shuffledSeparation"> & { scores: Float64Array | null } {
  const least = Math.min(labels.filter(Boolean).length, labels.filter((label) => !label).length);
  if (least < 3) return { separation: null, shuffledSeparation: null, scores: null };
  const of = (given: boolean[]) => crossFitted(rows, given, method, Math.min(folds, least));
  const random = uniformNumbers(seed);
  let sum = 0;
  for (let round = 0; round < shuffles; round++) {
    const mixed = shuffle([...labels], random);
    sum += separationOf(of(mixed), mixed);
  }
  const scores = of(labels);
  return { separation: separationOf(scores, labels), shuffledSeparation: sum / shuffles, scores };
}

function crossFitted(
  rows: Float32Array[],
  labels: boolean[],
  method: DirectionMethod,
  count: number,
): Float64Array {
  // The n-th positive and the n-th negative text share a fold, so that pairs stay together.
  const seen = { true: 0, false: 0 };
  const fold = labels.map((label) => seen[`${label}`]++ % count);
  const scores = new Float64Array(rows.length);
  for (let out = 0; out < count; out++) {
    const kept = rows.map((_, index) => index).filter((index) => fold[index] !== out);
    const vector = directionOf(
      kept.map((index) => rows[index] as Float32Array),
      kept.map((index) => labels[index] as boolean),
      method,
    );
    for (const [index, row] of rows.entries()) if (fold[index] === out) scores[index] = dot(row, vector);
  }
  return scores;
}

/** The share of pairs in which the positive text scores higher; ties count half. */
function separationOf(scores: Float64Array, labels: boolean[]): number {
  const side = (wanted: boolean) => [...scores].filter((_, index) => labels[index] === wanted);
  return auroc(side(true), side(false));
}

type Row = Float32Array | Float64Array;

function mean(rows: readonly Row[]): Float64Array {
  const sum = new Float64Array(rows[0]?.length ?? 0);
  for (const row of rows)
    for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) + (row[i] as number);
  return sum.map((value) => value / rows.length);
}

function minus(a: Row, b: Row): Float64Array {
  return Float64Array.from(a as ArrayLike<number>, (value, index) => value - (b[index] as number));
}

/** Dot product of vectors of equal length. */
export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

/** L2 norm of a vector. */
export function lengthOf(vector: ArrayLike<number>): number {
  return Math.sqrt(dot(vector, vector));
}
