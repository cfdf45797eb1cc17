import { readDictionary } from "../../src/formats/dictionaries/read.js";
import type { RowStream } from "../../src/formats/dictionaries/row-stream.js";
import { FormatError } from "../../src/formats/format-error.js";
import type { Arrays, Folder } from "../support/layout-folder.js";
import { refusalBy } from "../support/refusal.js";

/** Everything that is read, its numbers as plain lists. */
export async function read(files: Folder, k?: number): Promise<Record<string, unknown>> {
  const dictionary = await readDictionary(files, k);
  const found = Object.entries({ ...dictionary, decoder: await wholeOf(dictionary.decoder) });
  return Object.fromEntries(
    found.map(([name, value]) => [name, ArrayBuffer.isView(value) ? [...(value as Float32Array)] : value]),
  );
}

async function wholeOf(matrix: Float32Array | RowStream): Promise<Float32Array> {
  if (matrix instanceof Float32Array) return matrix;
  const numbers: number[] = [];
  for await (const piece of matrix.pieces()) numbers.push(...piece);
  return Float32Array.from(numbers);
}

/** The sentence that a folder is refused with. */
export const refusal = (files: Folder, k?: number): Promise<string> =>
  refusalBy(FormatError)(() => read(files, k));

/** By feature: what all layouts below hold, one way round or the other. */
export const [encoder, decoder] = [
  [1, 2, 3, 4, 5, 6],
  [3, 0, 4, 0, 0, 2],
];
export const across = (rows: readonly number[]) => [0, 3, 1, 4, 2, 5].map((place) => rows[place] as number);
export const [wide, tall, two, three] = [[2, 3], [3, 2], [2], [3]];
export const plain = {
  ...{ hidden: 3, features: 2, k: 0, rowScaling: "none", subtractBias: false, notes: [] },
  ...{ encoder, decoder, encoderBias: [0.5, -1], decoderBias: [7, 8, 9] },
};
export const biases: Arrays = { b_enc: [two, [0.5, -1]], b_dec: [three, [7, 8, 9]] };

export const hook = "blocks.3.hook_resid_post";
