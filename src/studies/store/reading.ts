import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Database } from "./schema.js";

/** Publication times, and the publication number of that state. */
export interface Reading {
  publication: number;
  /** Ascending. */
  times: Float64Array;
}

/**
 * Reads times and the publication number in one statement, so that they are consistent.
 * @param list query of one text: the times in any order, separated by commas; several times faster to read than rows
 */
export async function readTimes(db: Kysely<Database>, list: RawBuilder<unknown>): Promise<Reading> {
  const { rows } = await sql<{ list: string | null; publication: number }>`
    select (${list}) as list, (select value from counters where name = 'published_at') as publication
  `.execute(db);
  const { list: text, publication } = rows[0] as (typeof rows)[number];
  const times = numbersOf(text);
  // Usually ascending already, since rows are stored in order of publication.
  return { publication, times: isAscending(times) ? times : times.sort() };
}

function isAscending(numbers: Float64Array): boolean {
  for (let at = 1; at < numbers.length; at += 1) {
    if ((numbers[at - 1] as number) > (numbers[at] as number)) return false;
  }
  return true;
}

/** Numbers from a comma-separated text; null or empty means none. */
export function numbersOf(text: string | null): Float64Array {
  if (text === null || text === "") return new Float64Array(0);
  let count = 1;
  for (let at = text.indexOf(","); at !== -1; at = text.indexOf(",", at + 1)) count += 1;
  const numbers = new Float64Array(count);
  let place = 0;
  let value = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 44) {
      numbers[place] = value;
      place += 1;
      value = 0;
    } else {
      value = value * 10 + (code - 48);
    }
  }
  numbers[place] = value;
  return numbers;
}
