import { setImmediate } from "node:timers/promises";
import type { Kysely } from "kysely";
import { type Search, type SearchEntry, type Tier, tiers } from "./dialect.js";
import { FacetColumns, type FacetCounts } from "./facets.js";
import { type Filters, filterConditions, filterKey } from "./filters.js";
import { type PlaceSet, Places } from "./places.js";
import { ReadAhead } from "./read-ahead.js";
import type { Database } from "./schema.js";
import { indexed, listedPackages } from "./search-entry.js";

/** Up to so many matches are ranked in memory, after one query; words that more studies have are common. */
export const fewMatches = 500;

/** Bytes of sets that are kept: at 100,000 studies, where one has 13,300, some 3,600 sets. */
const mostBytes = 48_000_000;

/** Studies that come between two searches and whose words are read for the sets that are kept. */
const mostCome = 20;

/** Commonest words whose sets are read before anybody asks for them. */
const mostAhead = 100;

export interface RankedPage {
  /** Publication times: by tier, then newest first. */
  keys: number[];
  /** How many studies match. */
  total: number;
}

/** What a set is of: studies that have a word, or one that begins so, in a tier or a better one; or that filters let through. */
type Wanted = WantedWord | WantedFilter;

interface WantedWord {
  word: string;
  beginning: boolean;
  tier: Tier;
}

interface WantedFilter {
  filters: Filters;
  key: string;
}

/** Which of the matches are wanted, and in which order. */
export interface Narrowed {
  filters: Filters;
  /** Best match first, newest first, or in the order of these publication times. */
  order: "best" | "newest" | Float64Array;
}

const everything: Narrowed = { filters: {}, order: "best" };

/**
 * Searches for words that many studies have. Which studies have a word is read from the full-text index once and kept
 * as a set of bits; several words are looked for together by intersecting their sets, where the database would read
 * their long lists again for every pair.
 *
 * Sets stay through publications and takings down. A publication time names one version of one study, so its words
 * never change: what goes is masked out, and what comes is added to the sets of its words.
 */
export class WordSets {
  readonly #db: Kysely<Database>;
  readonly #search: Search;
  readonly #ahead: ReadAhead;
  #places: Places | undefined;
  /** Of those places. */
  #columns: FacetColumns | undefined;
  #advancing: Promise<void> | undefined;
  /** By key, the longest unused first. All are true at the publication of `#places`. */
  readonly #sets = new Map<string, { wanted: Wanted; set: PlaceSet }>();
  readonly #reading = new Map<string, Promise<PlaceSet>>();

  constructor(db: Kysely<Database>, search: Search) {
    this.#db = db;
    this.#search = search;
    this.#ahead = new ReadAhead(async (pace) => {
      const words = await search.common(db, { moreThan: fewMatches, most: mostAhead }, pace);
      for (const word of words) {
        for (const beginning of [true, false]) {
          for (const tier of tiers) await pace(() => this.#set({ word, beginning, tier }));
        }
      }
      await this.#columns?.fill(db);
    });
  }

  /** Reads the sets of the commonest words, in the background, now and whenever sets had to be made anew. */
  readAhead(): Promise<void> {
    return this.#ahead.start();
  }

  /** Ends what goes on in the background. Idempotent. */
  close(): Promise<void> {
    return this.#ahead.close();
  }

  /** Whether all these words are known to be common. */
  has(words: string[]): boolean {
    return wantedOf(words, "body").every((wanted) => this.#sets.has(keyOf(wanted)));
  }

  /**
   * A page of matches and how many there are.
   * @param publication number of the newest publication, read before this is asked: no older state is told of
   * @param words of which the last may be a beginning
   */
  async find(
    publication: number,
    words: string[],
    page: { limit: number; offset: number },
    narrowed: Narrowed = everything,
  ): Promise<RankedPage> {
    for (;;) {
      const places = await this.#advance(publication);
      const found = await this.#findAmong(places, words, page, narrowed);
      // Places that were given anew meanwhile are not those that the first sets were of.
      if (places === this.#places) return found;
    }
  }

  /**
   * How many of the matches each value of each filter would leave.
   * @param few times of the matches where they are known already; null where the words are to be looked for
   * @param author account id that the filter's handle names
   */
  async facets(
    publication: number,
    words: string[],
    few: readonly number[] | null,
    { filters, author }: { filters: Filters; author: string | null },
  ): Promise<FacetCounts> {
    for (;;) {
      const places = await this.#advance(publication);
      const columns = this.#columns as FacetColumns;
      await columns.fill(this.#db);
      const matches =
        few === null
          ? await Promise.all(wantedOf(words, "body").map((wanted) => this.#set(wanted)))
          : [places.setOf(Float64Array.from(few).sort())];
      const reproduced: Filters = { reproduced: true };
      const repeated = await this.#set({ filters: reproduced, key: `filter ${filterKey(reproduced)}` });
      if (places === this.#places) return columns.count(matches, filters, author, repeated);
    }
  }

  async #findAmong(
    places: Places,
    words: string[],
    { limit, offset }: { limit: number; offset: number },
    { filters, order }: Narrowed,
  ): Promise<RankedPage> {
    const key = filterKey(filters);
    const kept = key === "" ? [] : [await this.#set({ filters, key: `filter ${key}` })];
    const within = async (tier: Tier) => [
      ...(await Promise.all(wantedOf(words, tier).map((wanted) => this.#set(wanted)))),
      ...kept,
    ];
    if (order === "newest" || order instanceof Float64Array) {
      const sets = await within("body");
      const total = places.count(sets);
      if (order !== "newest") {
        return { keys: places.collectInOrder(order, sets, { skip: offset, limit }), total };
      }
      const newest: number[] = [];
      places.collect(sets, null, { skip: offset, limit }, newest);
      return { keys: newest, total };
    }
    const keys: number[] = [];
    let skip = offset;
    let better: PlaceSet[] | null = null;
    for (const tier of tiers) {
      const sets: PlaceSet[] = await within(tier);
      skip = places.collect(sets, better, { skip, limit }, keys);
      if (keys.length === limit) break;
      better = sets;
    }
    return { keys, total: places.count(await within("body")) };
  }

  async #set(wanted: Wanted): Promise<PlaceSet> {
    const key = keyOf(wanted);
    const kept = this.#sets.get(key);
    if (kept !== undefined) {
      this.#sets.delete(key);
      this.#sets.set(key, kept);
      return kept.set;
    }
    let reading = this.#reading.get(key);
    if (reading === undefined) {
      reading = this.#read(wanted).finally(() => this.#reading.delete(key));
      this.#reading.set(key, reading);
    }
    return reading;
  }

  async #read(wanted: Wanted): Promise<PlaceSet> {
    for (let tries = 1; ; tries += 1) {
      const reading =
        "filters" in wanted
          ? await this.#search.times(this.#db, filterConditions(wanted.filters))
          : await this.#search.having(this.#db, wanted.word, wanted.beginning, wanted.tier);
      const places = await this.#advance(reading.publication);
      const set = places.setOf(reading.times);
      if (places !== this.#places) continue;
      if (reading.publication === places.publication) {
        this.#sets.set(keyOf(wanted), { wanted, set });
        this.#forget(places);
        return set;
      }
      // Publications come faster than sets are read: good for those who ask now, and not kept.
      if (tries >= 3) return set;
    }
  }

  #forget(places: Places): void {
    const most = Math.max(100, Math.floor(mostBytes / places.setBytes));
    if (this.#sets.size > most) this.#sets.delete(this.#sets.keys().next().value as string);
  }

  /** The places, brought forward to a publication or a later one. */
  async #advance(publication: number): Promise<Places> {
    while (this.#places === undefined || this.#places.publication < publication) {
      this.#advancing ??= this.#step().finally(() => {
        this.#advancing = undefined;
      });
      await this.#advancing;
    }
    return this.#places;
  }

  async #step(): Promise<void> {
    const now = await this.#search.times(this.#db);
    const places = this.#places;
    const came = places?.come(now) ?? null;
    const entries = came === null ? null : await this.#entries(came);
    if (places === undefined || entries === null) {
      this.#places = new Places(now);
      this.#columns = new FacetColumns(this.#places);
      this.#sets.clear();
      this.#ahead.again();
      return;
    }
    places.advance(now);
    for (const [key, { wanted, set }] of this.#sets) {
      // Whether a study was reproduced changes while it stays where it is; such sets are read again.
      if ("filters" in wanted) {
        this.#sets.delete(key);
        continue;
      }
      for (const { publishedAt, has } of entries) if (has(wanted)) places.addTo(set, publishedAt);
    }
  }

  /** What studies that have come have; null where they are many, or one has gone again. */
  async #entries(came: number[]) {
    if (came.length === 0) return [];
    if (came.length > mostCome) return null;
    const rows = await listedPackages(this.#db).where("studies.published_at", "in", came).execute();
    if (rows.length < came.length) return null;
    const entries: { publishedAt: number; has: (wanted: WantedWord) => boolean }[] = [];
    for (const row of rows) {
      const { publishedAt, entry } = indexed(row);
      entries.push({ publishedAt, has: lookup(entry) });
      await setImmediate();
    }
    return entries;
  }
}

/** Whether a study has a word, or one that begins so. */
function lookup(entry: SearchEntry): (wanted: WantedWord) => boolean {
  const sorted = {
    title: [...entry.title].sort(),
    head: [...entry.title, ...entry.head].sort(),
    body: [...entry.title, ...entry.head, ...entry.body].sort(),
  };
  return ({ word, beginning, tier }) => {
    const words = sorted[tier];
    let low = 0;
    for (let high = words.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if ((words[middle] as string) < word) low = middle + 1;
      else high = middle;
    }
    return beginning ? (words[low]?.startsWith(word) ?? false) : words[low] === word;
  };
}

function wantedOf(words: string[], tier: Tier): WantedWord[] {
  return words.map((word, place) => ({ word, beginning: place === words.length - 1, tier }));
}

function keyOf(wanted: Wanted): string {
  if ("filters" in wanted) return wanted.key;
  const { word, beginning, tier } = wanted;
  return `${tier} ${word}${beginning ? "*" : ""}`;
}
