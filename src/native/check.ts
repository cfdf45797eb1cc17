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

/** @throws NativeError INVALID_ARGUMENT unless every entry is an integer; which blocks there are is the model's to say */
export function checkLayers(layers: unknown): void {
  if (!Array.isArray(layers)) throw invalid("Layers must be an array of block indices.");
  for (const layer of layers) checkInteger("A layer", layer ?? null, -greatest);
}

/** The ids as the addon wants them. */
export function tokenIds(value: unknown): Int32Array {
  if (value instanceof Int32Array) return value;
  throw invalid("Token ids must be an Int32Array.");
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
