import type { Expression, Kysely, OperationNodeSource, RawBuilder, SqlBool } from "kysely";
import type { Pace } from "./read-ahead.js";
import type { Reading } from "./reading.js";
import type { Database } from "./schema.js";

/** What differs between the databases; everything else is written once, in kysely. */
export interface Dialect {
  name: "sqlite" | "postgresql";
  /** Current time of the database in Unix milliseconds, read when the row at hand is read. */
  now: RawBuilder<number>;
  /** Entries of a window column, as rows with one column `value`. */
  entries(column: string): RawBuilder<unknown>;
  /** Makes a window column of the rows (with one column `value`) that a query gives. */
  collect(query: RawBuilder<unknown>): RawBuilder<string>;
  /** Rows of a query one after the other, however many they are. `db` is a transaction. */
  read<T>(db: Kysely<Database>, query: Streamable<T>): AsyncIterable<T>;
  createSearch(db: Kysely<Database>): Promise<void>;
  search: Search;
}

/** A select query, as far as reading its rows needs one. */
export interface Streamable<T> extends OperationNodeSource {
  stream(): AsyncIterable<T>;
}

/** The words of one study, by where they stand. */
export interface SearchEntry {
  title: string[];
  head: string[];
  body: string[];
}

/**
 * How well a study matches: all words in the title; in title, question or model name; anywhere. Tiers exclude one
 * another.
 */
export const tiers = ["title", "head", "body"] as const;
export type Tier = (typeof tiers)[number];

export interface Match {
  publishedAt: number;
  /** Place in `tiers`. */
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
  /** Fills an empty index, quicker than adding to it batch by batch. `db` is a transaction. */
  fill(db: Kysely<Database>, batches: AsyncIterable<readonly IndexedStudy[]>): Promise<void>;
  remove(db: Kysely<Database>, publishedAt: number): Promise<void>;
  /** Matches of every tier, in no order; null where there are more than `most`, which shows quickly. */
  few(db: Kysely<Database>, words: string[], most: number): Promise<Match[] | null>;
  /** Studies that have a word, or one that begins so, in a tier or a better one. */
  having(db: Kysely<Database>, word: string, beginning: boolean, tier: Tier): Promise<Reading>;
  /** All studies that can be found, or those that some conditions on `studies` hold for. */
  times(db: Kysely<Database>, conditions?: readonly Expression<SqlBool>[]): Promise<Reading>;
  /** Publication times of all studies in an order. */
  ordered(db: Kysely<Database>, by: "upvotes" | "comment_count"): Promise<Float64Array>;
  /** Up to `most` words that more than so many studies have, the commonest first; by estimate, or none. */
  common(db: Kysely<Database>, which: { moreThan: number; most: number }, pace: Pace): Promise<string[]>;
}
