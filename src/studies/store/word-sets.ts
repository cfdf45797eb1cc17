import type { Kysely } from "kysely";
import { type Search, type Tier, tiers } from "./dialect.js";
import { Kept } from "./kept.js";
import type { Database } from "./schema.js";

/** Bytes of sets that are kept: at 100,000 studies, where one has 12,500, some 3,800 sets. */
const mostBytes = 48_000_000;

export interface RankedPage {
  /** Publication times: by tier, then newest first. */
  keys: number[];
  /** How many studies match. */
  total: number;
}

/**
 * Searches for words that many studies have. Which studies have a word is read from the full-text index once and kept
 * as a set of bits until the next publication; several words are looked for together by intersecting their sets, where
 * the database would read their long lists again for every pair.
 */
export class WordSets {
  readonly #db: Kysely<Database>;
  readonly #search: Search;
  readonly #times = new Kept<Float64Array>(1);
  #sets: Kept<Uint32Array> | undefined;

  constructor(db: Kysely<Database>, search: Search) {
    this.#db = db;
    this.#search = search;
  }

  /** Whether all these words were found to be common since the publication. */
  has(publication: number, words: string[]): boolean {
    return words.every((word, place) => this.#sets?.has(publication, keyOf("body", words, word, place)));
  }

  /**
   * A page of matches and how many there are.
   * @param publication number of the newest publication, read before this is asked
   * @param words of which the last may be a beginning
   */
  async find(
    publication: number,
    words: string[],
    { limit, offset }: { limit: number; offset: number },
  ): Promise<RankedPage> {
    const times = await this.#times.get(publication, "", () => this.#search.times(this.#db));
    const within = (tier: Tier) => this.#within(publication, words, tier, times);
    const keys: number[] = [];
    let skip = offset;
    let better: Uint32Array | undefined;
    for (const tier of tiers) {
      const bits = await within(tier);
      skip = collect(times, bits, better, { skip, limit }, keys);
      if (keys.length === limit) break;
      better = bits;
    }
    return { keys, total: sizeOf(await within("body")) };
  }

  /** Studies that have every word in a tier or a better one. */
  async #within(publication: number, words: string[], tier: Tier, times: Float64Array): Promise<Uint32Array> {
    this.#sets ??= new Kept(Math.max(100, Math.floor(mostBytes / (times.length / 8 + 1))));
    let all: Uint32Array | undefined;
    for (const [place, word] of words.entries()) {
      const one = await this.#sets.get(publication, keyOf(tier, words, word, place), async () =>
        bitsOf(await this.#search.having(this.#db, word, isBeginning(words, place), tier), times),
      );
      all = all === undefined ? one : all.map((bits, at) => bits & (one[at] as number));
    }
    return all as Uint32Array;
  }
}

function isBeginning(words: string[], place: number): boolean {
  return place === words.length - 1;
}

function keyOf(tier: Tier, words: string[], word: string, place: number): string {
  return `${tier} ${word}${isBeginning(words, place) ? "*" : ""}`;
}

/** A set of times as bits over all times, both ascending. */
function bitsOf(members: Float64Array, times: Float64Array): Uint32Array {
  const bits = new Uint32Array(Math.ceil(times.length / 32));
  let at = 0;
  for (const member of members) {
    while (at < times.length && (times[at] as number) < member) at += 1;
    // What was published since the times were read has no place among them.
    if (times[at] === member) bits[at >>> 5] = (bits[at >>> 5] as number) | (1 << (at & 31));
  }
  return bits;
}

function sizeOf(bits: Uint32Array): number {
  let size = 0;
  for (const word of bits) size += ones(word);
  return size;
}

/** How many bits of 32 are set: added up in pairs, in fours, in bytes. */
function ones(word: number): number {
  let sum = word - ((word >>> 1) & 0x55555555);
  sum = (sum & 0x33333333) + ((sum >>> 2) & 0x33333333);
  return (((sum + (sum >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}

/**
 * Adds the newest times of a set without those of a better one, until there are `limit`.
 * @returns how many are left to be passed over
 */
function collect(
  times: Float64Array,
  bits: Uint32Array,
  better: Uint32Array | undefined,
  { skip, limit }: { skip: number; limit: number },
  keys: number[],
): number {
  let left = skip;
  for (let at = bits.length - 1; at >= 0; at -= 1) {
    const word = (bits[at] as number) & ~(better?.[at] ?? 0);
    const here = ones(word);
    if (here <= left) {
      left -= here;
      continue;
    }
    for (let bit = 31; bit >= 0; bit -= 1) {
      if (((word >>> bit) & 1) === 0) continue;
      if (left > 0) {
        left -= 1;
        continue;
      }
      keys.push(times[at * 32 + bit] as number);
      if (keys.length === limit) return 0;
    }
  }
  return left;
}

/** Numbers that stand in a text with commas between; of none there is no text. */
export function numbersOf(text: string | null): Float64Array {
  if (text === null || text === "") return new Float64Array(0);
  let count = 1;
  for (let at = text.indexOf(","); at !== -1; at = text.indexOf(",", at + 1)) count += 1;
  const numbers = new Float64Array(count);
  let place = 0;
  let value = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 44) {
      numbers[place] = value;
      place += 1;
      value = 0;
    } else {
      value = value * 10 + (code - 48);
    }
  }
  numbers[place] = value;
  return numbers;
}
