import { type Scope, studyLimits } from "../../contracts/studies/index.js";
import { type Counters, counterColumns } from "./counters.js";
import type { Store } from "./store.js";
import { admitted, hasRoom, type Window, type WindowState, windowState } from "./window.js";

export const requestWindow: Window = {
  column: "recent",
  most: studyLimits.requests,
  lengthMs: studyLimits.request_window_ms,
};

export interface Credential {
  tokenId: string;
  accountId: string;
  scopes: Scope[];
}

export type Admission =
  | { outcome: "admitted"; credential: Credential; window: WindowState; counters: Counters }
  | { outcome: "exhausted"; credential: Credential; window: WindowState }
  | { outcome: "invalid" | "expired" | "revoked" };

/**
 * Checks a token and counts the request in one statement, so that revocation, expiry and quota apply to the next request
 * in any process.
 * @param hash SHA-256 of the token, in hex
 */
export async function admit(store: Store, hash: string): Promise<Admission> {
  const { dialect, quick } = store;
  const row = await quick
    .updateTable("tokens")
    .set({ recent: admitted(dialect, requestWindow), last_used_at: dialect.now })
    .where("hash", "=", hash)
    .where("revoked_at", "is", null)
    .where("expires_at", ">", dialect.now)
    .where(hasRoom(dialect, requestWindow))
    .returning(["id", "account_id", "scopes", "recent", dialect.now.as("now"), ...counterColumns])
    .executeTakeFirst();
  if (row !== undefined) {
    return {
      outcome: "admitted",
      credential: credentialOf(row),
      window: windowState(requestWindow, row.recent, row.now),
      counters: { generation: row.generation, publication: row.publication, studies: row.studies },
    };
  }
  const found = await quick
    .selectFrom("tokens")
    .select(["id", "account_id", "scopes", "recent", "revoked_at", "expires_at", dialect.now.as("now")])
    .where("hash", "=", hash)
    .executeTakeFirst();
  if (found === undefined) return { outcome: "invalid" };
  if (found.revoked_at !== null) return { outcome: "revoked" };
  if (found.expires_at <= found.now) return { outcome: "expired" };
  const window = windowState(requestWindow, found.recent, found.now);
  // An entry may have expired since the update; the request is still refused, with a wait of at least a second.
  return {
    outcome: "exhausted",
    credential: credentialOf(found),
    window: { ...window, remaining: 0, resetSeconds: Math.max(1, window.resetSeconds) },
  };
}

function credentialOf(row: { id: string; account_id: string; scopes: string }): Credential {
  return { tokenId: row.id, accountId: row.account_id, scopes: row.scopes.split(" ") as Scope[] };
}
