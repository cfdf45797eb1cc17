import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from "@photostructure/sqlite";
import type { SqliteDatabase, SqliteStatement } from "kysely";

/**
 * An open SQLite file as kysely asks for one, on the interface of Node's own `node:sqlite`. Bytes are read as
 * Buffers and rows are plain objects, as PostgreSQL's are; a statement lives for one call, so that nothing of it is
 * left to the garbage collector and `close()` closes the file at once.
 */
export class SqliteFile implements SqliteDatabase {
  readonly #db: DatabaseSyncInstance;

  /** @param waitMs how long to wait for another process that writes */
  constructor(path: string, waitMs: number) {
    this.#db = new DatabaseSync(path, { timeout: waitMs });
  }

  /** Runs statements that answer nothing, without parameters. */
  exec(sql: string): void {
    this.#db.exec(sql);
  }

  prepare(sql: string): SqliteStatement {
    const statement = this.#db.prepare(sql);
    const names = statement.columns().map(({ name }) => name);
    if (names.length > 0) statement.setReturnArrays(true);
    // The last row's number comes with every statement, also with a rollback, and the search index of SQLite has its own
    // beyond 2^53: as a plain number the driver would refuse it.
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

  /** Whether a transaction is open: SQLite ends one by itself where the disk is full, for one. */
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
 * The driver would cut a text at a NUL and take a positive number below 2.2e-16 for 0 (2.6.0, BindSingleParameter).
 * Refused rather than kept wrong: PostgreSQL, too, has no NUL in a text.
 */
function checked(parameters: readonly unknown[]): readonly unknown[] {
  for (const value of parameters) {
    if (typeof value === "string" && value.includes("\0"))
      throw new Error("A text with a NUL in it cannot be kept in the database.");
    if (typeof value === "number" && value > 0 && value < Number.EPSILON)
      throw new Error(`The number ${value} cannot be kept in the database.`);
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
