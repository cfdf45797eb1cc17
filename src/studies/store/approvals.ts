import type { Kysely } from "kysely";
import { UserError } from "../../contracts/user-error.js";
import { accountsNamed, ambiguous, normalized, type Role } from "./accounts.js";
import { type Actor, asOperator, audit } from "./audit.js";
import type { Database } from "./schema.js";
import { lockAccount, type Store } from "./store.js";

/**
 * Grants a role by address, `github:login`, `issuer#subject`, `@handle` or account id. Someone else may register an
 * address or login later, so the approval is bound to one account: the one that has it now, or the first that will.
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
    if (account === undefined && exact) throw new UserError(`No account matches ${identity}.`);
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
    // Already approved: the binding does not change.
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
 * Revokes a role, effective immediately: without the agent role, existing tokens are revoked.
 * @returns whether anyone had the role
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
      // Also remove approvals under other names, and wait for a token being created right now.
      await trx.deleteFrom("approvals").where("role", "=", role).where("account_id", "=", id).execute();
      await lockAccount(trx, id);
      if (role === "agent") await revokeAll(trx, id, now);
    }
    for (const { identity: name, account_id } of taken) {
      await audit(trx, now, { actor, action: "approval.remove", target: account_id ?? name, detail: role });
    }
    return taken.length > 0;
  });
}

/** Revokes every token of an account; the transaction must hold the account. */
export async function revokeAll(trx: Kysely<Database>, accountId: string, now: number): Promise<void> {
  await trx
    .updateTable("tokens")
    .set({ revoked_at: now })
    .where("account_id", "=", accountId)
    .where("revoked_at", "is", null)
    .execute();
}
