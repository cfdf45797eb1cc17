import type { Selectable } from "kysely";
import { words } from "../text/words.js";
import { type Tier, tiers } from "./dialect.js";
import type { Database } from "./schema.js";
import type { Store } from "./store.js";

export type StudyRow = Selectable<Database["studies"]>;

/** Up to so many matches are ranked in memory, after one query. */
const fewMatches = 500;

export interface StudyRows {
  rows: StudyRow[];
  total: number;
}

/** Published studies: best match first where `q` has words, otherwise newest publication first. */
export async function listStudies(
  store: Store,
  q: string,
  limit: number,
  offset: number,
): Promise<StudyRows> {
  const wanted = words(q);
  if (wanted.length === 0) {
    const [total, rows] = await Promise.all([
      counter(store, "studies"),
      rowsOf(store, await newest(store, limit, offset)),
    ]);
    return { rows, total };
  }
  const some = await store.dialect.search.some(store.db, wanted, fewMatches + 1);
  if (some.length <= fewMatches) {
    const ranked = some.sort((a, b) => a.tier - b.tier || b.publishedAt - a.publishedAt);
    const keys = ranked.slice(offset, offset + limit).map(({ publishedAt }) => publishedAt);
    return { rows: await rowsOf(store, keys), total: some.length };
  }
  return listMany(store, wanted, limit, offset);
}

/** Many matches: sorting them all would take long, so each tier is read in its own order. */
async function listMany(store: Store, wanted: string[], limit: number, offset: number): Promise<StudyRows> {
  const { db, dialect, counts } = store;
  const [publication, all] = await Promise.all([counter(store, "published_at"), counter(store, "studies")]);
  const countWithin = (tier: Tier | undefined) =>
    tier === undefined
      ? Promise.resolve(0)
      : counts.get(publication, `${tier} ${wanted.join(" ")}`, () => dialect.search.count(db, wanted, tier));
  const keys: number[] = [];
  // What is left to pass over.
  let skip = offset;
  for (const [place, tier] of tiers.entries()) {
    const sizes = async () => {
      const [better, within] = await Promise.all([countWithin(tiers[place - 1]), countWithin(tier)]);
      return { here: within - better, within, all };
    };
    // Only while something is to be passed over does it matter how many a tier has.
    const here = skip > 0 ? (await sizes()).here : Number.POSITIVE_INFINITY;
    if (here <= skip) {
      skip -= here;
      continue;
    }
    const page = { limit: limit - keys.length, offset: skip };
    keys.push(...(await dialect.search.find(db, wanted, tier, page, sizes)));
    skip = 0;
    if (keys.length === limit) break;
  }
  return { rows: await rowsOf(store, keys), total: await countWithin("body") };
}

async function counter(store: Store, name: string): Promise<number> {
  const found = await store.db
    .selectFrom("counters")
    .select("value")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return found.value;
}

// The page's keys come from the index alone; only then are rows read.
async function newest(store: Store, limit: number, offset: number): Promise<number[]> {
  const keys = await store.db
    .selectFrom("studies")
    .select("published_at")
    .orderBy("published_at", "desc")
    .limit(limit)
    .offset(offset)
    .execute();
  return keys.map(({ published_at }) => published_at);
}

async function rowsOf(store: Store, keys: number[]): Promise<StudyRow[]> {
  if (keys.length === 0) return [];
  const rows = await store.db.selectFrom("studies").selectAll().where("published_at", "in", keys).execute();
  const byKey = new Map(rows.map((row) => [row.published_at, row]));
  return keys.flatMap((key) => byKey.get(key) ?? []);
}

/** Studies by upvotes of their current version, then newest first. */
export async function topStudies(store: Store, limit: number, offset: number): Promise<StudyRows> {
  const [total, rows] = await Promise.all([
    counter(store, "studies"),
    store.db
      .selectFrom("studies")
      .selectAll()
      .orderBy("upvotes", "desc")
      .orderBy("published_at", "desc")
      .limit(limit)
      .offset(offset)
      .execute(),
  ]);
  return { rows, total };
}

export function findStudy(store: Store, id: string): Promise<StudyRow | undefined> {
  return store.db.selectFrom("studies").selectAll().where("id", "=", id).executeTakeFirst();
}

/** A study that an account has published: what a draft can become the next version of. */
export function ownStudies(store: Store, accountId: string): Promise<StudyRow[]> {
  return store.db
    .selectFrom("studies")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("published_at", "desc")
    .limit(500)
    .execute();
}

/** A version's bytes; the current version unless told otherwise. */
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
    .select(["version", "published_at", "sha256"])
    .where("study_id", "=", studyId)
    .orderBy("version", "desc")
    .limit(100)
    .execute();
}

export interface Readable {
  visibility: "private_draft" | "published";
  id: string;
  version: number;
  author: string;
  createdAt: number;
  publishedAt: number | null;
  sha256: string;
  bytes: Buffer;
}

/**
 * What a token may read under an id: a published study, or a draft that this very token created. Another token's
 * draft and an unknown id take the same two look-ups and give the same nothing.
 */
export async function readForToken(store: Store, id: string, tokenId: string): Promise<Readable | undefined> {
  const study = await store.db
    .selectFrom("studies")
    .innerJoin("versions", (join) =>
      join.onRef("versions.study_id", "=", "studies.id").onRef("versions.version", "=", "studies.version"),
    )
    .select([
      "studies.id",
      "studies.version",
      "studies.author",
      "versions.created_at",
      "versions.published_at",
      "versions.sha256",
      "versions.package",
    ])
    .where("studies.id", "=", id)
    .executeTakeFirst();
  if (study !== undefined) {
    return {
      visibility: "published",
      id: study.id,
      version: study.version,
      author: study.author,
      createdAt: study.created_at,
      publishedAt: study.published_at,
      sha256: study.sha256,
      bytes: study.package,
    };
  }
  const draft = await store.db
    .selectFrom("drafts")
    .innerJoin("accounts", "accounts.id", "drafts.account_id")
    .select(["drafts.id", "drafts.created_at", "drafts.sha256", "drafts.package", "accounts.name"])
    .where("drafts.id", "=", id)
    .where("drafts.token_id", "=", tokenId)
    .executeTakeFirst();
  if (draft === undefined) return undefined;
  return {
    visibility: "private_draft",
    id: draft.id,
    version: 0,
    author: draft.name,
    createdAt: draft.created_at,
    publishedAt: null,
    sha256: draft.sha256,
    bytes: draft.package,
  };
}
