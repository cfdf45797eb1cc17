import type { Selectable } from "kysely";
import { studyLimits } from "../../contracts/studies/index.js";
import { words } from "../text/words.js";
import { type Counters, readCounters } from "./counters.js";
import type { FacetCounts } from "./facets.js";
import { type Filters, filterKey, matchesAll, type Order } from "./filters.js";
import { countOf } from "./rows.js";
import type { Database, Standing } from "./schema.js";
import type { Store } from "./store.js";
import { fewMatches } from "./word-sets.js";

export type StudyRow = Selectable<Database["studies"]> & { handle: string | null };

/** Studies with their author's handle. */
function studyRows(store: Store) {
  return store.db
    .selectFrom("studies")
    .innerJoin("accounts", "accounts.id", "studies.account_id")
    .selectAll("studies")
    .select("accounts.handle");
}

export interface StudyRows {
  rows: StudyRow[];
  total: number;
  /** Whether `total` is exact; otherwise there are more, beyond the last page that can be requested. */
  exact: boolean;
}

/**
 * Published studies: best match first if `q` has words, otherwise newest first.
 * @param known the counters, if already read
 */
export async function listStudies(
  store: Store,
  q: string,
  limit: number,
  offset: number,
  known?: Counters,
  { filters = {}, order = "relevance" }: { filters?: Filters; order?: Order } = {},
): Promise<StudyRows> {
  const { publication, generation, studies } = known ?? (await readCounters(store));
  const wanted = words(q);
  const plain =
    filterKey(filters) === "" && (order === "relevance" || (order === "new" && wanted.length === 0));
  if (wanted.length === 0 && plain) {
    const rows = await rowsOf(store, await newest(store, limit, offset));
    return { rows, total: studies, exact: true };
  }
  const by = order === "top" ? "upvotes" : order === "discussed" ? "comment_count" : null;
  if (wanted.length > 0 && !store.wordSets.has(wanted)) {
    const few = await store.dialect.search.few(store.db, wanted, fewMatches);
    if (few !== null) {
      const ranked = few.sort((a, b) => a.tier - b.tier || b.publishedAt - a.publishedAt);
      let keys = ranked.map(({ publishedAt }) => publishedAt);
      if (!plain) keys = await narrowed(store, keys, filters, order);
      return {
        rows: await rowsOf(store, keys.slice(offset, offset + limit)),
        total: keys.length,
        exact: true,
      };
    }
  }
  const { keys, total } = await store.wordSets.find(
    publication,
    wanted,
    { limit, offset },
    {
      filters,
      order:
        by !== null
          ? await store.orders.get(generation, by, () => store.dialect.search.ordered(store.db, by))
          : order === "new"
            ? "newest"
            : "best",
    },
  );
  return { rows: await rowsOf(store, keys), total: Math.min(total, mostCounted), exact: total < mostCounted };
}

export interface Facets extends FacetCounts {
  author: { value: string; count: number; name: string }[];
}

/** For each filter, how many studies with all words each value would leave; authors by handle. */
export async function countFacets(store: Store, q: string, filters: Filters): Promise<Facets> {
  const { publication } = await readCounters(store);
  const wanted = words(q);
  const few =
    wanted.length === 0 || store.wordSets.has(wanted)
      ? null
      : await store.dialect.search.few(store.db, wanted, fewMatches);
  const people = (column: "handle" | "id", values: readonly string[]) =>
    store.db.selectFrom("accounts").select(["id", "handle", "name"]).where(column, "in", values).execute();
  const named = filters.author === undefined ? [] : await people("handle", [filters.author]);
  const counts = await store.wordSets.facets(
    publication,
    wanted,
    few?.map(({ publishedAt }) => publishedAt) ?? null,
    { filters, author: named[0]?.id ?? null },
  );
  const ids = counts.author.map(({ value }) => value);
  const known = new Map(ids.length === 0 ? [] : (await people("id", ids)).map((one) => [one.id, one]));
  return {
    ...counts,
    author: counts.author.flatMap(({ value, count }) => {
      const { handle, name } = known.get(value) ?? { handle: null, name: "" };
      return handle === null ? [] : [{ value: handle, name, count }];
    }),
  };
}

/** Filters and sorts a few matches, which are already in order of relevance. */
async function narrowed(store: Store, keys: number[], filters: Filters, order: Order): Promise<number[]> {
  if (keys.length === 0) return keys;
  const rows = await store.db
    .selectFrom("studies")
    .select(["published_at", "upvotes", "comment_count"])
    .where("published_at", "in", keys)
    .where("listed", "=", 1)
    .where(matchesAll(filters))
    .execute();
  const byKey = new Map(rows.map((row) => [row.published_at, row]));
  const found = keys.flatMap((key) => byKey.get(key) ?? []);
  if (order !== "relevance") {
    const value = (row: (typeof rows)[number]) =>
      order === "top" ? row.upvotes : order === "discussed" ? row.comment_count : 0;
    found.sort((a, b) => value(b) - value(a) || b.published_at - a.published_at);
  }
  return found.map(({ published_at }) => published_at);
}

/** Totals are capped at the last page that can be requested. */
const mostCounted = studyLimits.offset + studyLimits.list_limit;

// Read the page's keys from the index alone, and rows only afterwards.
async function newest(store: Store, limit: number, offset: number): Promise<number[]> {
  const keys = await store.db
    .selectFrom("studies")
    .select("published_at")
    .where("listed", "=", 1)
    .orderBy("published_at", "desc")
    .limit(limit)
    .offset(offset)
    .execute();
  return keys.map(({ published_at }) => published_at);
}

export async function rowsOf(store: Store, keys: number[]): Promise<StudyRow[]> {
  if (keys.length === 0) return [];
  const rows = await studyRows(store)
    .where("studies.published_at", "in", keys)
    .where("listed", "=", 1)
    .execute();
  const byKey = new Map(rows.map((row) => [row.published_at, row]));
  return keys.flatMap((key) => byKey.get(key) ?? []);
}

/** Studies by upvotes of their current version, then newest first. */
export async function topStudies(store: Store, limit: number, offset: number): Promise<StudyRows> {
  const [{ studies }, rows] = await Promise.all([
    readCounters(store),
    studyRows(store)
      .where("listed", "=", 1)
      .orderBy("upvotes", "desc")
      .orderBy("published_at", "desc")
      .limit(limit)
      .offset(offset)
      .execute(),
  ]);
  return { rows, total: studies, exact: true };
}

/** Listed studies of an account, newest first. */
export async function authorStudies(
  store: Store,
  accountId: string,
  limit: number,
  offset: number,
): Promise<StudyRows> {
  const [total, rows] = await Promise.all([
    countOf(store.db.selectFrom("studies").where("account_id", "=", accountId).where("listed", "=", 1)),
    studyRows(store)
      .where("account_id", "=", accountId)
      .where("listed", "=", 1)
      .orderBy("published_at", "desc")
      .limit(limit)
      .offset(offset)
      .execute(),
  ]);
  return { rows, total, exact: true };
}

/** Ids and times of published studies, oldest publication first. */
export function listedIds(store: Store, limit: number, offset: number) {
  return store.db
    .selectFrom("studies")
    .select(["id", "published_at"])
    .where("listed", "=", 1)
    .orderBy("published_at")
    .limit(limit)
    .offset(offset)
    .execute();
}

export function findStudy(store: Store, id: string): Promise<StudyRow | undefined> {
  return studyRows(store).where("studies.id", "=", id).executeTakeFirst();
}

/** All studies that an account has published, newest first. */
export function ownStudies(store: Store, accountId: string): Promise<StudyRow[]> {
  return studyRows(store)
    .where("account_id", "=", accountId)
    .orderBy("published_at", "desc")
    .limit(500)
    .execute();
}

/** A version with its bytes; default: the newest. */
export function readVersion(store: Store, studyId: string, version?: number) {
  return store.db
    .selectFrom("versions")
    .selectAll()
    .where("study_id", "=", studyId)
    .$if(version !== undefined, (query) => query.where("version", "=", version as number))
    .orderBy("version", "desc")
    .limit(1)
    .executeTakeFirst();
}

export function listVersions(store: Store, studyId: string) {
  return store.db
    .selectFrom("versions")
    .select(["version", "published_at", "sha256", "standing"])
    .where("study_id", "=", studyId)
    .orderBy("version", "desc")
    .limit(100)
    .execute();
}

/** How, when and why a study or version was taken down. */
export interface Gone {
  standing: "withdrawn" | "removed";
  at: number;
  reason: string;
}

interface Stand {
  standing: Standing;
  standing_at: number | null;
  reason: string | null;
}

/** Whether a version was taken down, alone or with its study. */
function goneness(study: Stand, version: Stand): Gone | null {
  for (const { standing, standing_at, reason } of [study, version]) {
    if (standing !== "published") return { standing, at: standing_at ?? 0, reason: reason ?? "" };
  }
  return null;
}

/** Whether a version of a study was taken down; default: the current version. */
export async function goneOf(store: Store, study: StudyRow, version = study.version): Promise<Gone | null> {
  if (study.listed === 1 && version === study.version) return null;
  const row = await store.db
    .selectFrom("versions")
    .select(["standing", "standing_at", "reason"])
    .where("study_id", "=", study.id)
    .where("version", "=", version)
    .executeTakeFirst();
  return row === undefined ? null : goneness(study, row);
}

/** The version that a draft became. */
export function findBecome(store: Store, draftId: string) {
  return store.db
    .selectFrom("versions")
    .innerJoin("studies", "studies.id", "versions.study_id")
    .select(["versions.study_id", "versions.version", "studies.account_id", "studies.version as current"])
    .where("versions.draft_id", "=", draftId)
    .executeTakeFirst();
}

export interface Readable {
  visibility: "private_draft" | "published";
  id: string;
  version: number;
  author: string;
  handle: string | null;
  created_at: number;
  published_at: number | null;
  sha256: string;
  package: Buffer;
  gone: Gone | null;
}

/**
 * What a token may read under an id: a published study, a draft created with this token, or the version published from a
 * draft. Another token's draft and an unknown id are indistinguishable, including by timing.
 */
export async function readForToken(store: Store, id: string, tokenId: string): Promise<Readable | undefined> {
  const study = await readPublished(store, (query) =>
    query.where("studies.id", "=", id).whereRef("versions.version", "=", "studies.version"),
  );
  if (study !== undefined) return study;
  const draft = await store.db
    .selectFrom("drafts")
    .innerJoin("accounts", "accounts.id", "drafts.account_id")
    .select([
      "drafts.id",
      "drafts.created_at",
      "drafts.sha256",
      "drafts.package",
      "accounts.name as author",
      "accounts.handle",
    ])
    .where("drafts.id", "=", id)
    .where("drafts.token_id", "=", tokenId)
    .executeTakeFirst();
  if (draft === undefined) return readPublished(store, (query) => query.where("versions.draft_id", "=", id));
  return { ...draft, visibility: "private_draft", version: 0, published_at: null, gone: null };
}

/** One version of a study, even if it was taken down. */
export function readStudyVersion(store: Store, id: string, version: number): Promise<Readable | undefined> {
  return readPublished(store, (query) =>
    query.where("studies.id", "=", id).where("versions.version", "=", version),
  );
}

function publishedVersions(store: Store) {
  return store.db
    .selectFrom("versions")
    .innerJoin("studies", "studies.id", "versions.study_id")
    .innerJoin("accounts", "accounts.id", "studies.account_id")
    .select([
      "studies.id",
      "studies.author",
      "studies.standing as studyStanding",
      "studies.standing_at as studyAt",
      "studies.reason as studyReason",
      "accounts.handle",
      "versions.version",
      "versions.created_at",
      "versions.published_at",
      "versions.sha256",
      "versions.package",
      "versions.standing",
      "versions.standing_at",
      "versions.reason",
    ]);
}

type VersionQuery = ReturnType<typeof publishedVersions>;

async function readPublished(
  store: Store,
  which: (query: VersionQuery) => VersionQuery,
): Promise<Readable | undefined> {
  const row = await which(publishedVersions(store)).executeTakeFirst();
  if (row === undefined) return undefined;
  const study = { standing: row.studyStanding, standing_at: row.studyAt, reason: row.studyReason };
  return { ...row, visibility: "published", gone: goneness(study, row) };
}
