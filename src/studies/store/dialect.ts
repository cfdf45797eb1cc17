import type { Expression, Kysely, OperationNodeSource, RawBuilder, SqlBool } from "kysely";
import type { Pace } from "./read-ahead.js";
import type { Reading } from "./reading.js";
import type { Database } from "./schema.js";

/** The differences between the databases; all other queries use kysely. */
export interface Dialect {
  name: "sqlite" | "postgresql";
  /** The database's clock in Unix milliseconds, evaluated per row. */
  now: RawBuilder<number>;
  /** Entries of a window column as rows with one column, `value`. */
  entries(column: string): RawBuilder<unknown>;
  /** Builds a window column from a query with one column, `value`. */
  collect(query: RawBuilder<unknown>): RawBuilder<string>;
  /** Streams the rows of a query. `db` is a transaction. */
  read<T>(db: Kysely<Database>, query: Streamable<T>): AsyncIterable<T>;
  createSearch(db: Kysely<Database>): Promise<void>;
  search: Search;
}

/** A select query that can be streamed. */
export interface Streamable<T> extends OperationNodeSource {
  stream(): AsyncIterable<T>;
}

/** The words of one study, by location. */
export interface SearchEntry {
  title: string[];
  head: string[];
  body: string[];
}

/**
 * Match quality: all words in the title; in title, question or model name; anywhere. Tiers are mutually exclusive.
 */
export const tiers = ["title", "head", "body"] as const;
export type Tier = (typeof tiers)[number];

export interface Match {
  publishedAt: number;
  /** Index in `tiers`. */
  tier: number;
}

/** A study in the full-text index. */
export interface IndexedStudy {
  publishedAt: number;
  entry: SearchEntry;
}

/** Full-text index over current versions, by publication time. */
export interface Search {
  add(db: Kysely<Database>, studies: readonly IndexedStudy[]): Promise<void>;
  /** Fills an empty index, faster than repeated `add`. `db` is a transaction. */
  fill(db: Kysely<Database>, batches: AsyncIterable<readonly IndexedStudy[]>): Promise<void>;
  remove(db: Kysely<Database>, publishedAt: number): Promise<void>;
  /** Matches of every tier, unordered; null if there are more than `most`, which is detected early. */
  few(db: Kysely<Database>, words: string[], most: number): Promise<Match[] | null>;
  /** Studies with a word (or a word with that prefix) in a tier or a better one. */
  having(db: Kysely<Database>, word: string, beginning: boolean, tier: Tier): Promise<Reading>;
  /** All listed studies, or those that meet conditions on `studies`. */
  times(db: Kysely<Database>, conditions?: readonly Expression<SqlBool>[]): Promise<Reading>;
  /** Publication times of all studies, in the given order. */
  ordered(db: Kysely<Database>, by: "upvotes" | "comment_count"): Promise<Float64Array>;
  /** Up to `most` words that occur in more than `moreThan` studies, most common first; estimated, possibly none. */
  common(db: Kysely<Database>, which: { moreThan: number; most: number }, pace: Pace): Promise<string[]>;
}
