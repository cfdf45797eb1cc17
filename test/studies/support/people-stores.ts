/** User actions in the store alone, each in one line; and what the store reports of them. */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../../src/contracts/studies/index.js";
import { signInAccount } from "../../../src/studies/store/accounts.js";
import { readAudit } from "../../../src/studies/store/audit.js";
import { addComment } from "../../../src/studies/store/discussion.js";
import { saveDraft } from "../../../src/studies/store/drafts.js";
import { openStore } from "../../../src/studies/store/open.js";
import { publishDraft } from "../../../src/studies/store/publish.js";
import type { Store } from "../../../src/studies/store/store.js";
import { sha256Hex } from "../../../src/studies/store/tokens.js";
import { testClock } from "./clock.js";
import { samplePackage } from "./packages.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-people-"));
export const clock = testClock();
export let store: Store;
let stores = 0;
const open = (name: string) => openStore(join(folder, name), { dialect: clock.dialect });

/** A store for each test of a file. */
export function aroundStores(): void {
  // Made once: each test begins with a copy of it.
  test.before(async () => (await open("empty.db")).close());
  test.before.each(async () => {
    stores += 1;
    copyFileSync(join(folder, "empty.db"), join(folder, `${stores}.db`));
    store = await open(`${stores}.db`);
  });
  test.after.each(() => store.close());
  test.after(() => rmSync(folder, { recursive: true, force: true }));
}

export const person = (subject: string, more: { email?: string; login?: string } = {}) =>
  signInAccount(store, {
    ...{ issuer: "https://id.example", subject, name: subject, email: null, login: null },
    ...more,
  });

export async function draft(accountId: string, change: Partial<StudyPackage> = {}) {
  clock.ms += 1000;
  const bytes = Buffer.from(JSON.stringify(samplePackage(change)));
  const credential = { tokenId: "none", accountId, scopes: [] };
  const saved = (await saveDraft(store, credential, bytes, change.title ?? "t", null)) as { id: string };
  return { accountId, draftId: saved.id, reviewedSha256: sha256Hex(bytes), replaces: null };
}

/** @returns the study's id */
export async function publish(
  accountId: string,
  change: Partial<StudyPackage> = {},
  replaces: string | null = null,
) {
  const published = await publishDraft(store, { ...(await draft(accountId, change)), replaces });
  return (published as { id: string }).id;
}

export async function say(accountId: string, study: string, parent: string | null = null, body = "said") {
  clock.ms += 1000;
  const added = await addComment(store, { accountId, name: accountId }, study, parent, body);
  assert.is(added.outcome, "added");
  return (added as { id: string }).id;
}

let lastLook = 0;
/** Actions since the last call: who, what, on what, with which words. */
export async function log() {
  const all = await readAudit(store, { limit: 1000 });
  const since = all
    .filter(({ at }) => at > lastLook)
    .map(({ actor, action, target, detail }) => [actor, action, target, detail]);
  lastLook = clock.ms;
  clock.ms += 1;
  return since.sort((a, b) => (String(a) < String(b) ? -1 : 1));
}

export async function told(accountId: string) {
  const rows = await store.db
    .selectFrom("notifications")
    .select(["kind", "study_id", "comment_id", "by_study_id", "actor_id"])
    .where("account_id", "=", accountId)
    .orderBy("at")
    .execute();
  return rows.map((row) => Object.values(row));
}

export const approvals = async () =>
  (
    await store.db
      .selectFrom("approvals")
      .select(["role", "identity", "account_id"])
      .orderBy("identity")
      .execute()
  ).map((row) => Object.values(row));
export const error = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (thrown: Error) => `${thrown.name}: ${thrown.message}`,
  );
