import type { Store } from "./store.js";

export interface ActivityRecord {
  at: number;
  action: string;
  status: number;
  /** Id of the study or draft; null if none. */
  resource: string | null;
}

/** Requests made with tokens: action, status and resource id, never text. Written in batches shortly after the response. */
export class ActivityLog {
  #waiting: { token_id: string; at: number; action: string; status: number; resource: string | null }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(private readonly store: Store) {}

  record(tokenId: string, action: string, status: number, resource: string | null): void {
    this.#waiting.push({ token_id: tokenId, at: Date.now(), action, status, resource });
    this.#timer ??= setTimeout(() => void this.flush().catch(() => {}), 200).unref();
  }

  /** Writes pending records. Rejects if the database fails; those records are then lost. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#writing = this.#writing
      .catch(() => {})
      .then(async () => {
        for (let start = 0; start < batch.length; start += 500) {
          await this.store.quick
            .insertInto("activity")
            .values(batch.slice(start, start + 500))
            .execute();
        }
      });
    return this.#writing;
  }

  /** The newest records of a token. */
  async list(tokenId: string, limit = 100): Promise<ActivityRecord[]> {
    await this.flush();
    return this.store.db
      .selectFrom("activity")
      .select(["at", "action", "status", "resource"])
      .where("token_id", "=", tokenId)
      .orderBy("at", "desc")
      .limit(limit)
      .execute();
  }
}
