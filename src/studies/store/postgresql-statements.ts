import type { PostgresPool, PostgresPoolClient } from "kysely";
import type pg from "pg";

/** Executions on a connection after which a statement is prepared. */
const oftenEnough = 10;
/** Most prepared statements per connection; lists of values create statements of any length. */
const mostPrepared = 100;

/**
 * A pool whose connections prepare frequent statements: parsing and planning take most of the time of a lookup by key.
 */
export function preparing(pool: pg.Pool): PostgresPool {
  const clients = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  return {
    async connect() {
      const client = await pool.connect();
      const known = clients.get(client) ?? preparingClient(client);
      clients.set(client, known);
      return known;
    },
    end: () => pool.end(),
  };
}

function preparingClient(client: pg.PoolClient): PostgresPoolClient {
  const runs = new Map<string, number>();
  const names = new Map<string, string>();
  const nameOf = (text: string): string | undefined => {
    const name = names.get(text);
    if (name !== undefined || names.size >= mostPrepared) return name;
    const count = (runs.get(text) ?? 0) + 1;
    if (count < oftenEnough) {
      if (runs.size >= 1000) runs.clear();
      runs.set(text, count);
      return undefined;
    }
    runs.delete(text);
    names.set(text, `s${names.size}`);
    return names.get(text);
  };
  const query = (text: string, values: unknown[]) => {
    // Statements without parameters control transactions or cursors, or run only once.
    const name = values.length === 0 ? undefined : nameOf(text);
    return name === undefined ? client.query(text, values) : client.query({ name, text, values });
  };
  // The overload with a cursor is for streams, which are not used here.
  return { query: query as unknown as PostgresPoolClient["query"], release: () => client.release() };
}
