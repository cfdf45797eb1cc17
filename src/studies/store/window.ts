import { type RawBuilder, sql } from "kysely";
import type { Dialect } from "./dialect.js";

/**
 * Exact sliding windows: a column holds the times of what was let through, as a JSON array in order. One UPDATE
 * drops what has left the window and adds now, provided that fewer than `most` remain; the row's lock makes it
 * exact among connections and processes, and the database's clock among machines.
 */
export interface Window {
  column: string;
  most: number;
  lengthMs: number;
}

/**
 * Times that are further ahead were written by a clock that has been put back since. They count for nothing: they would
 * keep everybody out until the clock is there again. Anything nearer is counted.
 */
export const clockToleranceMs = 60_000;

/** Whether an entry is in the window. */
function inside(dialect: Dialect, { lengthMs }: Window): RawBuilder<boolean> {
  const value = sql.ref("value");
  return sql<boolean>`${value} > ${dialect.now} - cast(${lengthMs} as bigint)
    and ${value} <= ${dialect.now} + cast(${clockToleranceMs} as bigint)`;
}

/** The column's next value. */
export function admitted(dialect: Dialect, window: Window): RawBuilder<string> {
  const value = sql.ref("value");
  return dialect.collect(
    sql`select ${value} from ${dialect.entries(window.column)} where ${inside(dialect, window)}
      union all select ${dialect.now} as value`,
  );
}

/** Whether there is room for one more. */
export function hasRoom(dialect: Dialect, window: Window): RawBuilder<boolean> {
  return sql<boolean>`(select count(*) from ${dialect.entries(window.column)}
    where ${inside(dialect, window)}) < ${window.most}`;
}

/** What a window tells its client. */
export interface WindowState {
  limit: number;
  remaining: number;
  /** Whole seconds until the oldest entry leaves; waiting them suffices. 0 where the window is empty. */
  resetSeconds: number;
}

export function windowState(window: Window, recent: string, now: number): WindowState {
  const times = (JSON.parse(recent) as number[]).filter(
    (time) => time > now - window.lengthMs && time <= now + clockToleranceMs,
  );
  const oldest = times.length === 0 ? null : Math.min(...times);
  return {
    limit: window.most,
    remaining: Math.max(0, window.most - times.length),
    // An entry leaves at oldest + length exactly; the answer needs a moment, so rounding up always suffices.
    resetSeconds: oldest === null ? 0 : Math.max(1, Math.ceil((oldest + window.lengthMs - now) / 1000)),
  };
}
