import { NativeError } from "./error.js";

/** The addon's integers have 32 bits. */
const greatest = 2 ** 31 - 1;

export function invalid(sentence: string): NativeError {
  return new NativeError("INVALID_ARGUMENT", sentence);
}

/** @throws NativeError INVALID_ARGUMENT unless the value is absent or an integer of that range */
export function checkInteger(name: string, value: unknown, least: number, most = greatest): void {
  if (value === undefined) return;
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return;
  throw invalid(`${name} must be an integer from ${least} to ${most}, got ${shown(value)}.`);
}

/** @throws NativeError INVALID_ARGUMENT unless every entry is an integer; the addon checks the range */
export function checkLayers(layers: unknown): void {
  if (!Array.isArray(layers)) throw invalid("Layers must be an array of block indices.");
  for (const layer of layers) checkInteger("A layer", layer ?? null, -greatest);
}

/** Checked ids for the addon. */
export function tokenIds(value: unknown): Int32Array {
  if (value instanceof Int32Array) return value;
  throw invalid("Token ids must be an Int32Array.");
}

/** An optional flag for the addon; -1 means its default. */
export function flag(value: boolean | undefined): number {
  return value === undefined ? -1 : Number(value);
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
