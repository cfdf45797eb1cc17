import type { Kysely } from "kysely";
import type { StudyPackage } from "../../contracts/studies/index.js";
import { reproductionsIn } from "../text/blocks.js";
import { displayable } from "../text/display.js";
import { batches } from "./batches.js";
import type { Database } from "./schema.js";
import type { Store } from "./store.js";
import { rowsOf, type StudyRows } from "./studies.js";

/** Most reproductions listed on a page. */
const mostListed = 100;

/**
 * Stores which published versions a version claims to reproduce. Claims about unknown packages or the study itself are
 * ignored.
 */
export async function storeReproductions(
  trx: Kysely<Database>,
  study: { id: string; version: number },
  content: StudyPackage,
): Promise<void> {
  for (const block of reproductionsIn(content)) {
    if (block.study === study.id) continue;
    const original = await trx
      .selectFrom("versions")
      .select("version")
      .where("study_id", "=", block.study)
      .where("version", "=", block.version)
      .where("sha256", "=", block.package_sha256)
      .executeTakeFirst();
    if (original === undefined) continue;
    await trx
      .insertInto("reproductions")
      .values({
        study_id: study.id,
        version: study.version,
        original_id: block.study,
        original_version: block.version,
        outcome: block.outcome,
        differed: block.differed === undefined ? null : displayable(block.differed),
      })
      .execute();
  }
}

/** Fills the empty table from all published versions: after the migration, and after a restore. */
export async function findReproductions(db: Kysely<Database>): Promise<void> {
  const all = batches<{ study_id: string; version: number; published_at: number; package: Buffer }>(
    (last, limit) =>
      db
        .selectFrom("versions")
        .select(["study_id", "version", "published_at", "package"])
        .where("published_at", ">", last?.published_at ?? 0)
        .orderBy("published_at")
        .limit(limit)
        .execute(),
  );
  for await (const found of all) {
    for (const { study_id, version, package: bytes } of found) {
      if (!bytes.includes("tapline-reproduction")) continue;
      await storeReproductions(db, { id: study_id, version }, JSON.parse(bytes.toString("utf8")));
    }
  }
}

/** Reproductions by the current versions of listed studies. */
function standing(store: Store) {
  return store.db
    .selectFrom("reproductions")
    .innerJoin("studies", (join) =>
      join
        .onRef("studies.id", "=", "reproductions.study_id")
        .onRef("studies.version", "=", "reproductions.version"),
    )
    .where("studies.listed", "=", 1);
}

/** Reproductions of a study and their outcomes, newest first. */
export function reproductionsOf(store: Store, studyId: string) {
  return standing(store)
    .innerJoin("accounts", "accounts.id", "studies.account_id")
    .select([
      "studies.id",
      "studies.title",
      "studies.author",
      "accounts.handle",
      "studies.published_at",
      "reproductions.original_version",
      "reproductions.outcome",
      "reproductions.differed",
    ])
    .where("reproductions.original_id", "=", studyId)
    .orderBy("studies.published_at", "desc")
    .limit(mostListed)
    .execute();
}

/** Listed studies that a version reproduces. */
export function originalsOf(store: Store, study: { id: string; version: number }) {
  return store.db
    .selectFrom("reproductions")
    .innerJoin("studies", "studies.id", "reproductions.original_id")
    .select(["studies.id", "studies.title", "reproductions.original_version", "reproductions.outcome"])
    .where("reproductions.study_id", "=", study.id)
    .where("reproductions.version", "=", study.version)
    .where("studies.listed", "=", 1)
    .execute();
}

/** Studies that have been reproduced, newest first. */
export async function reproducedStudies(store: Store, limit: number, offset: number): Promise<StudyRows> {
  const ids = standing(store).select("reproductions.original_id").distinct();
  const times = await store.db
    .selectFrom("studies")
    .select("published_at")
    .where("listed", "=", 1)
    .where("id", "in", ids)
    .execute();
  const keys = times.map(({ published_at }) => published_at).sort((a, b) => b - a);
  const rows = await rowsOf(store, keys.slice(offset, offset + limit));
  return { rows, total: keys.length, exact: true };
}
