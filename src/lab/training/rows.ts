import { type BlockPoint, type RowsRead, rowsAtPoint, type TargetPoint } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import type { RowPiece } from "../../native/index.js";
import {
  type Extraction,
  openExtraction,
  pointOfRows,
  readShard,
  type ShardRows,
} from "../extraction/open-extraction.js";

/** Maximum rows per evaluation. */
export const evaluatedRows = 16_384;
/** Share of held-out texts: as many as evaluations read, but between one in a hundred and one in ten. */
const leastShare = 0.01;
const mostShare = 0.1;

const [unused, trained, heldOut] = [0, 1, 2];

/** The side of a text by its index in the data; undefined texts are unused. */
export type SplitOf = (text: number) => "train" | "test" | undefined;

/** The rows of an extraction at one layer, each for training, for evaluation or for neither. */
export interface TrainingRows {
  extraction: Extraction;
  pieces: RowPiece[];
  /** The text and the token that a row is of. */
  at(piece: number, row: number): { text: number; token: number };
}

/**
 * Assigns each row of an extraction to training or evaluation. Whole texts are held out, and identical texts are on
 * the same side. Rows of BOS tokens are skipped.
 * @param rows which of the extraction's rows; from rows of every token, those of last tokens can be selected
 * @throws UserError
 */
export async function trainingRows(
  folder: string,
  settings: {
    layer: number;
    rows: RowsRead | undefined;
    /** The required point of the extraction; by default any. */
    point?: BlockPoint | undefined;
    /** The point that is predicted from them, by a transcoder. */
    target?: TargetPoint | undefined;
    /** Tokens of each text before this index are left out, which requires rows of every token. */
    first_position?: number | undefined;
    seed: number;
    splitOf?: SplitOf;
  },
): Promise<TrainingRows> {
  const extraction = await openExtraction(folder);
  const { form } = extraction;
  const point = pointOfRows(extraction);
  if (settings.point !== undefined && settings.point !== point) {
    throw new UserError(`${folder} contains ${point} of ${layersText(form.layers)}, not ${settings.point}.`);
  }
  if (settings.target !== undefined && settings.target !== form.target) {
    throw new UserError(
      `${folder} contains ${point} of ${layersText(form.layers)}, without ${settings.target}, which a transcoder predicts; ` +
        `extract both with --point ffn_in --target ${settings.target}.`,
    );
  }
  if (!form.layers.includes(settings.layer)) {
    throw new UserError(
      `${folder} contains ${rowsAtPoint(point)} of ${layersText(form.layers)}, not of block ${settings.layer}.`,
    );
  }
  if (settings.rows === "all" && form.rows !== "all") {
    throw new UserError(`${folder} contains one row per text (${form.rows}); rows all needs every token's.`);
  }
  const held = settings.rows === form.rows || (settings.rows === "last" && form.rows === "all");
  if (settings.rows !== undefined && !held) {
    throw new UserError(`${folder} contains rows ${form.rows}, not ${settings.rows}.`);
  }
  const { first_position: firstPosition = 0 } = settings;
  if (firstPosition > 0 && (form.rows !== "all" || settings.rows === "last")) {
    throw new UserError(
      `first_position leaves out tokens of each text, so it requires every token's rows (all), not ${settings.rows ?? form.rows}.`,
    );
  }
  const shards: ShardRows[] = [];
  for (let i = 0; i < extraction.shards.length; i++) shards.push(await readShard(extraction, i));
  const sides = sidesOf(shards, extraction.rows, settings);
  const every = form.rows === "all";
  const lastOnly = settings.rows === "last";
  const pieces = shards.map((shard, i): RowPiece => {
    const uses = new Uint8Array(shard.rows);
    for (let text = 0; text < shard.indices.length; text++) {
      const use = sides[i]?.[text] as number;
      const [start, end] = [shard.starts[text] as number, shard.starts[text + 1] as number];
      if (!every) uses[text] = use;
      else if (lastOnly) uses[end - 1] = use;
      else if (firstPosition > 0)
        uses.fill(use, Math.min(start + Math.max(firstPosition, extraction.skipped), end), end);
      else uses.fill(use, Math.min(start + extraction.skipped, end - 1), end);
    }
    return {
      ...{ path: shard.path, offset: shard.offsets.get(settings.layer) as number, type: form.dtype, uses },
      ...(settings.target && { targetOffset: shard.targets.get(settings.layer) as number }),
    };
  });
  return {
    extraction,
    pieces,
    at: (piece, row) => placeOf(shards[piece] as ShardRows, row, every),
  };
}

function layersText(layers: readonly number[]): string {
  return layers.length === 1 ? `block ${layers[0]}` : `blocks ${layers.join(", ")}`;
}

function placeOf({ starts, indices }: ShardRows, row: number, every: boolean) {
  if (!every) {
    const length = (starts[row + 1] as number) - (starts[row] as number);
    return { text: indices[row] as number, token: length - 1 };
  }
  let low = 0;
  let high = indices.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((starts[middle] as number) <= row) low = middle;
    else high = middle;
  }
  return { text: indices[low] as number, token: row - (starts[low] as number) };
}

/** The use of each text's rows, shard by shard. */
function sidesOf(
  shards: readonly ShardRows[],
  rows: number,
  { seed, splitOf }: { seed: number; splitOf?: SplitOf },
): Uint8Array[] {
  const share = Math.min(mostShare, Math.max(leastShare, evaluatedRows / rows));
  const hashes = shards.map(({ indices, starts, tokenIds }) =>
    Float64Array.from(indices, (_, text) =>
      hashOf(tokenIds, starts[text] as number, starts[text + 1] as number, seed),
    ),
  );
  // The text with the smallest hash is always held out, the one with the largest hash never.
  const reduce = (of: (...values: number[]) => number) =>
    hashes.reduce((found, list) => list.reduce((one, hash) => of(one, hash), found), of());
  const bound = Math.min(Math.max(share, reduce(Math.min)), reduce(Math.max) - 2 ** -32);
  return shards.map(({ indices }, i) =>
    Uint8Array.from(indices, (index, text) => {
      const said = splitOf?.(index);
      if (splitOf !== undefined) return said === "train" ? trained : said === "test" ? heldOut : unused;
      return (hashes[i]?.[text] as number) <= bound ? heldOut : trained;
    }),
  );
}

/** A hash of the tokens, from 0 to 1. (MurmurHash3's mixing, Appleby 2008.) */
function hashOf(tokens: Int32Array, start: number, end: number, seed: number): number {
  let hash = seed ^ 0x9e3779b9;
  for (let i = start; i < end; i++) {
    let one = Math.imul(tokens[i] as number, 0xcc9e2d51);
    one = Math.imul((one << 15) | (one >>> 17), 0x1b873593);
    hash ^= one;
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  hash ^= end - start;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
