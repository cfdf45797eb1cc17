import { type RawBuilder, sql } from "kysely";
import type { Dialect } from "./dialect.js";

/**
 * Exact sliding windows: a column holds the times of admitted actions, as a sorted JSON array. One UPDATE drops expired
 * entries and adds the current time if fewer than `most` remain; the row lock makes it exact across connections and
 * processes, and the database's clock across machines.
 */
export interface Window {
  column: string;
  most: number;
  lengthMs: number;
}

/**
 * Entries further in the future were written before the clock was set back. They are ignored, since they would block
 * everyone until the clock catches up.
 */
export const clockToleranceMs = 60_000;

/** Whether an entry is in the window. */
function inside(dialect: Dialect, { lengthMs }: Window): RawBuilder<boolean> {
  const value = sql.ref("value");
  return sql<boolean>`${value} > ${dialect.now} - cast(${lengthMs} as bigint)
    and ${value} <= ${dialect.now} + cast(${clockToleranceMs} as bigint)`;
}

/** The column's value after admission. */
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

/** A window's state, for rate limit headers. */
export interface WindowState {
  limit: number;
  remaining: number;
  /** Seconds until the oldest entry expires, rounded up; 0 if the window is empty. */
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
    // Rounding up is always enough, since the entry expires exactly at oldest + length.
    resetSeconds: oldest === null ? 0 : Math.max(1, Math.ceil((oldest + window.lengthMs - now) / 1000)),
  };
}
