import type { PostgresPool, PostgresPoolClient } from "kysely";
import type pg from "pg";

/** How often a connection runs a statement before it keeps it, parsed and planned. */
const oftenEnough = 10;
/** Statements that a connection keeps; lists of values make texts of any length, so not all that come are worth it. */
const mostKept = 100;

/**
 * A pool whose connections prepare what they run again and again: parsing and planning take most of the time of a
 * statement that finds its row by a key.
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
    if (name !== undefined || names.size >= mostKept) return name;
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
    // Without parameters it is a word of a transaction or of a cursor, or is run once.
    const name = values.length === 0 ? undefined : nameOf(text);
    return name === undefined ? client.query(text, values) : client.query({ name, text, values });
  };
  // Its other form, with a cursor, is for streams, which are read in another way here.
  return { query: query as unknown as PostgresPoolClient["query"], release: () => client.release() };
}
