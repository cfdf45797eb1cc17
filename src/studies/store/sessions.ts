import { randomBytes, randomUUID } from "node:crypto";
import { studyLimits } from "../../contracts/studies/index.js";
import { displayable, firstCharacters } from "../text/display.js";
import type { Account } from "./accounts.js";
import { audit } from "./audit.js";
import { faultOf } from "./fault.js";
import { readNow, type Store, withAccount } from "./store.js";
import { sha256Hex } from "./tokens.js";
import { clockToleranceMs } from "./window.js";

export interface Session {
  id: string;
  account: Account;
  isModerator: boolean;
  /** Number of unread notifications. */
  unread: number;
}

const sessionMs = studyLimits.session_days * 86_400_000;

/** Starts a session. Returns its secret for the cookie; the database stores a hash. */
export async function startSession(store: Store, accountId: string, agent: string): Promise<string> {
  const secret = randomBytes(32).toString("base64url");
  await withAccount(store, accountId, async (trx, now) => {
    const id = randomUUID();
    await trx
      .insertInto("sessions")
      .values({
        id,
        hash: sha256Hex(secret),
        account_id: accountId,
        created_at: now,
        seen_at: now,
        expires_at: now + sessionMs,
        agent: firstCharacters(displayable(agent), 200),
      })
      .execute();
    await audit(trx, now, { actor: { accountId }, action: "sign-in", target: id });
  });
  return secret;
}

export async function findSession(store: Store, secret: string): Promise<Session | null> {
  const now = await readNow(store, store.db);
  const row = await store.db
    .selectFrom("sessions")
    .innerJoin("accounts", "accounts.id", "sessions.account_id")
    .selectAll("accounts")
    .select((eb) => [
      "sessions.id as sessionId",
      "sessions.seen_at",
      "sessions.expires_at",
      eb
        .selectFrom("approvals")
        .select((inner) => inner.fn.countAll<number>().as("count"))
        .whereRef("approvals.account_id", "=", "accounts.id")
        .where("approvals.role", "=", "moderator")
        .as("moderator"),
      eb
        .selectFrom("notifications")
        .select((inner) => inner.fn.countAll<number>().as("count"))
        .whereRef("notifications.account_id", "=", "accounts.id")
        .where("notifications.read_at", "is", null)
        .as("unread"),
    ])
    .where("sessions.hash", "=", sha256Hex(secret))
    .where("sessions.expires_at", ">", now)
    .where("accounts.suspended_at", "is", null)
    .where("accounts.deleted_at", "is", null)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { sessionId, seen_at, expires_at, moderator, unread, ...account } = row;
  // If the clock was set back, a session would be last seen in the future and live too long.
  const latest = now + sessionMs;
  const ahead = expires_at > latest + clockToleranceMs;
  if (ahead || Math.abs(now - seen_at) > 60_000) {
    // If the database is read-only, as on a full disk, pages can still be read.
    await store.quick
      .updateTable("sessions")
      .set({ seen_at: now, ...(ahead ? { expires_at: latest } : {}) })
      .where("id", "=", sessionId)
      .execute()
      .catch((error) => {
        if (faultOf(error)?.ofDatabase !== true) throw error;
      });
  }
  return { id: sessionId, account, isModerator: Number(moderator) > 0, unread: Number(unread) };
}

/** An account's newest 200 active sessions, last seen first. */
export async function listSessions(store: Store, accountId: string) {
  return store.db
    .selectFrom("sessions")
    .select(["id", "created_at", "seen_at", "expires_at", "agent"])
    .where("account_id", "=", accountId)
    .where("expires_at", ">", store.dialect.now)
    .orderBy("seen_at", "desc")
    .limit(200)
    .execute();
}

/** Ends a session of an account, or all of them, or all but one. */
export async function endSessions(
  store: Store,
  accountId: string,
  which: { id: string } | { except: string },
): Promise<void> {
  await withAccount(store, accountId, async (trx, now) => {
    const all = trx.deleteFrom("sessions").where("account_id", "=", accountId);
    const ended = await ("id" in which ? all.where("id", "=", which.id) : all.where("id", "!=", which.except))
      .returning("id")
      .execute();
    for (const { id } of ended) {
      await audit(trx, now, { actor: { accountId }, action: "session.end", target: id });
    }
  });
}
