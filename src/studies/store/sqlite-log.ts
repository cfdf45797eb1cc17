import { SqliteFile } from "./sqlite-file.js";

const retryMs = 1000;

/**
 * Empties an SQLite file's write-ahead log. The log holds old pages until they are overwritten, which may take days on a
 * quiet service, so erased data would remain readable there.
 */
export class SqliteLog {
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(private readonly path: string) {}

  /** Empties the log now, or once no one is reading from it. */
  empty(): void {
    if (this.#closed || this.#retry !== undefined) return;
    if (this.#truncate()) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.empty();
    }, retryMs).unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
  }

  /** Does not wait for readers, which would block this thread. Returns whether the log is empty. */
  #truncate(): boolean {
    const file = new SqliteFile(this.path, 0);
    try {
      const [result] = file.prepare("pragma wal_checkpoint(truncate)").all([]) as { busy: number }[];
      return result?.busy === 0;
    } catch {
      // For example a full disk; the log is kept until there is space.
      return false;
    } finally {
      file.close();
    }
  }
}
