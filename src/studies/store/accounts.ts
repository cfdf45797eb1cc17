import { randomUUID } from "node:crypto";
import { type ExpressionBuilder, type Kysely, type Selectable, sql } from "kysely";
import { UserError } from "../../contracts/user-error.js";
import { isBlank } from "../text/blank.js";
import { displayable, firstCharacters } from "../text/display.js";
import { foldAscii } from "../text/fold.js";
import { freeHandle, isRetired } from "./handles.js";
import { isThere } from "./rows.js";
import type { Database } from "./schema.js";
import type { Store } from "./store.js";

export type Account = Selectable<Database["accounts"]>;
export type Role = Database["approvals"]["role"];

/** Roles: create tokens, publish, moderate. */
export const roles: readonly Role[] = ["agent", "publisher", "moderator"];

/** Identity returned by a sign-in provider. */
export interface Identity {
  issuer: string;
  subject: string;
  name: string;
  email: string | null;
  login: string | null;
}

/**
 * The account of an identity, created on first sign-in, with name and address updated. The handle never changes. Pending
 * approvals for its address or login are bound to it.
 */
export async function signInAccount(store: Store, identity: Identity): Promise<Account> {
  const name = displayable(identity.name).trim();
  const known = {
    name: firstCharacters(isBlank(name) ? "Unnamed" : name, 100),
    email: addressOf(identity.email),
    login: identity.login === null ? null : foldAscii(identity.login),
  };
  for (let attempt = 1; ; attempt += 1) {
    const handle = await freeHandle(store.db, identity.login ?? identity.name, (free) =>
      isRetired(store.db, free),
    );
    try {
      const account = await store.db
        .insertInto("accounts")
        .values({
          id: randomUUID(),
          issuer: identity.issuer,
          subject: identity.subject,
          ...known,
          handle,
          created_at: store.dialect.now,
          recent_drafts: "[]",
          turn: 0,
        })
        .onConflict((conflict) => conflict.columns(["issuer", "subject"]).doUpdateSet(known))
        .returningAll()
        .executeTakeFirstOrThrow();
      await bindApprovals(store, account);
      return account;
    } catch (error) {
      // Someone took the handle between the check and the insert.
      if (attempt >= 10 || !/accounts[._]handle/.test((error as Error).message)) throw error;
    }
  }
}

/** Binds pending approvals to an account, and replaces their names in the audit log by the account's id. */
async function bindApprovals(store: Store, account: Account): Promise<void> {
  await store.db.transaction().execute(async (trx) => {
    const bound = await trx
      .updateTable("approvals")
      .set({ account_id: account.id })
      .where("account_id", "is", null)
      .where("identity", "in", identitiesOf(account))
      .returning("identity")
      .execute();
    if (bound.length === 0) return;
    await trx
      .updateTable("audit")
      .set({ target: account.id })
      .where(
        "target",
        "in",
        bound.map(({ identity }) => identity),
      )
      .execute();
  });
}

/** A normalized address. Anything like `github:…` or `issuer#subject` is rejected, since it would pass for another identity. */
function addressOf(email: string | null): string | null {
  return email !== null && /^[^\s@:#]+@[^\s@:#]+$/.test(email) ? foldAscii(email) : null;
}

/** The names by which an account can be approved. */
export function identitiesOf(account: Account): string[] {
  return [
    account.id,
    `${account.issuer}#${account.subject}`,
    ...(account.email === null ? [] : [account.email]),
    ...(account.login === null ? [] : [`github:${account.login}`]),
  ];
}

/** Whether an account may create tokens ("agent"), publish ("publisher") or moderate. */
export function isApproved(
  { db }: Pick<Store, "db">,
  account: Pick<Account, "id">,
  role: Role,
): Promise<boolean> {
  const approvals = db.selectFrom("approvals").select("identity").where("role", "=", role);
  return isThere(approvals.where("account_id", "=", account.id).limit(1));
}

/** The accounts that currently have a name: one by id, handle or provider's subject; any number by address or login. */
export async function accountsNamed(db: Kysely<Database>, name: string): Promise<Account[]> {
  const identity = normalized(name);
  return (
    db
      .selectFrom("accounts")
      .selectAll()
      .where((eb) => isNamed(eb, identity))
      .where("deleted_at", "is", null)
      .orderBy("created_at")
      // A stable order for accounts created in the same millisecond.
      .orderBy("handle")
      .orderBy("id")
      .execute()
  );
}

function isNamed(eb: ExpressionBuilder<Database, "accounts">, identity: string) {
  if (identity.startsWith("@")) return eb("handle", "=", identity.slice(1));
  if (identity.startsWith("github:")) return eb("login", "=", identity.slice("github:".length));
  if (identity.includes("#")) return eb(sql<string>`issuer || '#' || subject`, "=", identity);
  return eb.or([eb("id", "=", identity), eb("email", "=", identity)]);
}

/** The only account with a name. @throws UserError if there are none or several */
export async function accountNamed(db: Kysely<Database>, name: string): Promise<Account> {
  const [account, ...others] = await accountsNamed(db, name);
  if (account === undefined) throw new UserError(`No account matches ${name}.`);
  if (others.length > 0) throw ambiguous(name, [account, ...others]);
  return account;
}

/** The error for a name that several accounts share. */
export function ambiguous(name: string, accounts: Account[]): UserError {
  const list = accounts.map(({ handle, issuer, subject }) => `@${handle} (${issuer}#${subject})`).join(", ");
  return new UserError(`${accounts.length} accounts match ${name}: ${list}. Use one of the @handles.`);
}

export function normalized(identity: string): string {
  return identity.includes("#") ? identity : foldAscii(identity);
}
