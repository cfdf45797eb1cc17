/** Whose an account is in the store: its handle, its names, its tokens and its feed. On SQLite. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  accountsNamed,
  identitiesOf,
  isApproved,
  roles,
  signInAccount,
} from "../../src/studies/store/accounts.js";
import { approve } from "../../src/studies/store/approvals.js";
import { freeHandle } from "../../src/studies/store/handles.js";
import { setFeed } from "../../src/studies/store/notifications.js";
import { createToken, listTokens, revokeToken } from "../../src/studies/store/tokens.js";
import { aroundStore, clock, store } from "./support/one-store.js";

aroundStore();

const signIn = (name: string, more: { email?: string | null; login?: string | null } = {}) =>
  signInAccount(store, {
    ...{ issuer: "https://id.example", subject: `${name}-subject`, name },
    ...{ email: more.email ?? null, login: more.login ?? null },
  });

test("a Kelvin sign or dotted I in an address, login or handle is not k or i", async () => {
  const kate = await signIn("Kate", { email: "Kate@example.org", login: "KateI" });
  await approve(store, "moderator", "KATE@example.org");
  await approve(store, "agent", "kim@example.org");
  await approve(store, "publisher", "github:kim");
  const other = await signIn("Other K", { email: "\u212aate@example.org", login: "\u212aate\u0130" });
  const waiting = await signIn("Waiting K", { email: "\u212aim@example.org", login: "\u212aim" });
  for (const account of [other, waiting])
    for (const role of roles) assert.not.ok(await isApproved(store, account, role), role);
  assert.ok(await isApproved(store, kate, "moderator"));
  for (const name of ["KATE@EXAMPLE.ORG", "GitHub:kateI", `@${kate.handle}`])
    assert.equal(
      (await accountsNamed(store.db, name)).map(({ id }) => id),
      [kate.id],
      name,
    );
  assert.equal(await accountsNamed(store.db, `@${kate.handle?.replace("k", "\u212a")}`), []);
});

test("a handle is plain letters, never a reserved word, and unique", async () => {
  const free = (name: string) => freeHandle(store.db, name);
  const expected: [name: string, handle: string][] = [
    ["Ada Lovelace", "ada-lovelace"],
    ["  Zoë  Müller-Ångström ", "zoe-muller-angstrom"],
    ["--a..b--", "a-b"],
    ["東京", "reader"],
    ["", "reader"],
    ["x".repeat(40), "x".repeat(32)],
    [`${"y".repeat(31)} z`, "y".repeat(31)],
    ["Admin", "admin-2"],
    ["TapLine", "tapline-2"],
  ];
  for (const [name, handle] of expected) assert.is(await free(name), handle, name);
  for (let count = 1; count <= 9; count++) {
    assert.is(await free("Grace"), count === 1 ? "grace" : `grace-${count}`);
    await store.db
      .updateTable("accounts")
      .set({ handle: count === 1 ? "grace" : `grace-${count}` })
      .where("id", "=", (await signIn(`Other ${count}`)).id)
      .execute();
  }
  assert.match(await free("Grace"), /^grace-[1-9]\d{3,6}$/);
  // One that nobody has may be out all the same.
  const out = (handle: string) => Promise.resolve(["ivy", "ivy-2"].includes(handle));
  assert.is(await freeHandle(store.db, "Ivy", out), "ivy-3");
});

test("an account can be approved by id, provider name and other known names", async () => {
  const bare = await signIn("Bare");
  assert.equal(identitiesOf(bare), [bare.id, "https://id.example#Bare-subject"]);
  const whole = await signIn("Whole", { email: "Whole@Example.org", login: "octocat" });
  const [id, subject, email, login, ...more] = identitiesOf(whole);
  assert.equal([id, subject], [whole.id, "https://id.example#Whole-subject"]);
  assert.is(email?.toLowerCase(), "whole@example.org");
  assert.equal([login, more], ["github:octocat", []]);
});

test("tokens are listed active first, newest first within each group", async () => {
  const { id } = await signIn("Tokens");
  const make = async (name: string, days: number) => {
    clock.ms += 1000;
    return (await createToken(store, id, { name, days, scopes: ["public:read"] }))?.id as string;
  };
  await make("first", 10);
  const revoked = await make("revoked", 10);
  await make("short", 1);
  await make("last", 10);
  await revokeToken(store, id, revoked);
  const names = async () => (await listTokens(store, id)).map(({ name }) => name);
  assert.equal(await names(), ["last", "short", "first", "revoked"]);
  // A token has expired at its last moment, not after it.
  const { expires_at } = await store.db
    .selectFrom("tokens")
    .select("expires_at")
    .where("name", "=", "short")
    .executeTakeFirstOrThrow();
  clock.ms = expires_at - 1;
  assert.equal(await names(), ["last", "short", "first", "revoked"]);
  clock.ms = expires_at;
  assert.equal(await names(), ["last", "first", "short", "revoked"]);
});

test("creating and ending a private feed are logged as such", async () => {
  const { id } = await signIn("Feed");
  const done = () =>
    store.db.selectFrom("audit").select("action").where("target", "=", id).orderBy("at").execute();
  clock.ms += 1000;
  await setFeed(store, id, "0".repeat(64));
  clock.ms += 1000;
  await setFeed(store, id, null);
  const actions = (await done()).map(({ action }) => action).filter((action) => action.startsWith("feed"));
  assert.equal(actions, ["feed.create", "feed.end"]);
});

test.run();
