import { randomBytes, randomUUID } from "node:crypto";
import { studyLimits } from "../../contracts/studies/index.js";
import { displayable, firstCharacters } from "../text/display.js";
import type { Account } from "./accounts.js";
import { readNow, type Store } from "./store.js";
import { sha256Hex } from "./tokens.js";

export interface Session {
  id: string;
  account: Account;
}

/** Starts a session; its secret goes into a cookie, the database keeps a hash. */
export async function startSession(store: Store, accountId: string, agent: string): Promise<string> {
  const secret = randomBytes(32).toString("base64url");
  const now = await readNow(store, store.db);
  await store.db
    .insertInto("sessions")
    .values({
      id: randomUUID(),
      hash: sha256Hex(secret),
      account_id: accountId,
      created_at: now,
      seen_at: now,
      expires_at: now + studyLimits.session_days * 86_400_000,
      agent: firstCharacters(displayable(agent), 200),
    })
    .execute();
  return secret;
}

export async function findSession(store: Store, secret: string): Promise<Session | null> {
  const now = await readNow(store, store.db);
  const row = await store.db
    .selectFrom("sessions")
    .innerJoin("accounts", "accounts.id", "sessions.account_id")
    .selectAll("accounts")
    .select(["sessions.id as sessionId", "sessions.seen_at"])
    .where("sessions.hash", "=", sha256Hex(secret))
    .where("sessions.expires_at", ">", now)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { sessionId, seen_at, ...account } = row;
  if (seen_at < now - 60_000) {
    await store.quick.updateTable("sessions").set({ seen_at: now }).where("id", "=", sessionId).execute();
  }
  return { id: sessionId, account };
}

/** An account's sessions that have not ended, the last seen first. */
export async function listSessions(store: Store, accountId: string) {
  return store.db
    .selectFrom("sessions")
    .select(["id", "created_at", "seen_at", "expires_at", "agent"])
    .where("account_id", "=", accountId)
    .where("expires_at", ">", store.dialect.now)
    .orderBy("seen_at", "desc")
    .execute();
}

/** Ends a session of an account, or all of them, or all but one. */
export async function endSessions(
  store: Store,
  accountId: string,
  which: { id: string } | { except: string },
): Promise<void> {
  let query = store.db.deleteFrom("sessions").where("account_id", "=", accountId);
  query = "id" in which ? query.where("id", "=", which.id) : query.where("id", "!=", which.except);
  await query.execute();
}
