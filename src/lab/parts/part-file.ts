import { readdir, readFile } from "node:fs/promises";
import type { Config, Provenance } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { canonicalHash } from "../../formats/canonical-json.js";
import type { Computed } from "../../operations/run.js";

const format = "tapline part 1";

/** A part of an experiment, in a file. */
export interface Part extends Computed<unknown, unknown> {
  format: typeof format;
  /** [i, n]: part i of n. */
  part: [number, number];
  /** Hash of everything that determines the numbers: parts that agree here belong together. */
  configuration: string;
  /** The hashed values: configuration and head, without paths of models. */
  source: Record<string, unknown>;
  config: Config;
  provenance: Provenance;
}

export const partFile = ([index, count]: readonly [number, number]) => `part-${index}-of-${count}.json`;
export const isPartFile = (name: string) => /^part-\d+-of-\d+\.json$/.test(name);

/** Whether a folder has parts of an experiment other than an extraction. */
export async function hasParts(folder: string): Promise<boolean> {
  return (await readdir(folder).catch(() => [])).some(isPartFile);
}

/** Fields of a configuration that name files, which may differ between machines; their fingerprints are hashed instead. */
const places = new Set(["model", "revision", "other", "other_revision"]);

/** A part's contents. The same part gives the same bytes. */
export function partText(
  part: readonly [number, number],
  { config, head, items }: Computed<unknown, unknown> & { config: Config },
  { made, provenance }: { made: Record<string, unknown>; provenance: Provenance },
): string {
  const settings = Object.fromEntries(Object.entries(config).filter(([name]) => !places.has(name)));
  const source = { ...settings, ...made, head: encoded(head) };
  const configuration = canonicalHash(source);
  return `${JSON.stringify({ format, part, configuration, source, config, provenance, head, items }, encode)}\n`;
}

/** @throws UserError if it is not a part, or not whole */
export async function readPart(path: string): Promise<Part> {
  const refuse = (why: string) => new UserError(`${path} is not a part of an experiment: ${why}.`);
  let part: Part;
  try {
    part = JSON.parse(await readFile(path, "utf8"), decode) as Part;
  } catch (error) {
    throw refuse((error as NodeJS.ErrnoException).code ?? "it is not JSON");
  }
  if (part?.format !== format) throw refuse(`its format is not "${format}"`);
  return part;
}

const arrays = { Int32Array, Uint8Array, Float32Array, Float64Array };
type ArrayName = keyof typeof arrays;

/** JSON as it is for plain data; numbers and arrays to the last bit. */
function encode(_name: string, value: unknown): unknown {
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
    return { $number: Object.is(value, -0) ? "-0" : String(value) };
  }
  if (!ArrayBuffer.isView(value)) return value;
  const { buffer, byteOffset, byteLength } = value;
  return {
    $array: value.constructor.name,
    base64: Buffer.from(buffer, byteOffset, byteLength).toString("base64"),
  };
}

function encoded(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, encode) ?? "null");
}

function decode(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("$number" in value) return Number(value.$number);
  if (!("$array" in value && "base64" in value)) return value;
  // A copy, because a Buffer's memory need not be aligned.
  const bytes = Uint8Array.from(Buffer.from(value.base64 as string, "base64"));
  return new arrays[value.$array as ArrayName](bytes.buffer as ArrayBuffer);
}
