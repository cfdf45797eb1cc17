import { setImmediate } from "node:timers/promises";
import type { Kysely } from "kysely";
import { type Search, type SearchEntry, type Tier, tiers } from "./dialect.js";
import { FacetColumns, type FacetCounts } from "./facets.js";
import { type Filters, filterConditions, filterKey } from "./filters.js";
import { type PlaceSet, Places } from "./places.js";
import { ReadAhead } from "./read-ahead.js";
import type { Database } from "./schema.js";
import { indexed, listedPackages } from "./search-entry.js";

/** Up to this many matches are ranked in memory after one query; words in more studies are common. */
export const fewMatches = 500;

/** Memory for cached sets: at 100,000 studies (13,300 bytes per set) about 3,600 sets. */
const mostBytes = 48_000_000;

/** Up to this many new studies are added to the cached sets; with more, the sets are discarded. */
const mostCome = 20;

/** Number of most common words whose sets are read in advance. */
const mostAhead = 100;

export interface RankedPage {
  /** Publication times: by tier, then newest first. */
  keys: number[];
  /** Number of matching studies. */
  total: number;
}

/** The definition of a set: studies with a word (or prefix) in a tier or a better one, or studies that match filters. */
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

/** Filters and order of the matches. */
export interface Narrowed {
  filters: Filters;
  /** Best match first, newest first, or in the order of these publication times. */
  order: "best" | "newest" | Float64Array;
}

const everything: Narrowed = { filters: {}, order: "best" };

/**
 * Searches for common words. The studies with a word are read from the full-text index once and cached as a bit set;
 * several words are found by intersecting their sets, where the database would read long lists for every pair.
 *
 * Sets survive publications and removals. A publication time identifies one version of one study, so its words never
 * change: unlisted studies are masked out, and new ones are added to the sets of their words.
 */
export class WordSets {
  readonly #ahead: ReadAhead;
  #places: Places | undefined;
  /** Columns for `#places`. */
  #columns: FacetColumns | undefined;
  #advancing: Promise<void> | undefined;
  /** By key, least recently used first. All are valid for `#places`. */
  readonly #sets = new Map<string, { wanted: Wanted; set: PlaceSet }>();
  readonly #reading = new Map<string, Promise<PlaceSet>>();

  constructor(
    private readonly db: Kysely<Database>,
    private readonly search: Search,
  ) {
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

  /** Reads the sets of the most common words in the background, now and whenever sets were discarded. */
  readAhead(): Promise<void> {
    return this.#ahead.start();
  }

  /** Stops background work. Idempotent. */
  close(): Promise<void> {
    return this.#ahead.close();
  }

  /** Whether all words are known to be common. */
  has(words: string[]): boolean {
    return wantedOf(words, "body").every((wanted) => this.#sets.has(keyOf(wanted)));
  }

  /**
   * A page of matches and their total.
   * @param publication the current publication number; older states are not used
   * @param words the last one may be a prefix
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
      // If places were reassigned meanwhile, the first sets are invalid.
      if (places === this.#places) return found;
    }
  }

  /**
   * For each filter, how many matches each value would leave.
   * @param few times of the matches if already known; null to search for the words
   * @param author account id of the filter's handle
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
      await columns.fill(this.db);
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
    const filterSets = key === "" ? [] : [await this.#set({ filters, key: `filter ${key}` })];
    const within = async (tier: Tier) => [
      ...(await Promise.all(wantedOf(words, tier).map((wanted) => this.#set(wanted)))),
      ...filterSets,
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
    const cached = this.#sets.get(key);
    if (cached !== undefined) {
      this.#sets.delete(key);
      this.#sets.set(key, cached);
      return cached.set;
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
          ? await this.search.times(this.db, filterConditions(wanted.filters))
          : await this.search.having(this.db, wanted.word, wanted.beginning, wanted.tier);
      const places = await this.#advance(reading.publication);
      const set = places.setOf(reading.times);
      if (places !== this.#places) continue;
      if (reading.publication === places.publication) {
        this.#sets.set(keyOf(wanted), { wanted, set });
        this.#forget(places);
        return set;
      }
      // Publications are faster than reading sets: use the set now, but do not cache it.
      if (tries >= 3) return set;
    }
  }

  #forget(places: Places): void {
    const most = Math.max(100, Math.floor(mostBytes / places.setBytes));
    if (this.#sets.size > most) this.#sets.delete(this.#sets.keys().next().value as string);
  }

  /** The places at the given publication or a later one. */
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
    const now = await this.search.times(this.db);
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
      // Filter results can change for existing studies, such as being reproduced; read those sets again.
      if ("filters" in wanted) {
        this.#sets.delete(key);
        continue;
      }
      for (const { publishedAt, has } of entries) if (has(wanted)) places.addTo(set, publishedAt);
    }
  }

  /** Search entries of new studies; null if there are too many, or one is already unlisted again. */
  async #entries(came: number[]) {
    if (came.length === 0) return [];
    if (came.length > mostCome) return null;
    const rows = await listedPackages(this.db).where("studies.published_at", "in", came).execute();
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

/** Whether a study has a word, or a word with that prefix. */
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
