import type { BlockPoint, RowsRead } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import type { RowPiece } from "../../native/index.js";
import { type Extraction, openExtraction, pointOfRows, readShard, type ShardRows } from "./extraction.js";

/** Rows that evaluations read at most. */
export const evaluatedRows = 16_384;
/** Of the texts, how many are held out: as many as evaluations read, but from one in a hundred to one in ten. */
const leastShare = 0.01;
const mostShare = 0.1;

const [unused, trained, heldOut] = [0, 1, 2];

/** Which side a text is on, by its place in the data; where nothing says, its content decides. */
export type SplitOf = (text: number) => "train" | "test" | undefined;

/** The rows of an extraction at one layer, each for training, for evaluation or for neither. */
export interface TrainingRows {
  extraction: Extraction;
  pieces: RowPiece[];
  /** The text and the token that a row is of. */
  at(piece: number, row: number): { text: number; token: number };
}

/**
 * Says what each row of an extraction is for. Whole texts are held out, and equal texts are on one side: what was trained
 * on is not held out. The rows of BOS tokens are left aside.
 * @param rows which of the extraction's; of every token's row the last one's of each text can be picked
 * @throws UserError
 */
export async function trainingRows(
  folder: string,
  settings: {
    layer: number;
    rows: RowsRead | undefined;
    /** Which the extraction has to be of; otherwise any. */
    point?: BlockPoint | undefined;
    seed: number;
    splitOf?: SplitOf;
  },
): Promise<TrainingRows> {
  const extraction = await openExtraction(folder);
  const { form } = extraction;
  const point = pointOfRows(extraction);
  if (settings.point !== undefined && settings.point !== point) {
    throw new UserError(`${folder} holds ${point} of ${layersText(form.layers)}, not ${settings.point}.`);
  }
  if (!form.layers.includes(settings.layer)) {
    throw new UserError(
      `${folder} holds the block outputs of ${layersText(form.layers)}, not of block ${settings.layer}.`,
    );
  }
  if (settings.rows === "all" && form.rows !== "all") {
    throw new UserError(`${folder} holds one row of each text (${form.rows}); rows all needs every token's.`);
  }
  const held = settings.rows === form.rows || (settings.rows === "last" && form.rows === "all");
  if (settings.rows !== undefined && !held) {
    throw new UserError(`${folder} holds rows ${form.rows}, not ${settings.rows}.`);
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
      else uses.fill(use, Math.min(start + extraction.skipped, end - 1), end);
    }
    return { path: shard.path, offset: shard.offsets.get(settings.layer) as number, type: form.dtype, uses };
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

/** What the rows of each text are for, shard by shard. */
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
  // The text of the smallest hash is held out in any case, and that of the greatest one never.
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

/** From 0 to 1, by the tokens alone. (MurmurHash3's mixing, Appleby 2008.) */
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
