/** What users are notified of, what they can export, and what remains when they leave. On both databases. */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { backUp } from "../../src/studies/backup.js";
import { personalFiles } from "../../src/studies/personal/export.js";
import { tar } from "../../src/studies/personal/tar.js";
import { accountsNamed, isApproved, signInAccount } from "../../src/studies/store/accounts.js";
import { approve } from "../../src/studies/store/approvals.js";
import { deleteAccount, deleteAccountOf } from "../../src/studies/store/deletion.js";
import { addComment, setUpvote } from "../../src/studies/store/discussion.js";
import { deleteDraft } from "../../src/studies/store/drafts.js";
import { remove, setCommentHidden, suspend, withdraw } from "../../src/studies/store/moderation.js";
import { report } from "../../src/studies/store/reports.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";
import { textOf } from "./support/markup.js";
import { type Person, peopleOf, reproduction } from "./support/people.js";
import { type Answer, startService } from "./support/service.js";

const databases = await startDatabases();

/** The notifications on a page, each with whether it is new. */
function told({ text }: Answer): string[] {
  return [...text.matchAll(/<li class="(unread|read)"><h2 [^>]*>(.*?)<\/h2>/gs)].map(
    ([, state, heading = ""]) => `${state}: ${textOf(heading).replace(/^new /, "")}`,
  );
}

for (const database of databases.all) {
  test(`${database.name}: replies, reproductions, drafts and moderation send notifications`, async () => {
    const clock = testClock();
    const service = await startService(database.fresh(), { store: { dialect: clock.dialect } });
    const [ada, ben, cleo] = [
      await service.account("Ada"),
      await service.account("Ben"),
      await service.account("Cleo"),
    ];
    const { store, see, save, post, publish, comment } = peopleOf(service, clock);
    const inbox = async (who: Person) => told(await see("/notifications", who));
    const { id, sha256 } = await publish(ada, { title: "Heron <b>one</b>" });
    assert.equal(await inbox(ada), [], "the draft waits no more");
    const first = await comment(id, ben, "Why?");
    const answer = await comment(id, ada, "Because.", first);
    await comment(id, cleo, "And this?", answer);
    await comment(id, ada, "To myself.", answer);
    assert.equal(await inbox(ada), [
      "unread: Cleo (@cleo) replied to your comment on “Heron <b>one</b>”",
      "unread: Ben (@ben) commented on your study “Heron <b>one</b>”",
    ]);
    assert.equal(await inbox(ben), ["unread: Ada (@ada) replied to your comment on “Heron <b>one</b>”"]);
    assert.equal(await inbox(cleo), []);
    assert.match((await see("/", ada)).text, '<span class="count">2<span');
    assert.not.match((await see("/", cleo)).text, '<span class="count">0');

    const claim = { study: id, version: 1, package_sha256: sha256, outcome: "failed" };
    const again = await publish(ben, { title: "Again", finding: reproduction(claim) });
    await publish(ben, { title: "Again", finding: reproduction({ ...claim, outcome: "held" }) }, again.id);
    assert.equal(
      (await inbox(ada))[0],
      "unread: Ben (@ben) reproduced your study “Heron <b>one</b>”: it held",
      "told once, with what came of it last",
    );
    assert.is((await inbox(ada)).length, 3);
    await publish(ada, { title: "My own", finding: reproduction(claim) });
    assert.is((await inbox(ada)).length, 3, "not of the author's own comments");

    const waiting = await save(ben, { title: "Secret plans" });
    assert.match((await see("/notifications", ben)).text, "Secret plans");
    assert.is((await inbox(ben))[0], "unread: A draft is ready for your review");
    await see(`/drafts/${waiting.id}`, ben);
    assert.is((await inbox(ben))[0], "read: A draft is ready for your review", "who opens it has seen it");
    await deleteDraft(store, ben.id, waiting.id);
    assert.is((await inbox(ben)).length, 1);

    clock.ms += 1000;
    await setCommentHidden(store, "operator", first, "It was rude.");
    clock.ms += 1000;
    await remove(store, "operator", { studyId: again.id, version: null }, "It was copied.");
    assert.equal((await inbox(ben)).slice(0, 2), [
      "unread: A moderator removed “Again”",
      "unread: A moderator hid your comment on “Heron <b>one</b>”",
    ]);
    assert.match((await see("/notifications", ben)).text, "It was copied.");
    assert.is(
      (await inbox(ada))[0],
      "unread: Ben (@ben) reproduced your study “Heron <b>one</b>”",
      "of what is gone the outcome is not told",
    );

    // Read and unread, by one, by opening what it is about, all.
    const page = (await see("/notifications", ada)).text;
    const [, one = ""] = /action="\/notifications\/([^/]+)\/read"/.exec(page) ?? [];
    assert.is((await post(`/notifications/${one}/read`, ada, { read: "yes" })).status, 303);
    assert.match((await inbox(ada))[0] as string, /^read: /);
    assert.is((await post(`/notifications/${one}/read`, ada, { read: "no" })).status, 303);
    assert.match((await inbox(ada))[0] as string, /^unread: /);
    assert.is((await post(`/notifications/${one}/read`, ben, { read: "yes" })).status, 404, "another's");
    const [, until = ""] = /name="until" value="(\d+)"/.exec(page) ?? [];
    assert.is((await post("/notifications/read", ada, { until: String(Number(until) - 1) })).status, 303);
    assert.ok(
      (await inbox(ada)).some((text) => text.startsWith("unread")),
      "what came later is not read",
    );
    assert.is((await post("/notifications/read", ada, { until })).status, 303);
    assert.ok((await inbox(ada)).every((text) => text.startsWith("read")));
    await comment(id, cleo, "Once more.");
    assert.match((await inbox(ada))[0] as string, /^unread: /);
    await see(`/studies/${id}`, ada);
    assert.match((await inbox(ada))[0] as string, /^read: /);
    assert.is((await see("/notifications")).status, 303, "without a session one signs in");
    // A study that was withdrawn keeps its name to itself.
    await withdraw(store, ada.id, { studyId: id, version: null }, "wrong");
    assert.match(
      (await inbox(ben)).join("\n"),
      "replied to your comment on a study that is no longer available",
    );
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: a private feed serves anyone with its URL until it is ended`, async () => {
    const service = await startService(database.fresh());
    const [ada, ben] = [await service.account("Ada"), await service.account("Ben")];
    const { store, see, save, post, publish, comment } = peopleOf(service);
    const { id } = await publish(ada, { title: "Heron & <crane>\u202e" });
    await comment(id, ben, `Well \u0007 said <script>. ${"words ".repeat(400)}`);
    await save(ada, { title: "Secret plans" });
    const made = async () =>
      /\/notifications\/feed\/[\w-]{43}\.atom/.exec((await post("/notifications/feed", ada)).text)?.[0];
    const address = (await made()) as string;
    assert.not.match((await see("/notifications", ada)).text, address, "shown once");
    const feed = await service.call(address, { headers: { "Accept-Encoding": "gzip" } });
    assert.is(feed.headers["content-type"], "application/atom+xml; charset=utf-8");
    assert.equal(
      [feed.headers["content-encoding"], feed.headers.etag, feed.headers["cache-control"]],
      [undefined, undefined, "no-store"],
    );
    assert.match(feed.text, "<title>Ben (@ben) commented on your study “Heron &amp; &lt;crane&gt;”</title>");
    assert.match(feed.text, "said &lt;script&gt;.");
    assert.match(feed.text, "A draft is ready for your review");
    assert.not.match(feed.text, "Secret plans");
    assert.is(feed.text.match(/<entry>/g)?.length, 2);
    const secret = address.split("/").at(-1)?.replace(".atom", "") as string;
    assert.not.match(feed.text, secret);
    for (const row of await store.db.selectFrom("accounts").selectAll().execute())
      assert.not.ok(JSON.stringify(row).includes(secret), "only a hash is kept");
    const other = (await made()) as string;
    assert.is.not(other, address);
    assert.equal([(await see(address)).status, (await see(other)).status], [404, 200]);
    assert.is((await post("/notifications/feed/end", ada)).status, 303);
    assert.is((await see(other)).status, 404);
    assert.is((await see(`/notifications/feed/${"A".repeat(43)}.atom`)).status, 404);
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: an export holds everything that the user wrote, nothing else`, async () => {
    const service = await startService(database.fresh());
    const [ada, ben] = [await service.account("Ada"), await service.account("Ben")];
    const { store, save, post, publish, comment } = peopleOf(service);
    const one = await publish(ada, { title: "Heron" });
    const two = await publish(ada, { title: "Heron two" }, one.id);
    const waiting = await save(ada, { title: "Waiting", finding: "\u202e odd \ud800" });
    const others = await publish(ben, { title: "Not hers" });
    const said = await comment(others.id, ada, "I said <this>.");
    await comment(one.id, ben, "He said that.");
    await setUpvote(store, ada.id, others.id, true);
    await report(store, ada.id, { studyId: others.id, commentId: null }, "I told on it.");
    const archive = await post("/account/export", ada);
    assert.is(archive.status, 200, archive.text.slice(0, 300));
    assert.equal(
      [
        archive.headers["content-type"],
        archive.headers["content-disposition"],
        archive.headers["content-encoding"],
      ],
      ["application/x-tar", 'attachment; filename="tapline-studies-ada.tar"', undefined],
    );
    const files = untar(archive.bytes);
    assert.ok(files.get(`studies/${one.id}/v1.json`)?.equals(Buffer.from(one.body)), "byte for byte");
    assert.ok(files.get(`studies/${one.id}/v2.json`)?.equals(Buffer.from(two.body)));
    assert.ok(files.get(`drafts/${waiting.id}.json`)?.equals(Buffer.from(waiting.body)));
    const json = (name: string) => JSON.parse(files.get(name)?.toString("utf8") ?? "null");
    assert.equal(
      json("comments-1.json").map((row: { id: string; body: string }) => [row.id, row.body]),
      [[said, "I said <this>."]],
    );
    assert.is(json("votes-1.json")[0].study_id, others.id);
    assert.is(json("reports-1.json")[0].reason, "I told on it.");
    assert.is(json("account.json").handle, "ada");
    assert.is(json("account.json").email, "ada@example.org");
    assert.equal(json("account.json").approved_as.sort(), ["agent", "publisher"]);
    assert.is(json("account.json").tokens.length, 1);
    // Of a session when and where it was; not the id by which a form ends it.
    assert.equal(
      json("account.json").sessions.map((session: object) => Object.keys(session).sort()),
      [["agent", "created_at", "expires_at", "seen_at"]],
    );
    assert.is(json(`studies/${one.id}.json`).versions.length, 2);
    assert.ok(json("audit-1.json").some((row: { action: string }) => row.action === "study.publish"));
    assert.ok(json("activity-1.json").some((row: { action: string }) => row.action === "drafts.create"));
    const all = archive.bytes.toString("latin1");
    for (const foreign of ["Not hers", "He said that.", "ben@example.org"])
      assert.not.ok(all.includes(foreign));
    const hashes = await store.db.selectFrom("sessions").select("hash as secret").execute();
    const tokens = await store.db.selectFrom("tokens").select("hash as secret").execute();
    for (const { secret } of [...hashes, ...tokens]) assert.not.ok(all.includes(secret));
    // Five an hour.
    for (let count = 0; count < 4; count += 1) assert.is((await post("/account/export", ada)).status, 200);
    assert.is((await post("/account/export", ada)).status, 429);
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: lists in an export continue across files without gaps or repeats`, async () => {
    const service = await startService(database.fresh());
    const [ada, ben] = [await service.account("Ada"), await service.account("Ben")];
    const { store, publish } = peopleOf(service);
    const { id } = await publish(ben);
    const comments = Array.from({ length: 205 }, (_, at) => ({
      id: randomUUID(),
      study_id: id,
      parent_id: null,
      account_id: at < 203 ? ada.id : ben.id,
      author: "x",
      created_at: 1,
      body: `said ${at}`,
      thread: String(at).padStart(6, "0"),
    }));
    await store.db.insertInto("comments").values(comments).execute();
    const records = Array.from({ length: 2003 }, (_, at) => ({
      id: randomUUID(),
      at: 5 + Math.floor(at / 1500),
      actor: ada.id,
      action: "vote.give",
      target: id,
      detail: null,
    }));
    for (let at = 0; at < records.length; at += 500)
      await store.db
        .insertInto("audit")
        .values(records.slice(at, at + 500))
        .execute();
    const names: string[] = [];
    const seen: Record<string, string[]> = { comments: [], audit: [] };
    for await (const { name, bytes } of personalFiles(store, ada.id)) {
      names.push(name);
      const list = seen[name.split("-")[0] as string];
      if (list !== undefined) list.push(...JSON.parse(bytes.toString()).map((row: { id: string }) => row.id));
    }
    assert.equal(
      names.filter((name) => /^(comments|audit)/.test(name)),
      [
        "comments-1.json",
        "comments-2.json",
        "comments-3.json",
        "audit-1.json",
        "audit-2.json",
        "audit-3.json",
      ],
    );
    const hers = comments.filter(({ account_id }) => account_id === ada.id).map(({ id: one }) => one);
    assert.equal(seen.comments, hers.sort());
    const written = await store.db.selectFrom("audit").select("id").where("actor", "=", ada.id).execute();
    assert.equal(seen.audit?.sort(), written.map((row) => row.id).sort());
    await service.close();
  });

  test(`${database.name}: only the operator can delete a suspended account, once`, async () => {
    const service = await startService(database.fresh());
    const ada = await service.account("Ada");
    const { store, save } = peopleOf(service);
    await save(ada, { title: "Never read" });
    await suspend(store, "operator", ada, "spam");
    const refused = await deleteAccount(store, ada.id).catch((error) => error.name);
    assert.is(refused, "AccountSuspended");
    await deleteAccountOf(store, ada);
    assert.equal(await accountsNamed(store.db, "@ada"), []);
    assert.equal(await store.db.selectFrom("drafts").select("id").execute(), []);
    const written = store.db.selectFrom("audit").select(["actor", "target"]);
    assert.equal(await written.where("action", "=", "account.delete").execute(), [
      { actor: "operator", target: ada.id },
    ]);
    const again = await deleteAccountOf(store, ada).catch((error) => error.message);
    assert.is(again, `The account ${ada.id} is already deleted.`);
    await service.close();
  });

  test(`${database.name}: deletion removes name, keys, drafts, and leaves studies unnamed`, async () => {
    const service = await startService(database.fresh());
    // By an address that nobody shows yet: the log names it.
    await approve(service.running.service.store, "moderator", "ada@example.org");
    const [ada, ben] = [await service.account("Ada"), await service.account("Ben")];
    const { store, see, save, post, publish, comment } = peopleOf(service);
    const { id } = await publish(ada, { title: "Heron" });
    const others = await publish(ben, { title: "Crane" });
    await comment(others.id, ada, "It stays said.");
    await setUpvote(store, ada.id, others.id, true);
    await save(ada, { title: "Never read" });
    const { token } = await service.token(ada.id);
    const feed = /\/notifications\/feed\/[\w-]{43}\.atom/.exec(
      (await post("/notifications/feed", ada)).text,
    )?.[0] as string;
    await comment(id, ben, "Told to her.");
    const before = (await see("/account/delete", ada)).text;
    for (const what of ["1 draft, 2 tokens", "1 study that you published", "1 comment:", "1 upvote", "@ada"])
      assert.match(before, what);
    assert.is((await post("/account/delete", ada, { handle: "ben" })).status, 400);
    assert.is((await see("/account", ada)).status, 200, "nothing was deleted");
    const gone = await post("/account/delete", ada, { handle: "@Ada " });
    assert.is(gone.status, 200);
    assert.equal(gone.headers["set-cookie"], [
      "__Host-tapline-session=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0",
    ]);
    assert.match(gone.text, ">Sign in</a>");

    // Keys, at once.
    assert.is((await see("/account", ada)).status, 303);
    assert.is((await service.api(token, "/api/v1/studies")).json.code, "token_invalid");
    assert.is((await see(feed)).status, 404);
    // Requests already in progress fail.
    const late = await addComment(store, { accountId: ada.id, name: "Ada" }, others.id, null, "Late.").catch(
      (error) => error.name,
    );
    assert.is(late, "AccountSuspended");

    // What stays.
    const study = await see(`/studies/${id}`);
    assert.is(study.status, 200);
    assert.match(study.text, '<span class="gone">deleted account</span>');
    assert.not.match(study.text, /Ada|@ada/);
    const there = await see(`/studies/${others.id}`);
    assert.match(there.text, "It stays said.");
    assert.match(there.text, "1 upvote");
    const { json } = await service.api((await service.token(ben.id)).token, "/api/v1/studies");
    assert.equal(
      json.items.map((item: { author: object }) => item.author),
      [{ name: "Ben", handle: "ben" }, { name: "deleted account" }],
    );
    assert.match((await see(`/studies/${id}/v/1/cite.bib`)).text, "author = {{deleted account}}");
    assert.is((await see("/authors/ada")).status, 404);
    assert.match((await see("/notifications", ben)).text, "A deleted account commented");

    // Nothing of her in any table but the bytes that she published, and hashes.
    for (const { name } of await store.db.introspection.getTables()) {
      if (name.startsWith("search")) continue;
      const rows: object[] = await store.db
        .selectFrom(name as "accounts")
        .selectAll()
        .execute();
      for (const row of rows) {
        const text = JSON.stringify({ ...row, package: null });
        assert.not.match(text, /ada@example|"ada"|Never read/i, `${name}: ${text}`);
      }
    }
    const tables = ["drafts", "sessions", "tokens", "approvals", "notifications"] as const;
    for (const table of tables) {
      const left = await store.db
        .selectFrom(table)
        .select("account_id")
        .where("account_id", "=", ada.id)
        .execute();
      assert.equal(left, [], table);
    }

    // Signing in again creates a new account with another handle and no approval; the same holds for another account with the
    // name.
    const again = await signInAccount(store, {
      issuer: "test",
      subject: "Ada",
      name: "Ada",
      email: "ada@example.org",
      login: null,
    });
    assert.is.not(again.id, ada.id);
    assert.is(again.handle, "ada-2");
    assert.not.ok(await isApproved(store, again, "agent"));
    assert.equal(
      (await accountsNamed(store.db, ada.id)).map((one) => one.id),
      [],
      "nobody can name it any more",
    );
    const deleted = await deleteAccount(store, ada.id).catch((error) => error.name);
    assert.is(deleted, "AccountSuspended", "and it is deleted once");
    await backUp(store, `${service.disableFile}.gz`);
    assert.equal(service.log, []);
    await service.close();
  });
}

test("an archive is valid tar: names, sizes, blocks and an end", async () => {
  async function* files() {
    yield { name: "a.json", bytes: Buffer.from("{}\n") };
    yield { name: "b/c.bin", bytes: Buffer.alloc(1024, 7) };
    yield { name: "empty", bytes: Buffer.alloc(0) };
  }
  const parts: Buffer[] = [];
  for await (const part of tar(files(), 1_700_000_000_999)) parts.push(part);
  const bytes = Buffer.concat(parts);
  assert.is(bytes.length, 512 + 512 + 512 + 1024 + 512 + 1024);
  const read = untar(bytes);
  assert.equal([...read.keys()], ["a.json", "b/c.bin", "empty"]);
  assert.ok(read.get("b/c.bin")?.equals(Buffer.alloc(1024, 7)));
  assert.is(bytes.toString("latin1", 136, 147), "14524770400", "1,700,000,000 seconds in octal");
  async function* bad() {
    yield { name: "a b", bytes: Buffer.alloc(0) };
  }
  const refused = await tar(bad(), 0)
    .next()
    .catch((error: Error) => error.message);
  assert.is(refused, "Invalid file name for a tar archive: a b");
});

/** Files of a tar archive, read as POSIX has it, checksums looked at. */
function untar(bytes: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const textAt = (at: number, length: number) =>
    bytes.toString("latin1", at, at + length).replace(/\0.*$/s, "");
  let at = 0;
  for (; bytes[at] !== 0; ) {
    const sum = Number.parseInt(textAt(at + 148, 8), 8);
    const header = Buffer.from(bytes.subarray(at, at + 512)).fill(" ", 148, 156);
    assert.is(
      header.reduce((total, byte) => total + byte, 0),
      sum,
    );
    assert.is(bytes.toString("latin1", at + 257, at + 265), "ustar\x0000");
    const size = Number.parseInt(textAt(at + 124, 12), 8);
    files.set(textAt(at, 100), bytes.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  assert.is(bytes.length, at + 1024, "two empty blocks end it");
  return files;
}

test.after(() => databases.close());
test.run();
