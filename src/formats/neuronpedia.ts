import { gunzipSync } from "node:zlib";
import { FormatError } from "./format-error.js";

/** Maximum size of an unpacked labels file. */
const mostBytes = 512 * 1024 ** 2;

/**
 * Feature labels by index, from the explanations in Neuronpedia's exports (`explanations/batch-N.jsonl`, optionally
 * gzipped) or from answers of its feature API (an object or an array). If a feature has several, the first is used.
 * @throws FormatError if it is neither
 */
export function readLabels(bytes: Uint8Array): Map<number, string> {
  const labels = new Map<number, string>();
  for (const entry of entriesOf(textOf(bytes))) {
    const { index, description, explanations } = Object(entry) as Record<string, unknown>;
    const feature = typeof index === "string" && /^\d{1,9}$/.test(index) ? Number(index) : index;
    if (!Number.isSafeInteger(feature) || (feature as number) < 0) continue;
    const [first] = Array.isArray(explanations) ? explanations : [];
    const label = description ?? (Object(first) as Record<string, unknown>).description;
    if (typeof label === "string" && label.trim() !== "" && !labels.has(feature as number)) {
      labels.set(feature as number, label.trim().slice(0, 500));
    }
  }
  return labels;
}

function textOf(bytes: Uint8Array): string {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return Buffer.from(bytes).toString("utf8");
  try {
    return gunzipSync(bytes, { maxOutputLength: mostBytes }).toString("utf8");
  } catch (error) {
    throw new FormatError(`The labels cannot be unpacked (${(error as NodeJS.ErrnoException).code}).`);
  }
}

function entriesOf(text: string): unknown[] {
  try {
    const whole: unknown = JSON.parse(text);
    return Array.isArray(whole) ? whole : [whole];
  } catch {
    // JSON Lines
  }
  return text.split("\n").flatMap((line, i) => {
    if (line.trim() === "") return [];
    try {
      return [JSON.parse(line) as unknown];
    } catch {
      throw new FormatError(`Line ${i + 1} of the labels is not JSON.`);
    }
  });
}
