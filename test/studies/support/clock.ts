import { type RawBuilder, sql } from "kysely";

/** A clock that tests move, in the place of the database's. */
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
