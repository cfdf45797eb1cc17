import type { Budget, BudgetReading } from "../contracts/budget.js";
import { budgetLimits } from "../contracts/budget-limits.js";
import { randomVector } from "../findings/random.js";
import { floatsOf } from "../formats/float.js";
import type { BudgetItems } from "./items.js";

/** The readings of a check, and their order. */
export type Reading = Pick<BudgetReading, "kind" | "name" | "layer">;

/** Numbers that a block's output takes in a row of values: its norm, and its random projections. */
export const blockValues = 1 + budgetLimits.sketch;

/** Every reading of a budget's items: blocks first, then one number each. */
export function readingsOf({ probes, vectors, features }: BudgetItems, blocks: number): Reading[] {
  return [
    ...Array.from({ length: blocks }, (_, layer): Reading => ({ kind: "block", name: "", layer })),
    ...probes.map(({ name, layer }): Reading => ({ kind: "probe", name, layer })),
    ...vectors.map(({ name, layer }): Reading => ({ kind: "vector", name, layer })),
    ...features.map(
      ({ dictionary, feature, layer }): Reading => ({
        kind: "feature",
        name: `${dictionary}:${feature}`,
        layer,
      }),
    ),
    { kind: "next", name: "", layer: null },
  ];
}

/** Values per token. */
export function valuesPerToken(readings: readonly Reading[]): number {
  return readings.reduce((sum, { kind }) => sum + (kind === "block" ? blockValues : 1), 0);
}

/**
 * Random directions, scaled so that the sum of squared projections of a difference has the expectation of its squared norm
 * (Johnson & Lindenstrauss, 1984): a few numbers per block estimate how far two outputs are apart.
 */
export function sketchDirections(hidden: number, seed: number): Float32Array[] {
  const { sketch } = budgetLimits;
  return Array.from({ length: sketch }, (_, index) =>
    randomVector(hidden, Math.sqrt(hidden / sketch), seed + 7919 * index),
  );
}

/** Numbers of a budget's item or reference. */
export function floatsIn(base64: string): Float32Array {
  return floatsOf("F32", Buffer.from(base64, "base64")) as Float32Array;
}

/**
 * How far two sets of values are apart, [tokens, readings]; infinite where one is not a number.
 * @param units per reading
 */
export function deviations(
  readings: readonly Reading[],
  units: readonly number[],
  reference: Float32Array,
  values: Float32Array,
): Float64Array {
  const width = valuesPerToken(readings);
  const rows = reference.length / width;
  const found = new Float64Array(rows * readings.length);
  for (let row = 0; row < rows; row++) {
    let at = row * width;
    for (const [index, { kind }] of readings.entries()) {
      const apart =
        kind === "block"
          ? blockDeviation(reference.subarray(at, at + blockValues), values.subarray(at, at + blockValues))
          : Math.abs((values[at] as number) - (reference[at] as number));
      const deviation = apart / (units[index] as number);
      found[row * readings.length + index] = Number.isNaN(deviation) ? Number.POSITIVE_INFINITY : deviation;
      at += kind === "block" ? blockValues : 1;
    }
  }
  return found;
}

function blockDeviation(reference: Float32Array, values: Float32Array): number {
  let squares = 0;
  for (let index = 1; index < blockValues; index++) {
    squares += ((values[index] as number) - (reference[index] as number)) ** 2;
  }
  return Math.sqrt(squares) / Math.max(reference[0] as number, 1e-30);
}

/** The greatest deviation of each reading over all tokens. */
export function greatest(deviation: Float64Array, readings: number): number[] {
  const found = new Array<number>(readings).fill(0);
  for (const [index, value] of deviation.entries()) {
    const reading = index % readings;
    found[reading] = Math.max(found[reading] as number, value);
  }
  return found;
}

/** The unit of each reading: a feature's is its greatest activation, a vector's its length. */
export function unitsOf(
  readings: readonly Reading[],
  { vectors }: Pick<Budget, "vectors">,
  references: readonly Float32Array[],
): number[] {
  const width = valuesPerToken(readings);
  let at = 0;
  return readings.map((reading) => {
    const place = at;
    at += reading.kind === "block" ? blockValues : 1;
    if (reading.kind === "vector") {
      const own = vectors.find(({ name, layer }) => name === reading.name && layer === reading.layer);
      return Math.max(Math.hypot(...floatsIn(own?.values ?? "")), 1e-30);
    }
    if (reading.kind !== "feature") return 1;
    let most = 0;
    for (const values of references) {
      for (let row = place; row < values.length; row += width) most = Math.max(most, values[row] as number);
    }
    return most > 0 ? most : 1;
  });
}
