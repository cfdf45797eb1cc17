/** Appeals: one message to the moderators from whom they suspended or whose study they removed. On both databases. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { backUp, restore } from "../../src/studies/backup.js";
import { personalFiles } from "../../src/studies/personal/export.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { openAppeals } from "../../src/studies/store/appeals.js";
import { approve } from "../../src/studies/store/approvals.js";
import { readAudit } from "../../src/studies/store/audit.js";
import { deleteAccount, deleteAccountOf } from "../../src/studies/store/deletion.js";
import { reinstate, remove, suspend, unsuspend, withdraw } from "../../src/studies/store/moderation.js";
import { openStore } from "../../src/studies/store/open.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";
import { peopleOf } from "./support/people.js";
import { startService } from "./support/service.js";

const databases = await startDatabases();
const folder = mkdtempSync(join(tmpdir(), "tapline-appeals-"));
test.after(async () => {
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
});

for (const database of databases.all) {
  const clock = testClock();
  /** A service whose only provider identifies the visitor as Ada. */
  const start = () =>
    startService(database.fresh(), {
      store: { dialect: clock.dialect },
      providers: async () => [
        {
          key: "oidc",
          label: "Test",
          begin: async (callback) => ({
            url: new URL(`${callback}?code=x`),
            secrets: { state: `s${Math.random()}`, nonce: "n", verifier: "v" },
          }),
          finish: async () => ({ issuer: "test", subject: "Ada", name: "Ada", email: null, login: null }),
        },
      ],
    });

  test(`${database.name}: a removed study's author can appeal once, and moderators read the appeal`, async () => {
    const service = await start();
    try {
      const { store, see, post, publish } = peopleOf(service, clock);
      const [ada, ben, mod] = [
        await service.account("Ada"),
        await service.account("Ben"),
        await service.account("Mod", []),
      ];
      await approve(store, "moderator", mod.id);
      const { id } = await publish(ada, { title: "A removed title" });
      const form = { reason: "It was <b>mine</b>." };
      assert.is((await post(`/studies/${id}/appeal`, ada, form)).status, 409, "nothing was removed");
      assert.not.match((await see(`/studies/${id}`, ada)).text, `/studies/${id}/appeal`);
      clock.ms += 1000;
      await remove(store, { accountId: mod.id }, { studyId: id, version: null }, "Copied.");
      assert.match((await see(`/studies/${id}`, ada)).text, `action="/studies/${id}/appeal"`);
      assert.not.match((await see(`/studies/${id}`, mod)).text, `action="/studies/${id}/appeal"`);
      assert.is((await post(`/studies/${id}/appeal`, ben, form)).status, 409, "it is not Ben's");
      assert.is((await post(`/studies/${id}/appeal`, ada, { reason: " " })).status, 400);
      assert.is((await post(`/studies/${id}/appeal`, ada, { ...form, csrf: "x" })).status, 403);
      assert.is((await post(`/studies/${id}/appeal`, ada, form)).status, 200);
      assert.is((await post(`/studies/${id}/appeal`, ada, form)).status, 409, "once");
      const shown = (await see("/moderation", mod)).text;
      assert.match(shown, "1 open appeal");
      assert.match(shown, "It was &lt;b&gt;mine&lt;/b&gt;.");
      assert.match(shown, "A removed title");
      const appealId = (await openAppeals(store))[0]?.id;
      assert.is((await post(`/appeals/${appealId}/dismiss`, ada)).status, 404, "moderators alone");
      // A granted appeal is closed; another removal can be appealed again.
      clock.ms += 1000;
      await reinstate(store, { accountId: mod.id }, { studyId: id, version: null });
      assert.equal(await openAppeals(store), []);
      clock.ms += 1000;
      await remove(store, { accountId: mod.id }, { studyId: id, version: 1 }, "Copied again.");
      assert.is((await post(`/studies/${id}/appeal`, ada, form)).status, 200);
      const second = (await openAppeals(store))[0]?.id;
      clock.ms += 1000;
      assert.is((await post(`/appeals/${second}/dismiss`, mod)).status, 303);
      assert.is((await post(`/studies/${id}/appeal`, ada, form)).status, 409, "once for each removal");
      assert.equal(
        (await readAudit(store, { limit: 100 }))
          .filter(({ action }) => action.startsWith("appeal"))
          .map(({ action, actor }) => [action, actor]),
        [
          ["appeal.dismiss", mod.id],
          ["appeal.add", ada.id],
          ["appeal.add", ada.id],
        ],
      );
      // Only the author is responsible for a study that they withdrew.
      clock.ms += 86_400_000;
      const own = await publish(ada, { title: "Withdrawn" });
      await withdraw(store, ada.id, { studyId: own.id, version: null }, "r");
      assert.is((await post(`/studies/${own.id}/appeal`, ada, form)).status, 409);
    } finally {
      await service.close();
    }
  });

  test(`${database.name}: a suspended user appeals on the page that reports the suspension`, async () => {
    const service = await start();
    try {
      const { store } = service.running.service;
      const origin = service.running.origin;
      const ada = await service.account("Ada");
      const send = (path: string, form: Record<string, string>) =>
        service.call(path, {
          method: "POST",
          body: new URLSearchParams(form).toString(),
          headers: { "Content-Type": "application/x-www-form-urlencoded", Origin: origin },
        });
      const signIn = async () => {
        const away = await send("/sign-in/oidc", {});
        const cookie = String(away.headers["set-cookie"]).split(";")[0] as string;
        return service.call("/sign-in/oidc/callback?code=x", { headers: { Cookie: cookie } });
      };
      clock.ms += 1000;
      await suspend(store, "operator", ada, "Spam & <more>.");
      const page = await signIn();
      assert.is(page.status, 403);
      assert.match(page.text, "This account is suspended: Spam &amp; &lt;more&gt;.");
      assert.not.match(String(page.headers["set-cookie"]), "__Host-tapline-session=[^;]");
      const ticket = /name="ticket" value="([^"]+)"/.exec(page.text)?.[1] as string;
      const reason = "That was not me.";
      for (const wrong of ["", "x", `${ticket.slice(0, -2)}AA`])
        assert.is((await send("/appeal", { ticket: wrong, reason })).status, 403);
      assert.is((await send("/appeal", { ticket, reason: "x".repeat(1001) })).status, 400);
      assert.is((await send("/appeal", { ticket, reason })).status, 200);
      assert.is((await send("/appeal", { ticket, reason })).status, 409);
      assert.equal(
        (await openAppeals(store)).map(({ body, study_id, handle }) => [body, study_id, handle]),
        [[reason, null, "ada"]],
      );
      // Five tries a day: three were counted, whatever came of them.
      for (let tries = 0; tries < 3; tries += 1) await send("/appeal", { ticket, reason });
      const limited = await send("/appeal", { ticket, reason });
      assert.is(limited.status, 429);
      assert.ok(Number(limited.headers["retry-after"]) > 3600);
      clock.ms += 3_700_000;
      assert.is((await send("/appeal", { ticket, reason })).status, 403, "it has run out");
      await unsuspend(store, "operator", ada);
      assert.equal(await openAppeals(store), []);
      clock.ms += 86_400_000;
      // A ticket of a suspension that is over does nothing.
      clock.ms += 1000;
      await suspend(store, "operator", ada, "Again.");
      const again = /name="ticket" value="([^"]+)"/.exec((await signIn()).text)?.[1] as string;
      await unsuspend(store, "operator", ada);
      assert.is((await send("/appeal", { ticket: again, reason })).status, 409);
    } finally {
      await service.close();
    }
  });

  test(`${database.name}: appeals are exported, backed up, and deleted with the account`, async () => {
    const location = database.fresh();
    const store = await openStore(location, { dialect: clock.dialect });
    const person = (name: string) =>
      signInAccount(store, { issuer: "t", subject: name, name, email: null, login: null });
    const [ada, ben] = [await person("Ada"), await person("Ben")];
    const { appeal } = await import("../../src/studies/store/appeals.js");
    for (const one of [ada, ben]) {
      await suspend(store, "operator", one, "r");
      assert.is(await appeal(store, one.id, { studyId: null }, `Words of ${one.name}`), "sent");
    }
    const files: Record<string, string> = {};
    for await (const { name, bytes } of personalFiles(store, ada.id)) files[name] = bytes.toString();
    assert.match(files["appeals-1.json"] as string, "Words of Ada");
    assert.not.match(JSON.stringify(files), "Words of Ben");
    assert.match(files["README.txt"] as string, "appeals-N.json");
    const path = join(folder, `${database.name}.gz`);
    await backUp(store, path);
    assert.match(gunzipSync(readFileSync(path)).toString(), "Words of Ada");
    const copy = await openStore(database.fresh(), { dialect: clock.dialect });
    await restore(copy, path);
    assert.is((await openAppeals(copy)).length, 2);
    await copy.close();
    await deleteAccountOf(store, ada);
    await unsuspend(store, "operator", ben);
    await deleteAccount(store, ben.id);
    assert.equal(await store.db.selectFrom("appeals").selectAll().execute(), []);
    await store.close();
  });
}

test.run();
