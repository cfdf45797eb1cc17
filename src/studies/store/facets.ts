import { setImmediate } from "node:timers/promises";
import type { Kysely } from "kysely";
import { type Operation, operations } from "../../contracts/index.js";
import { licenses } from "../../contracts/studies/index.js";
import type { Filters } from "./filters.js";
import type { PlaceSet, Places } from "./places.js";
import type { Database } from "./schema.js";

/** Studies read per query, from a covering index: a millisecond or two. */
const chunk = 1000;

/** Number of studies with a value. */
export interface FacetCount {
  value: string;
  count: number;
}

/** For each filter, how many matches each value would leave; most common first, authors by account id. */
export type FacetCounts = Record<keyof Filters, FacetCount[]>;

/** Assigns a number to each distinct text. */
class Numbers {
  readonly texts: string[] = [];
  readonly #numbers = new Map<string, number>();

  of(text: string): number {
    let number = this.#numbers.get(text);
    if (number === undefined) {
      number = this.texts.push(text) - 1;
      this.#numbers.set(text, number);
    }
    return number;
  }

  find(text: string): number {
    return this.#numbers.get(text) ?? -1;
  }
}

/**
 * Filter values of all studies, in columns indexed by place: 11 bytes per study. The version that a publication time names
 * never changes, so known values stay valid while studies come and go.
 */
export class FacetColumns {
  /** Index among the licenses, counted from 1; 0 if not read yet. */
  readonly #license: Uint8Array;
  /** One bit per operation. */
  readonly #methods: Uint16Array;
  readonly #model: Int32Array;
  readonly #author: Int32Array;
  readonly #models = new Numbers();
  readonly #authors = new Numbers();
  #filling: Promise<void> | undefined;

  constructor(private readonly places: Places) {
    this.#license = new Uint8Array(places.capacity);
    this.#methods = new Uint16Array(places.capacity);
    this.#model = new Int32Array(places.capacity);
    this.#author = new Int32Array(places.capacity);
  }

  /** Reads missing values of listed studies, in chunks. */
  async fill(db: Kysely<Database>): Promise<void> {
    while (this.#filling !== undefined) await this.#filling;
    const missing: number[] = [];
    this.places.each([], (place) => {
      if (this.#license[place] === 0) missing.push(place);
    });
    if (missing.length === 0) return;
    this.#filling = this.#read(db, missing).finally(() => {
      this.#filling = undefined;
    });
    await this.#filling;
  }

  async #read(db: Kysely<Database>, missing: readonly number[]): Promise<void> {
    for (let at = 0; at < missing.length; ) {
      const first = missing[at] as number;
      let last = first;
      while (at < missing.length && (missing[at] as number) < first + chunk) {
        last = missing[at] as number;
        at += 1;
      }
      const rows = await db
        .selectFrom("studies")
        .select(["published_at", "license", "methods", "model_name", "account_id"])
        .where("listed", "=", 1)
        .where("published_at", ">=", this.places.timeAt(first))
        .where("published_at", "<=", this.places.timeAt(last))
        .execute();
      for (const row of rows) {
        const place = this.places.placeAt(row.published_at);
        if (place === -1) continue;
        this.#license[place] = (licenses as readonly string[]).indexOf(row.license) + 1;
        this.#methods[place] = bitsOf(row.methods);
        this.#model[place] = this.#models.of(row.model_name);
        this.#author[place] = this.#authors.of(row.account_id);
      }
      await setImmediate();
    }
  }

  /**
   * For each filter, counts the matches that each of its values would leave while all other filters apply, so that each
   * alternative to the current choice has a count.
   * @param author account id of the filter's handle; null if no one has it
   * @param reproduced studies that have been reproduced
   */
  count(
    matches: readonly PlaceSet[],
    filters: Filters,
    author: string | null,
    reproduced: PlaceSet,
  ): FacetCounts {
    const wanted = {
      license: (licenses as readonly string[]).indexOf(filters.license ?? "") + 1,
      methods: bitsOf(filters.method ?? ""),
      model: this.#models.find(filters.model ?? ""),
      author: this.#authors.find(author ?? ""),
      year: filters.year ?? 0,
    };
    const given = {
      model: filters.model !== undefined,
      author: filters.author !== undefined,
      reproduced: filters.reproduced === true,
    };
    const [licenseAt, methodsAt, modelAt, authorAt] = [
      this.#license,
      this.#methods,
      this.#model,
      this.#author,
    ];
    const counts = {
      license: new Uint32Array(licenses.length + 1),
      methods: new Map<number, number>(),
      model: new Uint32Array(this.#models.texts.length),
      author: new Uint32Array(this.#authors.texts.length),
      year: new Map<number, number>(),
      reproduced: 0,
    };
    const years = new Years(counts.year);
    // Runs a hundred thousand times per page, so it must not allocate.
    this.places.each(matches, (place) => {
      const license = licenseAt[place] as number;
      // It was unlisted while the columns were read.
      if (license === 0) return;
      const methods = methodsAt[place] as number;
      const model = modelAt[place] as number;
      const owner = authorAt[place] as number;
      const year = years.of(this.places.timeAt(place));
      const repeated = (((reproduced[place >>> 5] as number) >>> (place & 31)) & 1) === 1;
      // One bit per failed filter: with none it counts for all filters, with one only for that filter.
      let failed = 0;
      if (wanted.license !== 0 && license !== wanted.license) failed |= failing.license;
      if (wanted.methods !== 0 && (methods & wanted.methods) === 0) failed |= failing.method;
      if (given.model && model !== wanted.model) failed |= failing.model;
      if (given.author && owner !== wanted.author) failed |= failing.author;
      if (wanted.year !== 0 && year !== wanted.year) failed |= failing.year;
      if (given.reproduced && !repeated) failed |= failing.reproduced;
      if ((failed & ~failing.license) === 0) increment(counts.license, license);
      if ((failed & ~failing.model) === 0) increment(counts.model, model);
      if ((failed & ~failing.author) === 0) increment(counts.author, owner);
      if ((failed & ~failing.year) === 0) years.count += 1;
      if (methods !== 0 && (failed & ~failing.method) === 0)
        counts.methods.set(methods, (counts.methods.get(methods) ?? 0) + 1);
      if (repeated && (failed & ~failing.reproduced) === 0) counts.reproduced += 1;
    });
    years.end();
    const method = new Uint32Array(operations.length);
    for (const [bits, count] of counts.methods) {
      for (let at = 0; at < operations.length; at += 1)
        if (((bits >>> at) & 1) === 1) method[at] = (method[at] as number) + count;
    }
    return {
      license: topValues(licenses, counts.license.subarray(1)),
      method: topValues(operations, method),
      model: topValues(this.#models.texts, counts.model),
      author: topValues(this.#authors.texts, counts.author),
      year: [...counts.year]
        .sort(([a], [b]) => b - a)
        .map(([year, count]) => ({ value: String(year), count })),
      reproduced: counts.reproduced === 0 ? [] : [{ value: "yes", count: counts.reproduced }],
    };
  }
}

const failing = { license: 1, method: 2, model: 4, author: 8, year: 16, reproduced: 32 } as const;

function increment(counts: Uint32Array, at: number): void {
  counts[at] = (counts[at] as number) + 1;
}

/** Most values listed per filter. */
const mostValues = 12;

function topValues(values: readonly string[], counts: Uint32Array): FacetCount[] {
  const found: FacetCount[] = [];
  for (const [at, count] of counts.entries())
    if (count > 0) found.push({ value: values[at] as string, count });
  return found.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1)).slice(0, mostValues);
}

/** @param methods names of operations, separated by spaces */
function bitsOf(methods: string): number {
  let bits = 0;
  for (const name of methods.split(" ")) {
    const at = operations.indexOf(name as Operation);
    if (at !== -1) bits |= 1 << at;
  }
  return bits;
}

/** Counts by UTC year, for times in ascending order. */
class Years {
  /** Count of the current year. */
  count = 0;
  #year = 0;
  #from = 0;
  #to = 0;

  constructor(private readonly counts: Map<number, number>) {}

  of(time: number): number {
    if (time < this.#from || time >= this.#to) {
      this.end();
      this.#year = new Date(time).getUTCFullYear();
      this.#from = Date.UTC(this.#year, 0);
      this.#to = Date.UTC(this.#year + 1, 0);
    }
    return this.#year;
  }

  /** Stores the current year's count. */
  end(): void {
    if (this.count > 0) this.counts.set(this.#year, (this.counts.get(this.#year) ?? 0) + this.count);
    this.count = 0;
  }
}
