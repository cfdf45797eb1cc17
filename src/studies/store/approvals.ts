import type { Kysely } from "kysely";
import { UserError } from "../../contracts/user-error.js";
import { accountsNamed, ambiguous, normalized, type Role } from "./accounts.js";
import { type Actor, asOperator, audit } from "./audit.js";
import type { Database } from "./schema.js";
import { holdAccount, type Store } from "./store.js";

/**
 * Puts somebody on a list: by address, `github:login`, `issuer#subject`, `@handle`, or an account's id. An address or
 * a login can be registered again by somebody else, so it counts for one account: the one that shows it now, or the
 * first that will.
 */
export async function approve(
  store: Store,
  role: Role,
  identity: string,
  actor: Actor = "operator",
): Promise<void> {
  await asOperator(store, async (trx, now) => {
    const [account, ...others] = await accountsNamed(trx, identity);
    const exact = /^@|^[0-9a-f-]{36}$/i.test(identity);
    if (account === undefined && exact) throw new UserError(`There is no account ${identity}.`);
    const row = {
      role,
      identity: exact ? (account?.id as string) : normalized(identity),
      created_at: now,
      account_id: account?.id ?? null,
    };
    const { numInsertedOrUpdatedRows } = await trx
      .insertInto("approvals")
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    // Approved before: it stays whose it was.
    if (numInsertedOrUpdatedRows !== 1n) return;
    if (account !== undefined && others.length > 0) throw ambiguous(identity, [account, ...others]);
    await audit(trx, now, {
      actor,
      action: "approval.add",
      target: account?.id ?? row.identity,
      detail: role,
    });
  });
}

/**
 * Takes somebody off a list, effective at once: whoever may no longer have tokens loses those that exist.
 * @returns whether anybody was taken off
 */
export function disapprove(
  store: Store,
  role: Role,
  identity: string,
  actor: Actor = "operator",
): Promise<boolean> {
  return asOperator(store, async (trx, now) => {
    const named = normalized(identity);
    const exact = /^@|#|^[0-9a-f-]{36}$/i.test(identity);
    const accounts = exact ? (await accountsNamed(trx, identity)).map(({ id }) => id) : [];
    const taken = await trx
      .deleteFrom("approvals")
      .where("role", "=", role)
      .where((eb) =>
        eb.or([
          eb("identity", "=", named),
          ...(accounts.length === 0 ? [] : [eb("account_id", "in", accounts)]),
        ]),
      )
      .returning(["identity", "account_id"])
      .execute();
    const people = [...new Set(taken.flatMap(({ account_id }) => account_id ?? []))];
    for (const id of people) {
      // Under whatever other name it was approved, too; and whoever creates a token just now is waited for.
      await trx.deleteFrom("approvals").where("role", "=", role).where("account_id", "=", id).execute();
      await holdAccount(trx, id);
      if (role === "agent") await revokeAll(trx, id, now);
    }
    for (const { identity: name, account_id } of taken) {
      await audit(trx, now, { actor, action: "approval.remove", target: account_id ?? name, detail: role });
    }
    return taken.length > 0;
  });
}

/** Revokes every token of an account that its transaction holds. */
export async function revokeAll(trx: Kysely<Database>, accountId: string, now: number): Promise<void> {
  await trx
    .updateTable("tokens")
    .set({ revoked_at: now })
    .where("account_id", "=", accountId)
    .where("revoked_at", "is", null)
    .execute();
}
