import { type SelectQueryBuilder, sql } from "kysely";
import type { Database } from "../store/schema.js";
import { listSessions } from "../store/sessions.js";
import type { Store } from "../store/store.js";
import { listTokens } from "../store/tokens.js";
import type { TarFile } from "./tar.js";

/** Rows per file; comments have up to 40 kB each. */
const pageSizes = { comments: 100, votes: 1000, reports: 200, appeals: 200, notifications: 1000 } as const;

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
  const { db } = store;
  const own = <T extends "comments" | "votes" | "reports" | "appeals" | "notifications">(
    table: T,
    columns: (keyof Database[T] & string)[],
    keys: (keyof Database[T] & string)[] = ["id" as keyof Database[T] & string],
  ) => {
    // All these tables have the columns that are used here.
    const rows = db.selectFrom(table as "comments").select(columns as "id"[]);
    return listFiles(
      table,
      pages(rows.where("account_id", "=", accountId), keys as "id"[], pageSizes[table]),
    );
  };
  yield { name: "README.txt", bytes: Buffer.from(readme) };
  yield file("account.json", await accountOf(store, accountId));
  yield* studies(store, accountId);
  yield* drafts(store, accountId);
  yield* own("comments", [
    "id",
    "study_id",
    "parent_id",
    "created_at",
    "edited_at",
    "hidden",
    "reason",
    "body",
  ]);
  yield* own("votes", ["study_id", "version", "created_at"], ["study_id", "version"]);
  yield* own("reports", ["id", "study_id", "comment_id", "created_at", "reason", "closed_at", "outcome"]);
  yield* own("appeals", ["id", "study_id", "created_at", "body", "closed_at", "outcome"]);
  yield* own(
    "notifications",
    ["id", "at", "kind", "study_id", "comment_id", "by_study_id", "draft_id", "read_at"],
    ["at", "id"],
  );
  const actions = db.selectFrom("audit").select(["id", "at", "action", "target", "detail"]);
  yield* listFiles("audit", pages(actions.where("actor", "=", accountId), ["at", "id"], 1000));
  yield* activity(store, accountId);
}

/** The rows of a query in pages of up to `size`, in the order of its `keys`, each page read after the last row before it. */
async function* pages<T extends keyof Database, O extends object>(
  query: SelectQueryBuilder<Database, T, O>,
  keys: (keyof O & string)[],
  size: number,
): AsyncGenerator<O[]> {
  const columns = sql.join(keys.map((key) => sql.ref(key)));
  const ordered = query.orderBy(columns).limit(size);
  const parameter = (value: unknown) =>
    typeof value === "number" ? sql`cast(${value} as bigint)` : sql`${value}`;
  for (let last: O | undefined; ; ) {
    const from = last;
    const next =
      from === undefined
        ? ordered
        : ordered.where(sql<boolean>`(${columns}) > (${sql.join(keys.map((key) => parameter(from[key])))})`);
    const rows = await next.execute();
    yield rows as O[];
    if (rows.length < size) return;
    last = rows.at(-1) as O;
  }
}

/** A list as files, one per page; at least one. */
async function* listFiles(name: string, rows: AsyncIterable<object[]>): AsyncGenerator<TarFile> {
  let number = 0;
  for await (const page of rows) {
    number += 1;
    if (page.length > 0 || number === 1) yield file(`${name}-${number}.json`, page.map(readable));
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
  const all = db
    .selectFrom("studies")
    .select(["id", "title", "version", "created_at", "published_at", "upvotes", "standing", "reason"])
    .where("account_id", "=", accountId);
  for await (const found of pages(all, ["published_at"], 50)) {
    for (const study of found) {
      const stored = db.selectFrom("versions").where("study_id", "=", study.id);
      const versions = await stored
        .select(["version", "created_at", "published_at", "sha256", "standing", "standing_at", "reason"])
        .orderBy("version")
        .execute();
      yield file(`studies/${study.id}.json`, { ...readable(study), versions: versions.map(readable) });
      for (const { version } of versions) {
        const one = stored.select("package").where("version", "=", version);
        const { package: bytes } = await one.executeTakeFirstOrThrow();
        yield { name: `studies/${study.id}/v${version}.json`, bytes };
      }
    }
  }
}

async function* drafts({ db }: Store, accountId: string): AsyncGenerator<TarFile> {
  const all = db.selectFrom("drafts").select(["id", "title", "created_at", "sha256", "token_id"]);
  let number = 0;
  for await (const found of pages(all.where("account_id", "=", accountId), ["created_at", "id"], 20)) {
    number += 1;
    if (found.length > 0) yield file(`drafts-${number}.json`, found.map(readable));
    for (const { id } of found) {
      const draft = await db.selectFrom("drafts").select("package").where("id", "=", id).executeTakeFirst();
      // It may have been published or deleted meanwhile.
      if (draft !== undefined) yield { name: `drafts/${id}.json`, bytes: draft.package };
    }
  }
}

const mostRows = 1000;

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
      const found = await all.where("at", ">", last).orderBy("at").limit(mostRows).execute();
      const end = found.at(-1)?.at;
      if (end === undefined) break;
      const whole =
        found.length < mostRows ? found : await all.where("at", ">", last).where("at", "<=", end).execute();
      number += 1;
      yield file(`activity-${number}.json`, whole.map(readable));
      last = end;
    }
  }
}
