import { type DatabaseConnection, type Driver, SqliteDialect } from "kysely";
import type { SqliteFile } from "./sqlite-file.js";

/**
 * kysely's SQLite dialect for several connections of one process to the same file. SQLite blocks the thread while it waits
 * for a lock, so two connections of one thread would deadlock: here they take turns. SQLite itself waits for other
 * processes.
 */
export class SqliteTurnsDialect extends SqliteDialect {
  constructor(
    private readonly file: SqliteFile,
    private readonly path: string,
  ) {
    super({ database: file });
  }

  override createDriver(): Driver {
    const driver = super.createDriver();
    const turns = turnsOf(this.path);
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
      // SQLite may already have rolled back; a second rollback fails and would hide the original error.
      if (this.file.isTransaction) await rollback(connection);
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
