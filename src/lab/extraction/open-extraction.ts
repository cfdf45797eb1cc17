import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { BlockPoint } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { FormatError } from "../../formats/format-error.js";
import type { TensorPlace } from "../../formats/safetensors.js";
import { readBytes, tensorPlaces } from "../../library/tensor-files.js";
import type { ExtractionIndex } from "./folder.js";
import { isIndexName, type RowForm, rowsName, type Shard, targetsName } from "./plan.js";
import { formOf, readIndex } from "./read-index.js";

/** One file of rows, and the texts they belong to. */
export interface ShardRows {
  path: string;
  rows: number;
  /** File offset of each layer's rows, and of their targets, if it has them. */
  offsets: ReadonlyMap<number, number>;
  targets: ReadonlyMap<number, number>;
  tokenIds: Int32Array;
  /** Text i has tokens starts[i] to starts[i + 1]. */
  starts: Int32Array;
  /** Index of each text in the data. */
  indices: Int32Array;
}

/** A finished extraction, or the parts of one made by several machines. */
export interface Extraction {
  folder: string;
  form: RowForm;
  /** The model, as recorded in the index. */
  model: { name: string; fingerprint: string };
  /** Hash of its indices: extractions that agree here are identical. */
  sha256: string;
  /** Skipped tokens at the start of a text: the norm of a BOS token's block output is tens of times larger. */
  skipped: number;
  texts: number;
  rows: number;
  shards: Shard[];
  files: string[];
}

/**
 * Opens an extraction's folder, from its index or the indices of its parts.
 * @throws UserError if there is none, or it is not finished
 */
export async function openExtraction(folder: string): Promise<Extraction> {
  const names = (
    await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      throw new UserError(`${folder} cannot be read (${error.code}).`);
    })
  ).filter(isIndexName);
  if (names.length === 0) {
    throw new UserError(
      `${folder} does not contain an extraction: it has no index.json from tapline extract.`,
    );
  }
  const parts = await Promise.all(names.sort().map((name) => readIndex(join(folder, name))));
  const first = parts[0] as ExtractionIndex;
  for (const [i, part] of parts.entries()) {
    if (!part.complete) {
      throw new UserError(
        `${join(folder, names[i] as string)} is not finished: run the same tapline extract again.`,
      );
    }
    for (const field of ["model_fingerprint", "layers", "point", "target", "hidden", "rows", "dtype"]) {
      const [here, there] = [first, part].map(({ source }) => JSON.stringify(source[field]));
      if (here !== there) {
        throw new UserError(
          `The parts in ${folder} belong to different extractions: ${field} is ${here} and ${there}.`,
        );
      }
    }
  }
  const { model_fingerprint, skipped_in_mean } = first.source;
  const shards = parts.flatMap((part) => part.shards);
  return {
    folder,
    form: formOf(first),
    model: { name: first.made_with.model ?? "", fingerprint: String(model_fingerprint) },
    sha256: createHash("sha256")
      .update(JSON.stringify(parts.map(({ source, shards }) => [source, shards])))
      .digest("hex"),
    skipped: Number(skipped_in_mean),
    texts: parts.reduce((sum, part) => sum + part.texts, 0),
    rows: parts.reduce((sum, part) => sum + part.rows, 0),
    shards,
    files: shards.map(({ file }) => join(folder, file)),
  };
}

/** The point of an extraction. */
export function pointOfRows({ form }: Extraction): BlockPoint {
  return form.point ?? "block_out";
}

/** Reads a shard's metadata; its rows stay in the file. @throws UserError if the file does not match the index */
export async function readShard(
  extraction: Pick<Extraction, "form" | "shards" | "files">,
  number: number,
): Promise<ShardRows> {
  const path = extraction.files[number] as string;
  const { hidden, layers, target, dtype, rows: kind } = extraction.form;
  const { rows } = extraction.shards[number] as Shard;
  try {
    const { places } = await tensorPlaces(path);
    const whole = async (name: string) => {
      const place = placeOf(places, name);
      if (place.dtype !== "I32") throw new FormatError(`${name} is of type ${place.dtype}, not I32`);
      const bytes = await readBytes(path, place.start, place.end);
      return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    };
    const [tokenIds, starts, indices] = [
      await whole("token_ids"),
      await whole("text_starts"),
      await whole("text_indices"),
    ];
    checkTexts(tokenIds, starts, indices, kind === "all" ? tokenIds.length : indices.length, rows);
    const startOf = (name: string) => {
      const { shape, start, dtype: type } = placeOf(places, name);
      if (shape[0] !== rows || shape[1] !== hidden || type !== dtype.toUpperCase()) {
        throw new FormatError(`${name} is ${type} [${shape.join(", ")}], not ${dtype} [${rows}, ${hidden}]`);
      }
      return start;
    };
    const startsOf = (name: (layer: number) => string) =>
      new Map(layers.map((layer) => [layer, startOf(name(layer))]));
    return {
      ...{ path, rows, tokenIds, starts, indices },
      offsets: startsOf(rowsName),
      targets: target === undefined ? new Map() : startsOf(targetsName),
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined) throw new UserError(`${path} cannot be read (${code}).`);
    throw error instanceof FormatError
      ? new UserError(`${path} does not match the index: ${message.replace(/\.$/, "")}.`)
      : error;
  }
}

function placeOf(places: ReadonlyMap<string, TensorPlace>, name: string): TensorPlace {
  const place = places.get(name);
  if (place !== undefined) return place;
  throw new FormatError(`it has no ${name}`);
}

function checkTexts(
  tokenIds: Int32Array,
  starts: Int32Array,
  indices: Int32Array,
  counted: number,
  rows: number,
): void {
  const ordered = starts.every((start, i) => i === 0 || start >= (starts[i - 1] as number));
  if (
    starts.length !== indices.length + 1 ||
    starts[0] !== 0 ||
    starts.at(-1) !== tokenIds.length ||
    !ordered ||
    counted !== rows
  ) {
    throw new FormatError("its texts, tokens and rows are inconsistent");
  }
}
