import { setImmediate } from "node:timers/promises";
import type { Kysely } from "kysely";
import { formsAt, type MeasuredForm } from "./measurements.js";
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
  const shared = await db
    .selectFrom("measured_forms")
    .select("form")
    .where("model", "=", model)
    .where("form", "in", forms)
    .groupBy("form")
    .having((eb) => eb(eb.fn.count("account_id").distinct(), ">", 1))
    .execute();
  const found: Independent[] = [];
  for (const form of forms) {
    if (!shared.some((one) => one.form === form)) continue;
    // With thousands of measurements a form takes milliseconds.
    await setImmediate();
    const measured = await newestByAuthor(db, model, form);
    const authors = await firstAuthors(db, measured);
    const own = measured.filter(({ result, accountId }) => authors.get(result) === accountId);
    if (own.length < 2) continue;
    found.push({ form, measured: own.slice(0, mostCompared), more: own.length > mostCompared });
  }
  return found;
}

/** Each author's newest measurement of a form, the most recent first. */
async function newestByAuthor(db: Kysely<Database>, model: string, form: string): Promise<MeasuredForm[]> {
  const rows = db.selectFrom("measured_forms").where("model", "=", model).where("form", "=", form);
  const newest = await rows
    .select((eb) => eb.fn.max<number>("published_at").as("published_at"))
    .groupBy("account_id")
    .orderBy("published_at", "desc")
    .limit(mostRead)
    .execute();
  const times = newest.map(({ published_at }) => published_at);
  const places = await rows
    .select((eb) => ["published_at", eb.fn.min<number>("place").as("place")])
    .where("published_at", "in", times)
    .groupBy("published_at")
    .execute();
  return formsAt(
    db,
    places.sort((a, b) => b.published_at - a.published_at),
  );
}

/** By result, the account that published it first. */
async function firstAuthors(
  db: Kysely<Database>,
  measured: readonly MeasuredForm[],
): Promise<Map<string, string>> {
  const results = measured.map(({ result }) => result);
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
