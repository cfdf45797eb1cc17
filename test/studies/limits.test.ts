/** Limits of the website by account and address, and the audit log of a day. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { backUp } from "../../src/studies/backup.js";
import { clientAddress } from "../../src/studies/http/transport.js";
import type { Service } from "../../src/studies/service.js";
import { approve, disapprove } from "../../src/studies/store/approvals.js";
import { readAudit } from "../../src/studies/store/audit.js";
import { addComment, deleteComment, setUpvote } from "../../src/studies/store/discussion.js";
import { deleteDraft, saveDraft } from "../../src/studies/store/drafts.js";
import { countAction } from "../../src/studies/store/limits.js";
import {
  eraseComment,
  reinstate,
  remove,
  setCommentHidden,
  suspend,
  unsuspend,
  withdraw,
} from "../../src/studies/store/moderation.js";
import { openStore } from "../../src/studies/store/open.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { dismissReport, openReports, report } from "../../src/studies/store/reports.js";
import type { Place } from "../../src/studies/store/rows.js";
import { revokeToken, sha256Hex } from "../../src/studies/store/tokens.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { startService } from "./support/service.js";

const databases = await startDatabases();

for (const database of databases.all) {
  test(`${database.name}: two processes share limits of 30 comments per account, 90 per address`, async () => {
    const clock = testClock();
    const location = database.fresh();
    const stores = [
      await openStore(location, { dialect: clock.dialect }),
      await openStore(location, { dialect: clock.dialect }),
    ];
    const ask = (accountId: string, address: string, turn = 0) =>
      countAction(stores[turn % 2]!, "comment", { accountId, address });
    const first = await Promise.all(
      Array.from({ length: 50 }, (_, turn) => ask("a", `10.0.0.${turn}`, turn)),
    );
    assert.is(first.filter((wait) => wait === 0).length, 30);
    assert.ok(first.every((wait) => wait === 0 || wait === 3600));
    const one = await Promise.all(
      Array.from({ length: 120 }, (_, turn) => ask(`b${turn}`, "10.9.9.9", turn)),
    );
    assert.is(one.filter((wait) => wait === 0).length, 90);
    clock.ms += 3_599_999;
    assert.is(await ask("a", "10.1.1.1"), 1);
    clock.ms += 1;
    assert.is(await ask("a", "10.1.1.2"), 0);
    await Promise.all(stores.map((store) => store.close()));
  });

  test(`${database.name}: the audit log of a moderator's day is complete`, async () => {
    const service = await startService(database.fresh());
    const { store } = service.running.service;
    const ada = await service.account("Ada", []);
    const ben = await service.account("Ben", []);
    const mod = await service.account("Mod", []);
    await store.db.deleteFrom("audit").execute();
    const expected: string[] = [];
    const did = async (who: string, action: string, target: string, work: () => Promise<unknown>) => {
      const result = await work();
      assert.ok(!["missing", "already", null, false].includes(result as string), action);
      expected.push(`${who} ${action} ${target}`);
    };
    const actor = { accountId: mod.id };
    const target = async () => {
      const bytes = Buffer.from(JSON.stringify(samplePackage()));
      const credential = { tokenId: ada.id, accountId: ada.id, scopes: [] };
      return {
        ...((await saveDraft(store, credential, bytes, "t", null)) as { id: string }),
        sha256: sha256Hex(bytes),
      };
    };
    const draft = await target();
    const unwanted = await target();
    await did("operator", "approval.add", mod.id, () => approve(store, "moderator", "@mod"));
    const made = await service.token(ada.id);
    expected.push(`${ada.id} token.create ${made.id}`);
    await did(ada.id, "token.revoke", made.id, () => revokeToken(store, ada.id, made.id));
    await did(ada.id, "draft.delete", unwanted.id, () => deleteDraft(store, ada.id, unwanted.id));
    const publication = {
      accountId: ada.id,
      draftId: draft.id,
      reviewedSha256: draft.sha256,
      replaces: null,
    };
    await did(ada.id, "study.publish", draft.id, () => publishDraft(store, publication));
    await did(ben.id, "vote.give", draft.id, () => setUpvote(store, ben.id, draft.id, true));
    await did(ben.id, "vote.take", draft.id, () => setUpvote(store, ben.id, draft.id, false));
    const say = async () => {
      const added = await addComment(store, { accountId: ben.id, name: "Ben" }, draft.id, null, "x");
      const { id } = added as { id: string };
      expected.push(`${ben.id} comment.add ${id}`);
      return id;
    };
    const [one, two] = [await say(), await say()];
    for (const commentId of [null, one]) {
      await report(store, ada.id, { studyId: draft.id, commentId }, "because");
    }
    const reports = await openReports(store);
    assert.is(reports.length, 2);
    expected.push(...reports.map(({ id }) => `${ada.id} report.add ${id}`));
    const aboutStudy = reports.find(({ comment_id }) => comment_id === null)!.id;
    await did(mod.id, "report.dismiss", aboutStudy, () => dismissReport(store, actor, aboutStudy));
    await did(mod.id, "comment.hide", one, () => setCommentHidden(store, actor, one, "rude"));
    await did(mod.id, "comment.show", one, () => setCommentHidden(store, actor, one, null));
    await did(mod.id, "comment.erase", one, () => eraseComment(store, actor, one, "rude"));
    await did(ben.id, "comment.delete", two, () => deleteComment(store, ben.id, two));
    const whole = { studyId: draft.id, version: null };
    await did(mod.id, "study.remove", draft.id, () => remove(store, actor, whole, "copied"));
    await did(mod.id, "study.reinstate", draft.id, () => reinstate(store, actor, whole));
    await did(ada.id, "study.withdraw", draft.id, () => withdraw(store, ada.id, whole, "wrong"));
    await did(mod.id, "account.suspend", ben.id, () => suspend(store, actor, ben, "spam"));
    await did(mod.id, "account.reinstate", ben.id, () => unsuspend(store, actor, ben));
    await did("operator", "approval.remove", mod.id, () => disapprove(store, "moderator", "@mod"));
    await did("operator", "backup", "day.gz", () =>
      backUp(store, `${service.disableFile}.day.gz`.replace(/disabled\.day/, "day")),
    );
    // A refused action leaves no record: the role was revoked.
    await remove(store, actor, whole, "late").then(
      () => assert.unreachable(),
      (error) => assert.is(error.name, "NotModerator"),
    );
    const log = await readAudit(store, { limit: 1000 });
    assert.equal(
      log.map((entry) => `${entry.actor} ${entry.action} ${entry.target}`).sort(),
      [...expected].sort(),
    );
    assert.is(log.find(({ action }) => action === "study.remove")?.detail, "copied");
    // Page after page it is the same, also where many records are of one millisecond.
    await store.db.updateTable("audit").set({ at: 7 }).execute();
    const paged: string[] = [];
    for (let before: Place | undefined; ; ) {
      const page = await readAudit(store, { before, limit: 4 });
      paged.push(...page.map(({ id }) => id));
      before = page.at(-1);
      if (before === undefined) break;
    }
    assert.equal([...paged].sort(), log.map(({ id }) => id).sort());
    await service.close();
  });
}

test("limits use the client's address, not the proxy's or a claimed one", () => {
  const from = (peer: string, forwarded: string | undefined, proxies: string[] | null) =>
    clientAddress(
      { trustedProxies: proxies } as Service,
      { req: { socket: { remoteAddress: peer }, headers: { "x-forwarded-for": forwarded } } } as never,
    );
  assert.is(from("::ffff:192.0.2.1", "198.51.100.9", null), "192.0.2.1");
  assert.is(from("10.0.0.1", "6.6.6.6, 198.51.100.9", ["10.0.0.1"]), "198.51.100.9");
  assert.is(from("10.0.0.1", "198.51.100.9, 10.0.0.2", ["10.0.0.1", "10.0.0.2"]), "198.51.100.9");
  assert.is(from("10.0.0.1", undefined, ["10.0.0.1"]), "10.0.0.1");
  assert.is(from("2001:db8:1:2:3:4:5:6", undefined, null), "2001:db8:1:2::/64");
  assert.is(from("2001:db8::1", undefined, null), "2001:db8:0:0::/64");
});

test("a draft of soft hyphens renders small, without blocking other requests", async () => {
  const service = await startService(databases.all[0]!.fresh());
  const ada = await service.account("Ada");
  const { token } = await service.token(ada.id);
  const save = async (entries: { answer: string }[]) => {
    const study = samplePackage({
      entries: entries.map((entry, index) => ({
        id: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
        kind: "result" as const,
        title: "",
        ...entry,
      })),
    });
    const body = JSON.stringify(study);
    const saved = await service.api(token, "/api/v1/studies", { method: "POST", body });
    assert.is(saved.status, 201, saved.text);
    return saved.json.id as string;
  };
  const review = async (id: string) => service.call(`/drafts/${id}`, { headers: { Cookie: ada.cookie } });
  const soft = await review(await save(Array(4).fill({ answer: "\u00ad".repeat(100_000) })));
  assert.ok(soft.bytes.length < 100_000, `${soft.bytes.length} bytes`);
  assert.match(soft.text, /U\+00AD ×100000/);
  assert.match(soft.text, /U\+00AD soft hyphen, 400000 times/);
  // Characters that never form a run: two that alternate.
  const turns = await review(await save(Array(8).fill({ answer: "a\u200b".repeat(25_000) })));
  assert.is(turns.text.match(/class="hidden-char"/g)?.length, 2000);
  assert.match(turns.text, /hidden characters in 400000 places/);
  assert.ok(turns.bytes.length < 7_000_000, `${turns.bytes.length} bytes`);
  const quotes = await review(await save(Array(9).fill({ answer: '"'.repeat(50_000) })));
  assert.ok(quotes.bytes.length < 7_500_000, `${quotes.bytes.length} bytes`);
  assert.is(quotes.status, 200);
  const joined = await review(await save([{ answer: "👩‍👩‍👧 ❤️ 1️⃣ x\u200dy" }]));
  assert.is(
    joined.text.match(/class="hidden-char"/g)?.length,
    2,
    "an emoji is seen as one; shown in view and JSON",
  );
  assert.equal(service.log, []);
  await service.close();
});

test.after(() => databases.close());
test.run();
