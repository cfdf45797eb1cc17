import { randomUUID } from "node:crypto";
import type { Selectable } from "kysely";
import { displayable, firstCharacters } from "../text/display.js";
import type { Database } from "./schema.js";
import type { Store } from "./store.js";

export type Account = Selectable<Database["accounts"]>;
export type Role = Database["approvals"]["role"];

/** What a sign-in tells about a person. */
export interface Identity {
  issuer: string;
  subject: string;
  name: string;
  email: string | null;
  login: string | null;
}

/** The account of an identity, created on its first sign-in, its name and address brought up to date. */
export async function signInAccount(store: Store, identity: Identity): Promise<Account> {
  const known = {
    name: firstCharacters(displayable(identity.name).trim() || "Unnamed", 100),
    email: addressOf(identity.email),
    login: identity.login?.toLowerCase() ?? null,
  };
  return store.db
    .insertInto("accounts")
    .values({
      id: randomUUID(),
      issuer: identity.issuer,
      subject: identity.subject,
      ...known,
      created_at: store.dialect.now,
      recent_drafts: "[]",
      turn: 0,
    })
    .onConflict((conflict) => conflict.columns(["issuer", "subject"]).doUpdateSet(known))
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** An address as approvals name it. What is none (`github:…`, `issuer#subject`) would pass for another identity. */
function addressOf(email: string | null): string | null {
  return email !== null && /^[^\s@:#]+@[^\s@:#]+$/.test(email) ? email.toLowerCase() : null;
}

/** The names under which an account can be approved. */
export function identitiesOf(account: Account): string[] {
  return [
    account.id,
    `${account.issuer}#${account.subject}`,
    ...(account.email === null ? [] : [account.email]),
    ...(account.login === null ? [] : [`github:${account.login}`]),
  ];
}

/** Whether an account is on the list of those who may create tokens ("agent") or publish ("publisher"). */
export async function isApproved(store: Store, account: Account, role: Role): Promise<boolean> {
  const found = await store.db
    .selectFrom("approvals")
    .select("identity")
    .where("role", "=", role)
    .where("identity", "in", identitiesOf(account))
    .executeTakeFirst();
  return found !== undefined;
}

/** Puts an identity on a list: an address, `github:login`, `issuer#subject`, or an account's id. */
export async function approve(store: Store, role: Role, identity: string): Promise<void> {
  await store.db
    .insertInto("approvals")
    .values({ role, identity: normalized(identity), created_at: store.dialect.now })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Takes an identity off a list, effective at once. Whether it was on it. */
export async function disapprove(store: Store, role: Role, identity: string): Promise<boolean> {
  const { numDeletedRows } = await store.db
    .deleteFrom("approvals")
    .where("role", "=", role)
    .where("identity", "=", normalized(identity))
    .executeTakeFirst();
  return numDeletedRows === 1n;
}

function normalized(identity: string): string {
  return identity.includes("#") ? identity : identity.toLowerCase();
}
