import { setImmediate } from "node:timers/promises";
import type { Kysely } from "kysely";
import { type Operation, operations } from "../../contracts/index.js";
import { licenses } from "../../contracts/studies/index.js";
import type { Filters } from "./filters.js";
import type { PlaceSet, Places } from "./places.js";
import type { Database } from "./schema.js";

/** Places whose studies are read at once, from an index that holds all that is asked: a millisecond or two. */
const chunk = 1000;

/** How many studies have a value. */
export interface FacetCount {
  value: string;
  count: number;
}

/** How many of the matches each value of a filter would leave; the commonest first, authors by account id. */
export type FacetCounts = Record<keyof Filters, FacetCount[]>;

/** Distinct texts, a number each. */
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
 * What studies can be narrowed down by, a number for each study at its place: 11 bytes of it. What a publication time
 * names never changes, so what is known stays true while studies come and go.
 */
export class FacetColumns {
  readonly #places: Places;
  /** Place among the licences from 1 on; 0 where nothing is known yet. */
  readonly #license: Uint8Array;
  /** A bit for each operation. */
  readonly #methods: Uint16Array;
  readonly #model: Int32Array;
  readonly #author: Int32Array;
  readonly #models = new Numbers();
  readonly #authors = new Numbers();
  #filling: Promise<void> | undefined;

  constructor(places: Places) {
    this.#places = places;
    this.#license = new Uint8Array(places.capacity);
    this.#methods = new Uint16Array(places.capacity);
    this.#model = new Int32Array(places.capacity);
    this.#author = new Int32Array(places.capacity);
  }

  /** Reads what is not known yet of the studies that are listed, some at a time. */
  async fill(db: Kysely<Database>): Promise<void> {
    while (this.#filling !== undefined) await this.#filling;
    const missing: number[] = [];
    this.#places.each([], (place) => {
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
        .where("published_at", ">=", this.#places.timeAt(first))
        .where("published_at", "<=", this.#places.timeAt(last))
        .execute();
      for (const row of rows) {
        const place = this.#places.placeAt(row.published_at);
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
   * Counts, for each filter, what its values would leave of the matches: all the other filters hold, so that a choice
   * shows what another one would give in its place.
   * @param author account id that the filter's handle names; null where nobody has it
   * @param reproduced studies that others, or their authors, say that they repeat
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
    // A hundred thousand times for one page: nothing is made in here.
    this.#places.each(matches, (place) => {
      const license = licenseAt[place] as number;
      // It went while the columns were read.
      if (license === 0) return;
      const methods = methodsAt[place] as number;
      const model = modelAt[place] as number;
      const owner = authorAt[place] as number;
      const year = years.of(this.#places.timeAt(place));
      const repeated = (((reproduced[place >>> 5] as number) >>> (place & 31)) & 1) === 1;
      // What a place fails, a bit each: with none it counts for all, with one for that filter's values.
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
      license: told(licenses, counts.license.subarray(1)),
      method: told(operations, method),
      model: told(this.#models.texts, counts.model),
      author: told(this.#authors.texts, counts.author),
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

/** Values that are listed of each filter. */
const mostTold = 12;

function told(values: readonly string[], counts: Uint32Array): FacetCount[] {
  const found: FacetCount[] = [];
  for (const [at, count] of counts.entries())
    if (count > 0) found.push({ value: values[at] as string, count });
  return found.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1)).slice(0, mostTold);
}

/** @param methods names of operations with spaces between */
function bitsOf(methods: string): number {
  let bits = 0;
  for (const name of methods.split(" ")) {
    const at = operations.indexOf(name as Operation);
    if (at !== -1) bits |= 1 << at;
  }
  return bits;
}

/** Years in UTC of times that come in order, and how many of each are counted. */
class Years {
  /** Of the year at hand. */
  count = 0;
  readonly #counts: Map<number, number>;
  #year = 0;
  #from = 0;
  #to = 0;

  constructor(counts: Map<number, number>) {
    this.#counts = counts;
  }

  of(time: number): number {
    if (time < this.#from || time >= this.#to) {
      this.end();
      this.#year = new Date(time).getUTCFullYear();
      this.#from = Date.UTC(this.#year, 0);
      this.#to = Date.UTC(this.#year + 1, 0);
    }
    return this.#year;
  }

  /** Writes down what was counted so far. */
  end(): void {
    if (this.count > 0) this.#counts.set(this.#year, (this.#counts.get(this.#year) ?? 0) + this.count);
    this.count = 0;
  }
}
