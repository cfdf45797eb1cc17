import { createHash, randomBytes, randomUUID } from "node:crypto";
import { crc32 } from "node:zlib";
import { type Scope, scopes, studyLimits } from "../../contracts/studies/index.js";
import { isApproved } from "./accounts.js";
import { audit } from "./audit.js";
import { changesRow, countOf } from "./rows.js";
import { readNow, type Store, withAccount } from "./store.js";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const tokenPattern = /^tpl_[0-9A-Za-z]{49}$/;

function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; text.length < length; rest /= 62n) text = digits[Number(rest % 62n)] + text;
  return text;
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), 6);
}

/** A new token: `tpl_`, 256 random bits as 43 base-62 digits, and the CRC32 of all that as 6. */
export function newToken(): string {
  const rest = `tpl_${base62(BigInt(`0x${randomBytes(32).toString("hex")}`), 43)}`;
  return rest + checksum(rest);
}

/** Whether a text has the format of a token, including its checksum; catches typos without a database query. */
export function isTokenShaped(text: string): boolean {
  return tokenPattern.test(text) && checksum(text.slice(0, -6)) === text.slice(-6);
}

export function sha256Hex(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

export interface TokenRequest {
  name: string;
  days: number;
  scopes: Scope[];
}

/**
 * Creates a token; its text is returned only here, and the database stores a hash. Null if 10 are already active or the
 * account is not approved.
 * @param options.approved whether to require approval, checked in the same transaction
 */
export function createToken(
  store: Store,
  accountId: string,
  request: TokenRequest,
  options: { approved?: boolean } = {},
) {
  const token = newToken();
  return withAccount(store, accountId, async (trx, now) => {
    if (options.approved && !(await isApproved({ db: trx }, { id: accountId }, "agent"))) return null;
    const active = trx
      .selectFrom("tokens")
      .where("account_id", "=", accountId)
      .where("revoked_at", "is", null)
      .where("expires_at", ">", now);
    if ((await countOf(active)) >= studyLimits.active_tokens) return null;
    const id = randomUUID();
    await trx
      .insertInto("tokens")
      .values({
        id,
        account_id: accountId,
        name: request.name,
        hash: sha256Hex(token),
        prefix: token.slice(0, 8),
        last4: token.slice(-4),
        scopes: scopes.filter((scope) => request.scopes.includes(scope)).join(" "),
        created_at: now,
        expires_at: now + request.days * 86_400_000,
        revoked_at: null,
        last_used_at: null,
        recent: "[]",
      })
      .execute();
    await audit(trx, now, { actor: { accountId }, action: "token.create", target: id });
    return { id, token };
  });
}

/** Most tokens listed, including revoked and expired ones. */
const mostTokens = 200;

/** An account's tokens: active ones first, so that none is ever cut off, then the newest. */
export async function listTokens(store: Store, accountId: string) {
  const now = await readNow(store, store.db);
  const all = store.db
    .selectFrom("tokens")
    .select([
      "id",
      "name",
      "prefix",
      "last4",
      "scopes",
      "created_at",
      "expires_at",
      "revoked_at",
      "last_used_at",
    ])
    .where("account_id", "=", accountId);
  const [active, newest] = await Promise.all([
    all.where("revoked_at", "is", null).where("expires_at", ">", now).execute(),
    all.orderBy("created_at", "desc").orderBy("id").limit(mostTokens).execute(),
  ]);
  active.sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? -1 : 1));
  const known = new Set(active.map(({ id }) => id));
  const rows = [...active, ...newest.filter(({ id }) => !known.has(id))].slice(0, mostTokens);
  return rows.map((row) => ({
    ...row,
    scopes: row.scopes.split(" ") as Scope[],
    state: row.revoked_at !== null ? "revoked" : row.expires_at <= now ? "expired" : "active",
  }));
}

export type TokenView = Awaited<ReturnType<typeof listTokens>>[number];

/** Revokes a token of an account, effective with the next request. Returns whether it was active. */
export function revokeToken(store: Store, accountId: string, id: string): Promise<boolean> {
  return withAccount(store, accountId, async (trx, now) => {
    const token = trx.updateTable("tokens").set({ revoked_at: now }).where("id", "=", id);
    const revoked = await changesRow(
      token.where("account_id", "=", accountId).where("revoked_at", "is", null),
    );
    if (revoked) await audit(trx, now, { actor: { accountId }, action: "token.revoke", target: id });
    return revoked;
  });
}
