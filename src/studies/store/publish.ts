import { type Kysely, sql, type Transaction } from "kysely";
import { type Operation, operations } from "../../contracts/index.js";
import {
  blockLabels,
  labelledBlocks,
  type StudyPackage,
  studyLimits,
} from "../../contracts/studies/index.js";
import { displayable, firstCharacters } from "../text/display.js";
import { audit } from "./audit.js";
import { batches } from "./batches.js";
import { addToCounter } from "./counters.js";
import { forgetMeasurements, storeMeasurements } from "./measurements.js";
import { forgetDraft, notify } from "./notifications.js";
import { storeReproductions } from "./reproductions.js";
import { isThere } from "./rows.js";
import type { Database } from "./schema.js";
import { listedPackages, searchEntry } from "./search-entry.js";
import { bumpGeneration, type Store, withAccount } from "./store.js";

export interface Publication {
  accountId: string;
  draftId: string;
  /** SHA-256 of the reviewed bytes; nothing else is published. */
  reviewedSha256: string;
  /** The study of which this becomes the next version; null for a new study. */
  replaces: string | null;
}

export type Published = { outcome: "published"; id: string; version: number } | { outcome: "gone" };

/** The study to replace belongs to someone else or was taken down; the draft is not published. */
export class StudyGone extends Error {
  override name = "StudyGone";
}

/** Publishes a draft, as a new study with the draft's id or as the next version of a study. */
export function publishDraft(store: Store, publication: Publication): Promise<Published> {
  return withAccount(store, publication.accountId, async (trx, now): Promise<Published> => {
    const account = await trx
      .selectFrom("accounts")
      .select("name")
      .where("id", "=", publication.accountId)
      .executeTakeFirstOrThrow();
    const draft = await trx
      .deleteFrom("drafts")
      .where("id", "=", publication.draftId)
      .where("account_id", "=", publication.accountId)
      .where("sha256", "=", publication.reviewedSha256)
      .returning(["id", "created_at", "sha256", "package"])
      .executeTakeFirst();
    if (draft === undefined) return { outcome: "gone" };
    const study = JSON.parse(draft.package.toString("utf8")) as StudyPackage;
    const published_at = await nextPublication(store, trx);
    const summary = { author: account.name, published_at, ...summaryOf(study) };
    let id = draft.id;
    let version = 1;
    if (publication.replaces === null) {
      await trx
        .insertInto("studies")
        .values({
          id,
          account_id: publication.accountId,
          version,
          created_at: draft.created_at,
          upvotes: 0,
          comment_count: 0,
          listed: 1,
          standing: "published",
          ...summary,
        })
        .execute();
      await addToCounter(trx, "studies", 1);
    } else {
      const current = await trx
        .selectFrom("studies")
        .select(["id", "published_at"])
        .where("id", "=", publication.replaces)
        .where("account_id", "=", publication.accountId)
        .where("listed", "=", 1)
        .executeTakeFirst();
      if (current === undefined) throw new StudyGone();
      id = current.id;
      // Version numbers are never reused, even after a withdrawal.
      const { last } = await trx
        .selectFrom("versions")
        .select((eb) => eb.fn.max("version").as("last"))
        .where("study_id", "=", id)
        .executeTakeFirstOrThrow();
      version = last + 1;
      await store.dialect.search.remove(trx, current.published_at);
      await forgetMeasurements(trx, current.published_at);
      await trx
        .updateTable("studies")
        .set({ version, upvotes: 0, ...summary })
        .where("id", "=", id)
        .execute();
    }
    await trx
      .insertInto("versions")
      .values({
        study_id: id,
        version,
        draft_id: draft.id,
        standing: "published",
        created_at: draft.created_at,
        published_at,
        sha256: draft.sha256,
        package: draft.package,
      })
      .execute();
    await forgetDraft(trx, publication.accountId, draft.id);
    await storeReproductions(trx, { id, version }, study);
    await notifyReproduced(trx, now, { id, version, accountId: publication.accountId });
    await store.dialect.search.add(trx, [{ publishedAt: published_at, entry: searchEntry(study) }]);
    const measured = { published_at, account_id: publication.accountId, package: draft.package };
    await storeMeasurements(trx, measured);
    await bumpGeneration(trx);
    await audit(trx, now, {
      actor: { accountId: publication.accountId },
      action: "study.publish",
      target: id,
      detail: `version ${version}`,
    });
    return { outcome: "published", id, version };
  });
}

/** Notifies authors that their study was reproduced, once per reproducing study. */
async function notifyReproduced(
  trx: Transaction<Database>,
  now: number,
  { id, version, accountId }: { id: string; version: number; accountId: string },
): Promise<void> {
  const originals = await trx
    .selectFrom("reproductions")
    .innerJoin("studies", "studies.id", "reproductions.original_id")
    .select(["studies.id", "studies.account_id"])
    .where("reproductions.study_id", "=", id)
    .where("reproductions.version", "=", version)
    .execute();
  for (const original of originals) {
    const sent = trx
      .selectFrom("notifications")
      .select("id")
      .where("account_id", "=", original.account_id)
      .where("kind", "=", "reproduction")
      .where("study_id", "=", original.id)
      .where("by_study_id", "=", id);
    if (await isThere(sent.limit(1))) continue;
    await notify(trx, now, original.account_id, {
      kind: "reproduction",
      study_id: original.id,
      by_study_id: id,
      actor_id: accountId,
    });
  }
}

// The counter's row is locked until the commit, so publications become visible in the order of their times.
export async function nextPublication(store: Store, trx: Transaction<Database>): Promise<number> {
  const { now } = store.dialect;
  const { value } = await trx
    .updateTable("counters")
    .set({ value: sql<number>`case when value >= ${now} then value + 1 else ${now} end` })
    .where("name", "=", "published_at")
    .returning("value")
    .executeTakeFirstOrThrow();
  return value;
}

/** Fills filter columns that rows of an older schema lack, from their packages. */
export async function completeFilters(db: Kysely<Database>): Promise<void> {
  // A completed row is not found again.
  const all = batches<{ id: string; package: Buffer }>((_, limit) =>
    listedPackages(db).select("studies.id").where("studies.model_name", "=", "").limit(limit).execute(),
  );
  for await (const found of all) {
    for (const { id, package: bytes } of found) {
      const { model_name, methods } = summaryOf(JSON.parse(bytes.toString("utf8")));
      await db.updateTable("studies").set({ model_name, methods }).where("id", "=", id).execute();
    }
  }
}

/** Operations of a study's machine-readable results, each surrounded by spaces. */
function methodsOf(study: StudyPackage): string {
  const found = new Set<string>();
  for (const text of labelledBlocks(study, blockLabels.result)) {
    const operation = /"operation":"([a-z_]+)"/.exec(text.slice(0, 200))?.[1];
    if (operation !== undefined && operations.includes(operation as Operation)) found.add(operation);
  }
  return [...found]
    .sort()
    .map((name) => ` ${name} `)
    .join("");
}

/** Columns for lists and filters. */
export function summaryOf(study: StudyPackage) {
  return {
    title: displayable(study.title),
    question: displayable(firstCharacters(study.question, studyLimits.summary_question)),
    model: displayable(
      JSON.stringify({
        name: displayable(study.model.name),
        ...(study.model.revision === undefined
          ? {}
          : { revision: study.model.revision === null ? null : displayable(study.model.revision) }),
        runtime: displayable(study.model.runtime),
      }),
    ),
    license: study.license,
    model_name: displayable(study.model.name),
    methods: methodsOf(study),
    entry_count: study.entries.length,
  };
}
