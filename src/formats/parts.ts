import { canonicalHash } from "./canonical-json.js";
import { differenceOf } from "./difference.js";
import { FormatError } from "./format-error.js";

/** What the files of all parts have: work whose items are computed on several machines, each in one file. */
export interface PartHead {
  format: string;
  /** [i, n]: part i of n. */
  part: [number, number];
  /** Hash of `source`: parts that agree here belong together. */
  configuration: string;
  /** Everything that determines the numbers. */
  source: Record<string, unknown>;
}

export const partFile = ([index, count]: readonly [number, number]) => `part-${index}-of-${count}.json`;
export const isPartFile = (name: string) => /^part-\d+-of-\d+\.json$/.test(name);

/** Items of part `index` of `count`: every n-th one. */
export function itemsOf(items: number, [index, count]: readonly [number, number]): number[] {
  return Array.from({ length: items }, (_, item) => item).filter((item) => item % count === index);
}

/** A part's contents. The same part gives the same bytes. */
export function partText(
  format: string,
  part: readonly [number, number],
  source: Record<string, unknown>,
  more: Record<string, unknown>,
): string {
  const plain = JSON.parse(JSON.stringify(source, encode)) as Record<string, unknown>;
  const head = { format, part, configuration: canonicalHash(plain), source: plain };
  return `${JSON.stringify({ ...head, ...more }, encode)}\n`;
}

/** @throws FormatError if it is not JSON, or of another format */
export function parsePart<P extends PartHead>(text: string, format: string): P {
  let part: P;
  try {
    part = JSON.parse(text, decode) as P;
  } catch {
    throw new FormatError("it is not JSON");
  }
  if (part?.format !== format) throw new FormatError(`its format is not "${format}"`);
  return part;
}

/**
 * The files of all parts in a folder, in order.
 * @param names of the folder's files
 * @throws FormatError if parts are missing or of several divisions
 */
export function partFiles(folder: string, names: readonly string[]): string[] {
  const own = names.filter(isPartFile);
  const counts = [...new Set(own.map((name) => Number(/-of-(\d+)/.exec(name)?.[1])))].sort((a, b) => a - b);
  const [count = 0] = counts;
  if (counts.length > 1) {
    throw new FormatError(
      `${folder} contains parts of several divisions: into ${counts.join(" and ")} parts.`,
    );
  }
  const wanted = Array.from({ length: count }, (_, part) => partFile([part, count]));
  const missing = wanted.filter((name) => !own.includes(name));
  if (missing.length === 0) return wanted;
  throw new FormatError(`${folder} lacks ${missing.length} of ${count} parts: ${missing.join(", ")}.`);
}

/** @param what they are parts of @throws FormatError if they do not belong together */
export function checkAlike(parts: readonly PartHead[], what: string): void {
  const [first] = parts as [PartHead];
  const hash = ({ configuration }: PartHead) => configuration.slice(0, 8);
  for (const part of parts) {
    if (part.configuration === first.configuration) continue;
    const [one, other] = [partFile(first.part), partFile(part.part)];
    const difference = differenceOf(first.source, part.source) ?? "their configurations differ";
    throw new FormatError(
      `${other} (${hash(part)}) belongs to another ${what} than ${one} (${hash(first)}): ` +
        `${difference.replace(/ there\b/, ` in ${one}`).replace(/ here$/, ` in ${other}`)}.`,
    );
  }
}

/** The items of all parts in their order. @throws FormatError if a part has more or fewer than {@link itemsOf} */
export function interleaved<T>(parts: readonly (readonly T[])[]): T[] {
  const total = parts.reduce((sum, { length }) => sum + length, 0);
  const items: T[] = new Array(total);
  for (const [index, part] of parts.entries()) {
    const own = itemsOf(total, [index, parts.length]);
    if (own.length !== part.length) {
      throw new FormatError(
        `${partFile([index, parts.length])} has ${part.length} items; with ${total} in all, it should have ${own.length}.`,
      );
    }
    for (const [n, item] of own.entries()) items[item] = part[n] as T;
  }
  return items;
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

function decode(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("$number" in value) return Number(value.$number);
  if (!("$array" in value && "base64" in value)) return value;
  // A copy, because a Buffer's memory need not be aligned.
  const bytes = Uint8Array.from(Buffer.from(value.base64 as string, "base64"));
  return new arrays[value.$array as ArrayName](bytes.buffer as ArrayBuffer);
}
