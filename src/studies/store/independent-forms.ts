import { setImmediate } from "node:timers/promises";
import { type Kysely, sql } from "kysely";
import { formsAt, type Key, type MeasuredForm } from "./measurements.js";
import type { Database } from "./schema.js";
import type { Store } from "./store.js";

/** Measurements of one form by different authors. */
export interface Independent {
  form: string;
  /** Each author's newest, the most recent first; at least two. */
  measured: MeasuredForm[];
  /** Whether more authors measured it, earlier. */
  more: boolean;
}

/** Authors whose measurements of a form are compared. */
export const mostCompared = 5;
/** Authors whose measurements of a form are read; some may be copies. */
const mostRead = 4 * mostCompared;

/** Of some forms of a model, those with independent measurements. A result that someone else published first is a copy. */
export async function independentForms(
  { db }: Store,
  model: string,
  forms: readonly string[],
): Promise<Independent[]> {
  if (forms.length === 0) return [];
  const keys = await newestByAuthor(db, model, forms);
  // With thousands of measurements a statement takes milliseconds.
  await setImmediate();
  const measured = await formsAt(db, keys);
  const authors = await firstAuthors(db, measured);
  return forms.flatMap((form) => {
    const own = measured.filter((one) => one.form === form && authors.get(one.result) === one.accountId);
    return own.length < 2
      ? []
      : [{ form, measured: own.slice(0, mostCompared), more: own.length > mostCompared }];
  });
}

/** Each author's newest measurement of a form that several authors measured, the most recent first. */
async function newestByAuthor(db: Kysely<Database>, model: string, forms: readonly string[]): Promise<Key[]> {
  const byAuthor = db
    .selectFrom("measured_forms")
    .select((eb) => [
      "form",
      eb.fn.max<number>("published_at").as("published_at"),
      sql<number>`count(*) over (partition by form)`.as("authors"),
      sql<number>`row_number() over (partition by form order by max(published_at) desc)`.as("turn"),
    ])
    .where("model", "=", model)
    .where("form", "in", forms)
    .groupBy(["form", "account_id"])
    .as("by_author");
  const newest = await db
    .selectFrom(byAuthor)
    .select(["form", "published_at"])
    .where("authors", ">", 1)
    .where("turn", "<=", mostRead)
    .execute();
  if (newest.length === 0) return [];
  // A separate statement, because PostgreSQL reads the whole table for a join.
  const places = await db
    .selectFrom("measured_forms")
    .select((eb) => ["form", "published_at", eb.fn.min<number>("place").as("place")])
    .where("published_at", "in", [...new Set(newest.map(({ published_at }) => published_at))])
    .where("form", "in", forms)
    .groupBy(["published_at", "form"])
    .execute();
  const nameOf = ({ form, published_at }: { form: string; published_at: number }) =>
    `${form} ${published_at}`;
  const wanted = new Set(newest.map(nameOf));
  return places.filter((each) => wanted.has(nameOf(each))).sort((a, b) => b.published_at - a.published_at);
}

/** By result, the account that published it first. */
async function firstAuthors(
  db: Kysely<Database>,
  measured: readonly MeasuredForm[],
): Promise<Map<string, string>> {
  if (measured.length === 0) return new Map();
  const results = [...new Set(measured.map(({ result }) => result))];
  const first = db
    .selectFrom("measured_models")
    .select((eb) => eb.fn.min<number>("published_at").as("published_at"))
    .where("result", "in", results)
    .groupBy("result");
  const rows = await db
    .selectFrom("measured_models")
    .select(["result", "account_id"])
    .where("published_at", "in", first)
    .execute();
  return new Map(rows.map(({ result, account_id }) => [result, account_id]));
}
