import { type DatabaseConnection, type Driver, SqliteDialect } from "kysely";
import type { SqliteFile } from "./sqlite-file.js";

/**
 * kysely's SQLite dialect for several connections of one process to the same file. SQLite waits for a lock by
 * blocking the thread, so a connection that waited for another one of the same thread would wait for ever: here
 * they take turns before they touch the file. Other processes are waited for by SQLite itself.
 */
export class SqliteTurnsDialect extends SqliteDialect {
  readonly #path: string;
  readonly #file: SqliteFile;

  constructor(file: SqliteFile, path: string) {
    super({ database: file });
    this.#file = file;
    this.#path = path;
  }

  override createDriver(): Driver {
    const driver = super.createDriver();
    const turns = turnsOf(this.#path);
    const acquire = driver.acquireConnection.bind(driver);
    const release = driver.releaseConnection.bind(driver);
    driver.acquireConnection = async () => {
      await turns.take();
      return acquire();
    };
    driver.releaseConnection = async (connection: DatabaseConnection) => {
      await release(connection);
      turns.give();
    };
    const rollback = driver.rollbackTransaction.bind(driver);
    driver.rollbackTransaction = async (connection: DatabaseConnection) => {
      // What SQLite rolled back by itself cannot be rolled back again: that error would hide the one that was the cause.
      if (this.#file.isTransaction) await rollback(connection);
    };
    return driver;
  }
}

class Turns {
  #taken = false;
  readonly #waiting: (() => void)[] = [];

  take(): Promise<void> {
    if (!this.#taken) {
      this.#taken = true;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken = false;
    else next();
  }
}

const turnsByFile = new Map<string, Turns>();

function turnsOf(path: string): Turns {
  const turns = turnsByFile.get(path) ?? new Turns();
  turnsByFile.set(path, turns);
  return turns;
}
