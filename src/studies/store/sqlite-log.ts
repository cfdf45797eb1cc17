import { SqliteFile } from "./sqlite-file.js";

const retryMs = 1000;

/**
 * Empties an SQLite file's write-ahead log. The log has pages as they were before, and keeps them until others are
 * written over them, which on a quiet service may take days: what was erased would be readable there.
 */
export class SqliteLog {
  readonly #path: string;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Empties the log now, or as soon as nobody reads from it any more. */
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

  /** Without waiting for readers, because SQLite would wait on this thread. Whether the log is empty. */
  #truncate(): boolean {
    const file = new SqliteFile(this.#path, 0);
    try {
      const [result] = file.prepare("pragma wal_checkpoint(truncate)").all([]) as { busy: number }[];
      return result?.busy === 0;
    } catch {
      // Such as a full disk: what is in the log stays until there is room.
      return false;
    } finally {
      file.close();
    }
  }
}
