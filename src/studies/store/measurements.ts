import type { Kysely } from "kysely";
import { type Measurement, measurementsIn } from "../text/measurements.js";
import { countOf } from "./rows.js";
import type { Database } from "./schema.js";
import { listedBatches } from "./search-entry.js";
import type { Store } from "./store.js";

/** A version that becomes the current one of a listed study. */
interface Current {
  published_at: number;
  account_id: string;
  package: Buffer;
}

/** Stores the measurements of a package, if it has any. Like the full-text index, they cover listed versions only. */
export async function storeMeasurements(db: Kysely<Database>, current: Current): Promise<void> {
  const found = measurementsIn(current.package);
  if (found === null) return;
  const { published_at, account_id } = current;
  const { model, file, bytes, bits, texts, result, forms } = found;
  await db
    .insertInto("measured_models")
    .values({ published_at, account_id, model, file, bytes, bits, texts, result })
    .execute();
  await db
    .insertInto("measured_forms")
    .values(
      forms.map((figures, place) => ({
        ...{ published_at, place, account_id, model, form: figures.form, bytes: figures.bytes },
        figures: JSON.stringify(figures),
      })),
    )
    .execute();
}

/** Removes the measurements of a version that is no longer the current one, or no longer listed. */
export async function forgetMeasurements(db: Kysely<Database>, publishedAt: number): Promise<void> {
  for (const table of ["measured_forms", "measured_models"] as const)
    await db.deleteFrom(table).where("published_at", "=", publishedAt).execute();
}

/** Fills the empty tables from all listed studies: after the migration, and after a restore. */
export async function findMeasurements(db: Kysely<Database>): Promise<void> {
  for await (const found of listedBatches(db))
    for (const current of found) await storeMeasurements(db, current);
}

/** A model whose forms were measured. */
export interface ModelRow {
  /** Hash of its file. */
  model: string;
  /** As the first of the studies reports them. */
  file: string;
  bytes: number;
  bits: number;
  studies: number;
  authors: number;
  forms: number;
  newest: number;
}

/** The most recently measured models first. */
export async function listModels(
  { db }: Store,
  limit: number,
  offset: number,
): Promise<{ rows: ModelRow[]; total: number }> {
  const [{ total }, found] = await Promise.all([
    db
      .selectFrom("measured_models")
      .select((eb) => eb.fn.count<number>("model").distinct().as("total"))
      .executeTakeFirstOrThrow(),
    modelCounts(db).orderBy("newest", "desc").limit(limit).offset(offset).execute(),
  ]);
  return { rows: await described(db, found), total };
}

/** One model; undefined if no listed study measured its forms. */
export async function findModel({ db }: Store, model: string): Promise<ModelRow | undefined> {
  return (await described(db, await modelCounts(db).where("model", "=", model).execute()))[0];
}

function modelCounts(db: Kysely<Database>) {
  return db
    .selectFrom("measured_models")
    .select((eb) => [
      "model",
      eb.fn.countAll<number>().as("studies"),
      eb.fn.count<number>("account_id").distinct().as("authors"),
      eb.fn.min<number>("published_at").as("oldest"),
      eb.fn.max<number>("published_at").as("newest"),
    ])
    .groupBy("model");
}

async function described(
  db: Kysely<Database>,
  found: Awaited<ReturnType<ReturnType<typeof modelCounts>["execute"]>>,
): Promise<ModelRow[]> {
  if (found.length === 0) return [];
  const [oldest, forms] = await Promise.all([
    db
      .selectFrom("measured_models")
      .select(["model", "file", "bytes", "bits"])
      .where(
        "published_at",
        "in",
        found.map((row) => row.oldest),
      )
      .execute(),
    db
      .selectFrom("measured_forms")
      .select((eb) => ["model", eb.fn.count<number>("form").distinct().as("forms")])
      .where(
        "model",
        "in",
        found.map(({ model }) => model),
      )
      .groupBy("model")
      .execute(),
  ]);
  const first = new Map(oldest.map((row) => [row.model, row]));
  const formsOf = new Map(forms.map((row) => [row.model, row.forms]));
  return found.flatMap(({ model, studies, authors, newest }) => {
    const row = first.get(model);
    return row === undefined ? [] : [{ ...row, studies, authors, forms: formsOf.get(model) ?? 0, newest }];
  });
}

/** The model whose forms a listed study measured; undefined for other studies. */
export async function measuredModel({ db }: Store, publishedAt: number): Promise<string | undefined> {
  const row = await db
    .selectFrom("measured_models")
    .select("model")
    .where("published_at", "=", publishedAt)
    .executeTakeFirst();
  return row?.model;
}

/** One study's measurement of one form. */
export interface MeasuredForm extends Measurement {
  study: string;
  title: string;
  author: string;
  handle: string | null;
  accountId: string;
  publishedAt: number;
  /** Hash of the texts. */
  texts: string;
  /** Hash of the complete result. */
  result: string;
}

/** A study, and the place of a measurement in it. */
export interface Key {
  published_at: number;
  place: number;
}

/** Measurements of a model's forms: large forms first, those of one form together, the newest first. */
export async function listForms(
  { db }: Store,
  model: string,
  limit: number,
  offset: number,
): Promise<{ rows: MeasuredForm[]; total: number }> {
  const all = db.selectFrom("measured_forms").where("model", "=", model);
  const [total, keys] = await Promise.all([
    countOf(all),
    // Read the page's keys from the index alone, and rows only afterwards.
    all
      .select(["published_at", "place"])
      .orderBy("bytes", "desc")
      .orderBy("form")
      .orderBy("published_at", "desc")
      .orderBy("place")
      .limit(limit)
      .offset(offset)
      .execute(),
  ]);
  return { rows: await formsAt(db, keys), total };
}

/** The measurements at these places, in their order. */
export async function formsAt(db: Kysely<Database>, keys: readonly Key[]): Promise<MeasuredForm[]> {
  if (keys.length === 0) return [];
  const times = [...new Set(keys.map(({ published_at }) => published_at))];
  const places = [...new Set(keys.map(({ place }) => place))];
  const [forms, studies] = await Promise.all([
    db
      .selectFrom("measured_forms")
      .select(["published_at", "place", "figures"])
      .where("published_at", "in", times)
      .where("place", "in", places)
      .execute(),
    db
      .selectFrom("studies")
      .innerJoin("accounts", "accounts.id", "studies.account_id")
      .innerJoin("measured_models", "measured_models.published_at", "studies.published_at")
      .select([
        ...(["studies.published_at", "studies.account_id", "studies.id", "studies.title"] as const),
        ...([
          "studies.author",
          "accounts.handle",
          "measured_models.texts",
          "measured_models.result",
        ] as const),
      ])
      .where("studies.published_at", "in", times)
      .execute(),
  ]);
  const nameOf = ({ published_at, place }: Key) => `${published_at} ${place}`;
  const formByKey = new Map(forms.map((row) => [nameOf(row), row]));
  const studyByTime = new Map(studies.map((row) => [row.published_at, row]));
  return keys.flatMap((key) => {
    const form = formByKey.get(nameOf(key));
    const study = studyByTime.get(key.published_at);
    if (form === undefined || study === undefined) return [];
    const { id, account_id, published_at: publishedAt, ...rest } = study;
    const figures = JSON.parse(form.figures) as Measurement;
    return [{ ...figures, ...rest, study: id, accountId: account_id, publishedAt }];
  });
}
