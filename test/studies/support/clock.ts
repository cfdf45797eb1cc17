import { type RawBuilder, sql } from "kysely";
import { postgresql } from "../../../src/studies/store/postgresql.js";
import { sqlite } from "../../../src/studies/store/sqlite.js";

/** A clock that tests move, instead of the database's. */
export interface TestClock {
  ms: number;
  dialect: { now: RawBuilder<number> };
}

export function testClock(start = 1_800_000_000_000): TestClock {
  const clock = { ms: start, dialect: { now: sql<number>`0` } };
  clock.dialect.now = new Proxy(clock.dialect.now, {
    get: (target, name) =>
      name === "toOperationNode"
        ? () => sql<number>`cast(${sql.lit(clock.ms)} as bigint)`.toOperationNode()
        : Reflect.get(target, name, target),
  });
  return clock;
}

/**
 * A database's clock running several times as fast: a minute of it takes seconds. @param since Unix milliseconds at
 * which both clocks agree
 */
export function hurriedClock(location: string, since: number, times: number): { now: RawBuilder<number> } {
  const { now } = location.startsWith("postgres") ? postgresql : sqlite;
  const [begin, factor] = [sql`cast(${sql.lit(since)} as bigint)`, sql`cast(${sql.lit(times)} as bigint)`];
  return { now: sql<number>`(${begin} + (${now} - ${begin}) * ${factor})` };
}
