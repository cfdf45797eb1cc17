import { constants, copyFile, open } from "node:fs/promises";
import { UserError } from "../contracts/user-error.js";
import { bytesOf, floatsOf, toBf16, toHalf } from "../formats/float.js";
import { type PlacedWeight, readWeightPlaces } from "../models/gguf-header.js";
import type { OpenedFile } from "./files.js";
import { nf4Group, roundToNf4 } from "./nf4.js";
import { evenText, nf4Text } from "./rounded-types.js";

/** Rounding to the nearest of evenly spaced values, the plain method with which published ones are compared. */
export interface EvenRounding {
  /** Per weight: 2 to 8. */
  bits: number;
  /** Consecutive weights of a row with a common scale; null: the whole row. */
  group: number | null;
}

/** Rounding to a format of other programs. */
export interface NamedRounding {
  format: "nf4";
}

export type Rounding = EvenRounding | NamedRounding;

/** How weights are rounded, and what storing them would take. */
interface Method {
  /** In the name of the form. */
  name: string;
  /** The type of its weights in words. */
  text: string;
  /** Per weight, and per scale. */
  bits: number;
  scaleBits: number;
  group: number | null;
  /** Which matrices: all, or those that other programs have as linear layers. */
  covers: (name: string, shape: readonly number[]) => boolean;
  /** Rounds a row in place. */
  round: (row: Float32Array) => void;
}

function methodOf(rounding: Rounding): Method {
  if ("format" in rounding) {
    return {
      ...{ name: "NF4", text: `${nf4Text}, a scale per ${nf4Group} weights` },
      // bitsandbytes replaces linear layers: neither embeddings nor the output, nor experts, which are stacked matrices.
      ...{ bits: 4, scaleBits: 32, group: nf4Group, round: roundToNf4 },
      covers: (name, shape) => name.startsWith("blk.") && shape.length === 2,
    };
  }
  const { bits, group } = rounding;
  return {
    name: group === null ? `RTN${bits}` : `RTN${bits}x${group}`,
    text: `${bits}-bit ${evenText}, a scale per ${group === null ? "row" : `${group} weights`}`,
    ...{ bits, scaleBits: 16, group, covers: () => true, round: (row) => roundRow(row, rounding) },
  };
}

export const mostRoundingBits = 8;
export const leastRoundingBits = 2;

/** Types that are read and written here, by ggml's number. */
const types: Readonly<
  Record<number, { name: string; bytes: number; write: (of: Float32Array) => Uint8Array }>
> = {
  0: { name: "F32", bytes: 4, write: bytesOf },
  1: { name: "F16", bytes: 2, write: (values) => bytesOf(toHalf(values)) },
  30: { name: "BF16", bytes: 2, write: (values) => bytesOf(toBf16(values)) },
};

/** Weights that llama-quantize leaves as they are: routers, positions, convolutions. */
const spared = /ffn_gate_inp|position_embd|token_types|ssm_conv1d|shortconv/;

/** Numbers that are rounded at a time, about; whole rows. */
const chunk = 1 << 20;

export function roundingName(rounding: Rounding): string {
  return methodOf(rounding).name;
}

/**
 * Rounds a row's weights in place: each group's greatest magnitude becomes 2^(bits-1) - 1 steps, and every weight the nearest
 * whole number of steps, ties to even. Scales are stored in binary16.
 */
export function roundRow(row: Float32Array, { bits, group }: EvenRounding): void {
  const levels = 2 ** (bits - 1) - 1;
  const size = group ?? row.length;
  const scale = new Float32Array(1);
  for (let from = 0; from < row.length; from += size) {
    const part = row.subarray(from, from + size);
    let most = 0;
    for (const weight of part) most = Math.max(most, Math.abs(weight));
    scale[0] = most / levels;
    const step = floatsOf("F16", bytesOf(toHalf(scale)))![0] as number;
    for (let i = 0; i < part.length; i++) {
      const steps = step === 0 ? 0 : toEven((part[i] as number) / step);
      part[i] = Math.max(-levels, Math.min(levels, steps)) * step;
    }
  }
}

function toEven(value: number): number {
  const whole = Math.round(value);
  return whole - value === 0.5 && whole % 2 !== 0 ? whole - 1 : whole;
}

/**
 * Writes a copy of a model whose matrices are rounded; numbers keep their type, because no type of GGUF files stores them in
 * so few bits.
 * @throws UserError for several files, or weights of fewer than 16 bits
 */
export async function writeRounded(
  from: string,
  to: string,
  rounding: Rounding,
  signal: AbortSignal,
): Promise<void> {
  const method = methodOf(rounding);
  const { weights, metadata } = await readWeightPlaces([from]);
  if (Number(metadata.get("split.count") ?? 1) > 1) {
    throw new UserError("A model of several files cannot be rounded; merge them with llama-gguf-split.");
  }
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  const file = await open(to, "r+");
  try {
    for (const [name, weight] of weights) {
      signal.throwIfAborted();
      if (!isRounded(method, name, weight)) continue;
      const type = types[weight.type];
      if (type === undefined) {
        throw new UserError(
          `${name} has fewer than 16 bits per weight; rounding needs the original weights.`,
        );
      }
      const width = weight.shape[0] as number;
      const rows = countOf(weight) / width;
      const rowsAtOnce = Math.max(1, Math.floor(chunk / width));
      for (let row = 0; row < rows; row += rowsAtOnce) {
        const bytes = Buffer.alloc(Math.min(rowsAtOnce, rows - row) * width * type.bytes);
        const place = weight.offset + row * width * type.bytes;
        await file.read(bytes, 0, bytes.length, place);
        const values = floatsOf(type.name, bytes) as Float32Array;
        for (let at = 0; at < values.length; at += width) method.round(values.subarray(at, at + width));
        await file.write(type.write(values), 0, bytes.length, place);
      }
    }
  } finally {
    await file.close();
  }
}

/** A written file, with the size and types that its weights would have if they were stored in so few bits. */
export async function describeRounded(file: OpenedFile, rounding: Rounding): Promise<OpenedFile> {
  const method = methodOf(rounding);
  const { weights } = await readWeightPlaces([file.path]);
  const own = { type: method.text, tensors: 0, weights: 0 };
  const types = file.types.map((each) => ({ ...each }));
  let [all, saved] = [0, 0];
  for (const [name, weight] of weights) {
    const count = countOf(weight);
    all += count;
    if (!isRounded(method, name, weight)) continue;
    const stored = storedBits(weight.type);
    const kind = types.find(({ type }) => type === typeName(weight.type)) as (typeof types)[number];
    kind.tensors--;
    kind.weights -= count;
    own.tensors++;
    own.weights += count;
    const width = weight.shape[0] as number;
    const scales = (count / width) * Math.ceil(width / (method.group ?? width));
    const needed = count * method.bits + method.scaleBits * scales;
    saved += count * stored - needed;
  }
  return {
    ...file,
    name: method.name,
    bytes: Math.round(file.bytes - saved / 8),
    bits_per_weight: file.bits_per_weight - saved / all,
    types: [own, ...types.filter(({ tensors }) => tensors > 0)].sort((a, b) => b.weights - a.weights),
  };
}

const typeName = (type: number) => types[type]?.name;
const storedBits = (type: number) => 8 * (types[type]?.bytes ?? 0);
const countOf = ({ shape }: PlacedWeight) => shape.reduce((product, length) => product * length, 1);

function isRounded({ covers }: Method, name: string, weight: PlacedWeight): boolean {
  const matrix = countOf(weight) > (weight.shape[0] as number) && name.endsWith(".weight");
  return matrix && !spared.test(name) && covers(name, weight.shape);
}
