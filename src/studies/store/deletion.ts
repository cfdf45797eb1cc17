import type { Kysely, Transaction } from "kysely";
import { siteLimits } from "../../contracts/studies/index.js";
import { UserError } from "../../contracts/user-error.js";
import { type Account, identitiesOf } from "./accounts.js";
import { type Actor, audit } from "./audit.js";
import { retiredHash } from "./handles.js";
import { countOf } from "./rows.js";
import type { Database } from "./schema.js";
import { bumpGeneration, lockAccount, readNow, type Store, withAccount } from "./store.js";

/** Author name shown for deleted accounts. */
export const deletedName = "deleted account";

/** Counts of an account's data, for the confirmation page. */
export async function whatLeaves({ db }: Store, accountId: string) {
  const own = (table: "studies" | "comments" | "votes" | "drafts" | "tokens") =>
    db.selectFrom(table).where("account_id", "=", accountId);
  return {
    studies: await countOf(own("studies")),
    comments: await countOf(own("comments")),
    votes: await countOf(own("votes")),
    drafts: await countOf(own("drafts")),
    tokens: await countOf(own("tokens")),
    reports: await countOf(
      db.selectFrom("reports").where("account_id", "=", accountId).where("closed_at", "is", null),
    ),
  };
}

/**
 * Deletes an account immediately and permanently: name, address, identities and handle, sessions, tokens and their
 * activity, drafts, notifications and the private feed. Studies, comments and votes stay, anonymized. The handle is never
 * assigned again; signing in again creates a new account.
 */
export async function deleteAccount(store: Store, accountId: string): Promise<void> {
  await withAccount(store, accountId, (trx, now) => erase(trx, now, accountId, { accountId }));
  store.forgetErased();
}

/**
 * The same by the operator, for people who cannot sign in; also works for suspended accounts.
 * @throws UserError if it is already deleted
 */
export async function deleteAccountOf(store: Store, { id }: Pick<Account, "id">): Promise<void> {
  await store.db.transaction().execute(async (trx) => {
    // Wait for concurrent transactions of the account.
    if ((await lockAccount(trx, id)) === undefined)
      throw new UserError(`The account ${id} is already deleted.`);
    await erase(trx, await readNow(store, trx), id, "operator");
  });
  store.forgetErased();
}

async function erase(
  trx: Transaction<Database>,
  now: number,
  accountId: string,
  actor: Actor,
): Promise<void> {
  const account = await trx
    .selectFrom("accounts")
    .selectAll()
    .where("id", "=", accountId)
    .executeTakeFirstOrThrow();
  await deleteTokens(trx, accountId);
  // It may have been approved under an address or login that it no longer has.
  const approvals = await trx
    .selectFrom("approvals")
    .select("identity")
    .where("account_id", "=", accountId)
    .execute();
  for (const table of ["drafts", "sessions", "approvals", "notifications", "appeals"] as const)
    await trx.deleteFrom(table).where("account_id", "=", accountId).execute();
  await trx
    .deleteFrom("reports")
    .where("account_id", "=", accountId)
    .where("closed_at", "is not", null)
    .execute();
  const windows = Object.keys(siteLimits).map((action) => `${action} account ${accountId}`);
  await trx.deleteFrom("limits").where("key", "in", windows).execute();
  for (const table of ["studies", "comments"] as const)
    await trx.updateTable(table).set({ author: deletedName }).where("account_id", "=", accountId).execute();
  // Approvals granted before its first sign-in were logged under an address or login.
  await trx
    .updateTable("audit")
    .set({ target: accountId })
    .where("target", "in", [...identitiesOf(account), ...approvals.map(({ identity }) => identity)])
    .execute();
  if (account.handle !== null) {
    await trx
      .insertInto("retired_handles")
      .values({ hash: retiredHash(account.handle), retired_at: now })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  await trx
    .updateTable("accounts")
    .set({
      issuer: "deleted",
      subject: accountId,
      name: deletedName,
      email: null,
      login: null,
      handle: null,
      suspension: null,
      feed_hash: null,
      recent_drafts: "[]",
      deleted_at: now,
    })
    .where("id", "=", accountId)
    .execute();
  await bumpGeneration(trx);
  await audit(trx, now, { actor, action: "account.delete", target: accountId });
}

async function deleteTokens(trx: Kysely<Database>, accountId: string): Promise<void> {
  const tokens = trx.selectFrom("tokens").select("id").where("account_id", "=", accountId);
  await trx.deleteFrom("activity").where("token_id", "in", tokens).execute();
  await trx.deleteFrom("replays").where("token_id", "in", tokens).execute();
  await trx.deleteFrom("tokens").where("account_id", "=", accountId).execute();
}
