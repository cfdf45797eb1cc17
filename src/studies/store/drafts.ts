import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import { studyLimits } from "../../contracts/studies/index.js";
import { displayable } from "../text/display.js";
import type { Credential } from "./admission.js";
import { audit } from "./audit.js";
import { forgetDraft, notify } from "./notifications.js";
import { changesRow, isThere } from "./rows.js";
import type { Database } from "./schema.js";
import { readNow, type Store, withAccount } from "./store.js";
import { sha256Hex } from "./tokens.js";
import { admitted, hasRoom, type Window, windowState } from "./window.js";

export const draftWindow: Window = {
  column: "recent_drafts",
  most: studyLimits.drafts,
  lengthMs: studyLimits.draft_window_ms,
};

export type SavedDraft =
  | { outcome: "saved" | "replayed"; id: string; sha256: string }
  | { outcome: "exhausted"; retryAfter: number }
  | { outcome: "key_reused" }
  /** The key's draft was deleted by its owner. */
  | { outcome: "deleted" };

/**
 * Saves a package's bytes as a private draft of a token.
 * @param key idempotency key: within 24 hours, the same key and bytes return the same draft
 */
export function saveDraft(
  store: Store,
  { tokenId, accountId }: Credential,
  bytes: Buffer,
  title: string,
  key: string | null,
): Promise<SavedDraft> {
  const sha256 = sha256Hex(bytes);
  const { dialect } = store;
  return withAccount(store, accountId, async (trx, now): Promise<SavedDraft> => {
    if (key !== null) {
      const replay = await trx
        .selectFrom("replays")
        .select(["body_sha256", "answer", "created_at"])
        .where("token_id", "=", tokenId)
        .where("key", "=", key)
        .executeTakeFirst();
      if (replay !== undefined && replay.created_at > now - studyLimits.idempotency_ms) {
        if (replay.body_sha256 !== sha256) return { outcome: "key_reused" };
        if (!(await stillExists(trx, replay.answer))) return { outcome: "deleted" };
        return { outcome: "replayed", id: replay.answer, sha256 };
      }
    }
    const counted = trx
      .updateTable("accounts")
      .where("id", "=", accountId)
      .where(hasRoom(dialect, draftWindow));
    if (!(await changesRow(counted.set({ recent_drafts: admitted(dialect, draftWindow) })))) {
      const account = await trx
        .selectFrom("accounts")
        .select(["recent_drafts", dialect.now.as("now")])
        .where("id", "=", accountId)
        .executeTakeFirstOrThrow();
      const { resetSeconds } = windowState(draftWindow, account.recent_drafts, account.now);
      return { outcome: "exhausted", retryAfter: Math.max(1, resetSeconds) };
    }
    const id = randomUUID();
    await trx
      .insertInto("drafts")
      .values({
        id,
        account_id: accountId,
        token_id: tokenId,
        title: displayable(title),
        created_at: now,
        sha256,
        package: bytes,
      })
      .execute();
    await notify(trx, now, accountId, { kind: "draft", draft_id: id });
    if (key !== null) {
      const answer = { body_sha256: sha256, answer: id, created_at: now };
      await trx
        .insertInto("replays")
        .values({ token_id: tokenId, key, ...answer })
        .onConflict((conflict) => conflict.columns(["token_id", "key"]).doUpdateSet(answer))
        .execute();
    }
    return { outcome: "saved", id, sha256 };
  });
}

/** Whether a draft still exists, as a draft or as a published version. */
async function stillExists(trx: Kysely<Database>, draftId: string): Promise<boolean> {
  return (
    (await isThere(trx.selectFrom("drafts").select("id").where("id", "=", draftId))) ||
    isThere(trx.selectFrom("versions").select("version").where("draft_id", "=", draftId))
  );
}

/** An account's drafts, newest first. */
export function listDrafts(store: Store, accountId: string) {
  return store.db
    .selectFrom("drafts")
    .leftJoin("tokens", "tokens.id", "drafts.token_id")
    .select(["drafts.id", "drafts.title", "drafts.created_at", "drafts.sha256", "tokens.name as tokenName"])
    .where("drafts.account_id", "=", accountId)
    .orderBy("drafts.created_at", "desc")
    .limit(500)
    .execute();
}

/** A draft, for its owner on the website. */
export function readOwnDraft(store: Store, accountId: string, id: string) {
  return store.db
    .selectFrom("drafts")
    .selectAll()
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .executeTakeFirst();
}

/** Deletes a draft of an account. Returns whether it existed. */
export async function deleteDraft(store: Store, accountId: string, id: string): Promise<boolean> {
  const deleted = await store.db.transaction().execute(async (trx) => {
    const { numDeletedRows } = await trx
      .deleteFrom("drafts")
      .where("id", "=", id)
      .where("account_id", "=", accountId)
      .executeTakeFirst();
    if (numDeletedRows !== 1n) return false;
    await forgetDraft(trx, accountId, id);
    await audit(trx, await readNow(store, trx), { actor: { accountId }, action: "draft.delete", target: id });
    return true;
  });
  if (deleted) store.forgetErased();
  return deleted;
}
