import type { Kysely } from "kysely";
import type { StudyPackage } from "../../contracts/studies/index.js";
import { distinctWords } from "../text/words.js";
import type { IndexedStudy, SearchEntry } from "./dialect.js";
import type { Database } from "./schema.js";

/** Every word once, in the best tier where it occurs. */
export function searchEntry(study: StudyPackage): SearchEntry {
  const title = distinctWords([study.title]);
  const head = distinctWords([study.question, study.model.name]);
  const body = distinctWords([study.hypothesis, study.method, study.finding, study.limitations]);
  const seen = new Set([...title, ...head]);
  return {
    title,
    head: head.filter((word) => !title.includes(word)),
    body: body.filter((word) => !seen.has(word)),
  };
}

/** Listed studies with their current version's bytes. */
export function listedPackages(db: Kysely<Database>) {
  return db
    .selectFrom("studies")
    .innerJoin("versions", (join) =>
      join.onRef("versions.study_id", "=", "studies.id").onRef("versions.version", "=", "studies.version"),
    )
    .select(["studies.published_at", "studies.account_id", "versions.package"])
    .where("studies.listed", "=", 1);
}

/** Packages (up to 1 MB each) read at a time. */
const batch = 50;

/** All of them, in order of publication, in batches. */
export async function* listedBatches(db: Kysely<Database>) {
  for (let last = 0, more = true; more; ) {
    const found = await listedPackages(db)
      .where("studies.published_at", ">", last)
      .orderBy("studies.published_at")
      .limit(batch)
      .execute();
    if (found.length > 0) yield found;
    last = found.at(-1)?.published_at ?? last;
    more = found.length === batch;
  }
}

/** A study's entry in the full-text index. It never changes, because the publication time identifies a version. */
export function indexed(row: { published_at: number; package: Buffer }): IndexedStudy {
  const study = JSON.parse(row.package.toString("utf8")) as StudyPackage;
  return { publishedAt: row.published_at, entry: searchEntry(study) };
}
