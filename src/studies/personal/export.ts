import { type SelectQueryBuilder, sql } from "kysely";
import type { Place } from "../store/rows.js";
import type { Database } from "../store/schema.js";
import { listSessions } from "../store/sessions.js";
import type { Store } from "../store/store.js";
import { listTokens } from "../store/tokens.js";
import type { TarFile } from "./tar.js";

/** Rows per file; comments have up to 40 kB each. */
const pageSizes = {
  studies: 50,
  drafts: 20,
  comments: 100,
  votes: 1000,
  reports: 200,
  appeals: 200,
  log: 1000,
} as const;

const readme = `Everything you wrote on this service, and everything it stores about you.

account.json         your profile, sign-in method, permissions, and newest 200 sessions and tokens (without their secrets)
studies/ID.json      a study you published, with its versions and their status
studies/ID/vN.json   a version, byte for byte as published
drafts/ID.json       an unpublished draft, byte for byte as saved
drafts-N.json        list of these drafts, with the time saved
comments-N.json      your comments, including hidden ones (deleted text is gone)
votes-N.json         studies you upvoted
reports-N.json       your reports to moderators
appeals-N.json       your appeals to moderators
notifications-N.json your notifications, by id
audit-N.json         your actions, by id
activity-N.json      requests made with your tokens, by id

Times are ISO 8601 in UTC. Files are JSON in UTF-8. Long lists are split into several files.
`;

/**
 * Everything that an account wrote and that is stored about it, file by file. Each file has its own queries, so that a
 * slow download blocks nobody; concurrent changes may or may not be included.
 */
export async function* personalFiles(store: Store, accountId: string): AsyncGenerator<TarFile> {
  yield { name: "README.txt", bytes: Buffer.from(readme) };
  yield file("account.json", await accountOf(store, accountId));
  yield* studies(store, accountId);
  yield* drafts(store, accountId);
  const { db } = store;
  const byId = <T extends "comments" | "reports" | "appeals">(table: T, columns: (keyof Database[T])[]) =>
    paged(table, pageSizes[table], (last: { id: string } | undefined) =>
      db
        .selectFrom(table as "comments")
        .select(columns as "id"[])
        .where("account_id", "=", accountId)
        .where("id", ">", last?.id ?? "")
        .orderBy("id")
        .limit(pageSizes[table])
        .execute(),
    );
  yield* byId("comments", [
    "id",
    "study_id",
    "parent_id",
    "created_at",
    "edited_at",
    "hidden",
    "reason",
    "body",
  ]);
  yield* paged("votes", pageSizes.votes, (last: { study_id: string; version: number } | undefined) =>
    db
      .selectFrom("votes")
      .select(["study_id", "version", "created_at"])
      .where("account_id", "=", accountId)
      .where(
        sql<boolean>`(study_id, version) > (${last?.study_id ?? ""}, cast(${last?.version ?? 0} as integer))`,
      )
      .orderBy("study_id")
      .orderBy("version")
      .limit(pageSizes.votes)
      .execute(),
  );
  yield* byId("reports", ["id", "study_id", "comment_id", "created_at", "reason", "closed_at", "outcome"]);
  yield* byId("appeals", ["id", "study_id", "created_at", "body", "closed_at", "outcome"]);
  yield* paged("notifications", pageSizes.log, (last: Place | undefined) =>
    afterPlace(
      db
        .selectFrom("notifications")
        .select(["id", "at", "kind", "study_id", "comment_id", "by_study_id", "draft_id", "read_at"])
        .where("account_id", "=", accountId),
      last,
    ).execute(),
  );
  yield* paged("audit", pageSizes.log, (last: Place | undefined) =>
    afterPlace(
      db
        .selectFrom("audit")
        .select(["id", "at", "action", "target", "detail"])
        .where("actor", "=", accountId),
      last,
    ).execute(),
  );
  yield* activity(store, accountId);
}

/** The next rows of a log, ordered by time and id. */
function afterPlace<T extends "notifications" | "audit", O>(
  query: SelectQueryBuilder<Database, T, O>,
  last: Place | undefined,
) {
  return query
    .where(sql<boolean>`(at, id) > (cast(${last?.at ?? -1} as bigint), ${last?.id ?? ""})`)
    .orderBy(sql`at`)
    .orderBy(sql`id`)
    .limit(pageSizes.log);
}

/** A list in files of `size` rows, using keyset pagination. */
async function* paged<R extends object, L>(
  name: string,
  size: number,
  read: (last: L | undefined) => Promise<(R & L)[]>,
): AsyncGenerator<TarFile> {
  let last: L | undefined;
  for (let number = 1; ; number += 1) {
    const rows = await read(last);
    if (rows.length > 0 || number === 1) yield file(`${name}-${number}.json`, rows.map(readable));
    if (rows.length < size) return;
    last = rows.at(-1);
  }
}

/** A row with its times in ISO 8601. */
function readable(row: object): object {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      (name === "at" || name.endsWith("_at")) && typeof value === "number"
        ? new Date(value).toISOString()
        : value,
    ]),
  );
}

function file(name: string, content: unknown): TarFile {
  return { name, bytes: Buffer.from(`${JSON.stringify(content, null, 1)}\n`) };
}

async function accountOf(store: Store, accountId: string): Promise<object> {
  const { db } = store;
  const account = await db
    .selectFrom("accounts")
    .select(["id", "handle", "name", "email", "login", "issuer", "subject", "created_at"])
    .where("id", "=", accountId)
    .executeTakeFirstOrThrow();
  const roles = await db.selectFrom("approvals").select("role").where("account_id", "=", accountId).execute();
  const sessions = await listSessions(store, accountId);
  const tokens = await listTokens(store, accountId);
  return {
    ...readable(account),
    approved_as: roles.map(({ role }) => role),
    sessions: sessions.map(({ id: _, ...session }) => readable(session)),
    tokens: tokens.map(({ created_at, expires_at, revoked_at, last_used_at, ...token }) => ({
      ...token,
      ...readable({ created_at, expires_at, revoked_at, last_used_at }),
    })),
  };
}

/** Studies by publication time. One that gets a new version meanwhile is exported again; none is skipped. */
async function* studies({ db }: Store, accountId: string): AsyncGenerator<TarFile> {
  for (let last = 0; ; ) {
    const found = await db
      .selectFrom("studies")
      .select(["id", "title", "version", "created_at", "published_at", "upvotes", "standing", "reason"])
      .where("account_id", "=", accountId)
      .where("published_at", ">", last)
      .orderBy("published_at")
      .limit(pageSizes.studies)
      .execute();
    for (const study of found) {
      const versions = await db
        .selectFrom("versions")
        .select(["version", "created_at", "published_at", "sha256", "standing", "standing_at", "reason"])
        .where("study_id", "=", study.id)
        .orderBy("version")
        .execute();
      yield file(`studies/${study.id}.json`, { ...readable(study), versions: versions.map(readable) });
      for (const { version } of versions) {
        const { package: bytes } = await db
          .selectFrom("versions")
          .select("package")
          .where("study_id", "=", study.id)
          .where("version", "=", version)
          .executeTakeFirstOrThrow();
        yield { name: `studies/${study.id}/v${version}.json`, bytes };
      }
    }
    if (found.length < pageSizes.studies) return;
    last = found.at(-1)?.published_at ?? last;
  }
}

async function* drafts({ db }: Store, accountId: string): AsyncGenerator<TarFile> {
  const list = db
    .selectFrom("drafts")
    .select(["id", "title", "created_at", "sha256", "token_id"])
    .where("account_id", "=", accountId);
  let last = { created_at: -1, id: "" };
  for (let number = 1; ; number += 1) {
    const found = await list
      .where(sql<boolean>`(created_at, id) > (cast(${last.created_at} as bigint), ${last.id})`)
      .orderBy("created_at")
      .orderBy("id")
      .limit(pageSizes.drafts)
      .execute();
    if (found.length > 0) yield file(`drafts-${number}.json`, found.map(readable));
    for (const { id } of found) {
      const draft = await db.selectFrom("drafts").select("package").where("id", "=", id).executeTakeFirst();
      // It may have been published or deleted meanwhile.
      if (draft !== undefined) yield { name: `drafts/${id}.json`, bytes: draft.package };
    }
    if (found.length < pageSizes.drafts) return;
    last = found.at(-1) ?? last;
  }
}

/** Requests made with tokens. Records have no id, so those of the same millisecond are read together. */
async function* activity({ db }: Store, accountId: string): AsyncGenerator<TarFile> {
  const tokens = await db.selectFrom("tokens").select("id").where("account_id", "=", accountId).execute();
  let number = 0;
  for (const { id } of tokens) {
    const all = db
      .selectFrom("activity")
      .select(["token_id", "at", "action", "status", "resource"])
      .where("token_id", "=", id);
    for (let last = -1; ; ) {
      const found = await all.where("at", ">", last).orderBy("at").limit(pageSizes.log).execute();
      const end = found.at(-1)?.at;
      if (end === undefined) break;
      const whole =
        found.length < pageSizes.log
          ? found
          : await all.where("at", ">", last).where("at", "<=", end).execute();
      number += 1;
      yield file(`activity-${number}.json`, whole.map(readable));
      last = end;
    }
  }
}
