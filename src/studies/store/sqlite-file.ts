import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from "@photostructure/sqlite";
import type { SqliteDatabase, SqliteStatement } from "kysely";

/**
 * An open SQLite file for kysely, with the interface of `node:sqlite`. Bytes are read as Buffers and rows as plain
 * objects, as with PostgreSQL. Statements are closed after each call, so that `close()` closes the file immediately.
 */
export class SqliteFile implements SqliteDatabase {
  readonly #db: DatabaseSyncInstance;

  /** @param waitMs how long to wait for a writer in another process */
  constructor(path: string, waitMs: number) {
    this.#db = new DatabaseSync(path, { timeout: waitMs });
  }

  /** Runs statements without parameters and results. */
  exec(sql: string): void {
    this.#db.exec(sql);
  }

  prepare(sql: string): SqliteStatement {
    const statement = this.#db.prepare(sql);
    const names = statement.columns().map(({ name }) => name);
    if (names.length > 0) statement.setReturnArrays(true);
    // Every statement reports the last row id, which exceeds 2^53 in SQLite's search index; the driver would reject it as a
    // plain number.
    else statement.setReadBigInts(true);
    const once = <T>(work: () => T): T => {
      try {
        return work();
      } finally {
        statement.close();
      }
    };
    return {
      reader: names.length > 0,
      all: (parameters) =>
        once(() => statement.all(...checked(parameters)).map((values) => toRow(names, values))),
      run: (parameters) => once(() => statement.run(...checked(parameters))),
      iterate: (parameters) => rows(statement, names, parameters),
    };
  }

  /** Whether a transaction is open. SQLite may end one itself, for example on a full disk. */
  get isTransaction(): boolean {
    return this.#db.isTransaction;
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }
}

function* rows(
  statement: StatementSyncInstance,
  names: string[],
  parameters: readonly unknown[],
): IterableIterator<unknown> {
  try {
    for (const values of statement.iterate(...checked(parameters))) yield toRow(names, values);
  } finally {
    statement.close();
  }
}

/**
 * Rejects values that the driver would corrupt: it cuts text at NUL and stores positive numbers below 2.2e-16 as 0 (2.6.0,
 * BindSingleParameter). PostgreSQL also has no NUL in text.
 */
function checked(parameters: readonly unknown[]): readonly unknown[] {
  for (const value of parameters) {
    if (typeof value === "string" && value.includes("\0"))
      throw new Error("The database cannot store text with a NUL character.");
    if (typeof value === "number" && value > 0 && value < Number.EPSILON)
      throw new Error(`The database cannot store the number ${value}.`);
  }
  return parameters;
}

function toRow(names: string[], values: unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const [at, name] of names.entries()) {
    const value = values[at];
    row[name] =
      value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;
  }
  return row;
}
