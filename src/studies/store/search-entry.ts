import type { Kysely } from "kysely";
import type { StudyPackage } from "../../contracts/studies/index.js";
import { distinctWords } from "../text/words.js";
import { batches } from "./batches.js";
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

/** All of them, in order of publication, in batches. */
export function listedBatches(db: Kysely<Database>) {
  return batches<Awaited<ReturnType<ReturnType<typeof listedPackages>["execute"]>>[0]>((last, limit) =>
    listedPackages(db)
      .where("studies.published_at", ">", last?.published_at ?? 0)
      .orderBy("studies.published_at")
      .limit(limit)
      .execute(),
  );
}

/** A study's entry in the full-text index. It never changes, because the publication time identifies a version. */
export function indexed(row: { published_at: number; package: Buffer }): IndexedStudy {
  const study = JSON.parse(row.package.toString("utf8")) as StudyPackage;
  return { publishedAt: row.published_at, entry: searchEntry(study) };
}
