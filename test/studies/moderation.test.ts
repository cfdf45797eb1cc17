/** Taking down and putting back: by authors, moderators and operators; on the site, in the API, in the audit log. */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { routes } from "../../src/studies/site/middleware.js";
import { accountNamed, signInAccount } from "../../src/studies/store/accounts.js";
import { approve, disapprove } from "../../src/studies/store/approvals.js";
import { addComment } from "../../src/studies/store/discussion.js";
import { suspend } from "../../src/studies/store/moderation.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { type Answer, startService, type TestService } from "./support/service.js";

const databases = await startDatabases();

type Person = Awaited<ReturnType<TestService["account"]>>;

async function world(location: string) {
  const service = await startService(location);
  const { store } = service.running.service;
  const ada = await service.account("Ada");
  const ben = await service.account("Ben", []);
  const mod = await service.account("Mod", []);
  await approve(store, "moderator", "mod@example.org");
  const { token } = await service.token(ada.id);
  const save = async (change = {}) =>
    (
      await service.api(token, "/api/v1/studies", {
        method: "POST",
        body: JSON.stringify(samplePackage(change)),
      })
    ).json as { id: string; package_sha256: string };
  const publish = async (change = {}, replaces: string | null = null) => {
    const draft = await save(change);
    const reviewed = { accountId: ada.id, draftId: draft.id, reviewedSha256: draft.package_sha256, replaces };
    await publishDraft(store, reviewed);
    // More than ten drafts a day and sixty requests a minute are needed here.
    await store.db.updateTable("tokens").set({ recent: "[]" }).execute();
    await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).execute();
    return draft.id;
  };
  const comment = async (study: string, who: Person, body = "said") => {
    const added = await addComment(store, { accountId: who.id, name: who.name }, study, null, body);
    return (added as { id: string }).id;
  };
  const csrf = new Map<string, string>();
  const post = async (path: string, who: Person | null, form: Record<string, string> = {}) => {
    if (who !== null && !csrf.has(who.cookie)) {
      const { text } = await service.call("/account", { headers: { Cookie: who.cookie } });
      csrf.set(who.cookie, /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? "none");
    }
    return service.call(path, {
      method: "POST",
      body: new URLSearchParams({
        ...(who === null ? {} : { csrf: csrf.get(who.cookie) as string }),
        ...form,
      }).toString(),
      headers: {
        "Content-Type": "application/x-www-form-urlencoded",
        Origin: service.running.origin,
        ...(who === null ? {} : { Cookie: who.cookie }),
      },
    });
  };
  const see = (path: string, who: Person | null = null): Promise<Answer> =>
    service.call(path, who === null ? {} : { headers: { Cookie: who.cookie } });
  const api = (path: string) => service.api(token, `/api/v1/studies${path}`);
  return { service, store, ada, ben, mod, token, save, publish, comment, post, see, api };
}

for (const database of databases.all) {
  test(`${database.name}: withdrawals, removals and reinstatements apply everywhere`, async () => {
    const { service, store, ada, ben, mod, publish, post, see, api } = await world(database.fresh());
    const id = await publish({ title: "Heron first" });
    const second = await publish({ title: "Heron second" }, id);
    const other = await publish({ title: "Kestrel" });
    const become = await api(`/${second}`);
    assert.equal(
      [become.json.id, become.json.version, become.json.author],
      [id, 2, { name: "Ada", handle: "ada" }],
    );
    const away = await see(`/drafts/${second}`, ada);
    assert.equal([away.status, away.headers.location], [303, `/studies/${id}`]);
    assert.is((await see(`/drafts/${second}`, ben)).status, 404);
    const older = await api(`/${id}/versions/1`);
    assert.equal([older.status, older.json.version, older.json.package.title], [200, 1, "Heron first"]);
    for (const [path, expected] of [
      ["versions/3", "404 not_found"],
      ["versions/0", "400 invalid_parameter"],
      ["versions/01", "400 invalid_parameter"],
      ["versions/x", "400 invalid_parameter"],
    ] as const) {
      const { status, json } = await api(`/${id}/${path}`);
      assert.is(`${status} ${json.code}`, expected, path);
    }

    // The author withdraws the second version: readers have the first again.
    const reason = "A secret <b>was</b> in it.";
    assert.is((await post(`/studies/${id}/withdraw`, ben, { version: "2", reason })).status, 404);
    assert.is((await post(`/studies/${id}/withdraw`, ada, { version: "2", reason: " \u200b " })).status, 400);
    assert.is((await post(`/studies/${id}/withdraw`, ada, { version: "9", reason })).status, 409);
    assert.is((await post(`/studies/${id}/withdraw`, ada, { version: "2", reason })).status, 303);
    assert.is((await post(`/studies/${id}/withdraw`, ada, { version: "2", reason })).status, 409);
    assert.equal([(await api(`/${id}`)).json.version, (await api("?q=second")).json.total], [1, 0]);
    assert.is((await api("?q=heron+first")).json.items[0].version, 1);
    const gone = await api(`/${id}/versions/2`);
    assert.equal([gone.status, gone.json.code, gone.json.reason], [410, "withdrawn", reason]);
    assert.is((await api(`/${second}`)).status, 410, "and under the draft's id");
    const page = await see(`/studies/${id}?version=2`);
    assert.is(page.status, 410);
    assert.ok(page.text.includes("A secret &lt;b&gt;was&lt;/b&gt; in it."));
    assert.not.ok(page.text.includes("Heron second"));
    assert.is((await see(`/studies/${id}/package.json?version=2`)).status, 410);
    assert.is((await see(`/studies/${id}/package.json?version=2`, ada)).status, 200, "the author keeps it");
    assert.is((await see(`/studies/${id}`)).status, 200);
    // A number is not given twice.
    await publish({ title: "Heron third" }, id);
    assert.is((await api(`/${id}`)).json.version, 3);

    // A moderator removes all of it, and takes that back.
    assert.is((await post(`/studies/${id}/remove`, ben, { reason })).status, 404);
    assert.is((await post(`/studies/${id}/remove`, mod, { reason })).status, 303);
    for (const path of [`/${id}`, `/${id}/versions/1`, `/${id}/versions/3`, `/${id}/discussion`]) {
      const { status, json } = await api(path);
      assert.is(`${status} ${json.code}`, "410 removed", path);
    }
    assert.equal([(await api("")).json.total, (await api("?q=heron")).json.total], [1, 0]);
    assert.is((await api("?q=kestrel")).json.items[0].id, other);
    assert.is((await post(`/studies/${id}/upvote`, ben, { wanted: "yes" })).status, 404);
    assert.is((await post(`/studies/${id}/comments`, ben, { body: "x" })).status, 404);
    assert.is((await post(`/studies/${id}/reinstate`, mod)).status, 303);
    assert.equal([(await api(`/${id}`)).json.version, (await api("?q=heron")).json.total], [3, 1]);
    assert.is((await api(`/${id}/versions/2`)).json.code, "withdrawn", "what its author withdrew stays so");
    assert.is((await post(`/studies/${id}/reinstate`, mod, { version: "2" })).status, 409);

    // The last versions go one by one: then the study is gone.
    for (const version of ["3", "1"]) {
      assert.is((await post(`/studies/${id}/withdraw`, ada, { version, reason })).status, 303);
    }
    assert.equal([(await api(`/${id}`)).status, (await api("")).json.total], [410, 1]);
    const counters = await store.db
      .selectFrom("counters")
      .selectAll()
      .where("name", "=", "studies")
      .execute();
    assert.is(counters[0]?.value, 1);
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: deleting, hiding, showing and erasing comments settles reports`, async () => {
    const { service, store, ada, ben, mod, publish, comment, post, see, api } = await world(database.fresh());
    const id = await publish();
    const one = await comment(id, ben, "first words");
    const two = await comment(id, ben, "second words");
    const three = await comment(id, ada, "third words");
    const said = async () =>
      (await api(`/${id}/discussion`)).json.comments.map((c: { body: string; state?: string }) => [
        c.body,
        c.state,
      ]);
    assert.is((await post(`/comments/${one}/report`, ada, { reason: "rude" })).status, 303);
    assert.is((await post(`/comments/${one}/report`, ada, { reason: "very rude" })).status, 303);
    assert.is((await post(`/studies/${id}/report`, ben, { reason: "copied" })).status, 303);
    assert.is((await post(`/comments/${randomUUID()}/report`, ben, { reason: "x" })).status, 404);
    const queue = await see("/moderation", mod);
    assert.equal(
      [queue.status, /2 open reports/.test(queue.text), /very rude/.test(queue.text)],
      [200, true, true],
    );
    assert.is((await see("/moderation", ada)).status, 404);
    assert.is((await post(`/comments/${one}/hide`, mod, { reason: "insult" })).status, 303);
    assert.is((await post(`/comments/${two}/delete`, ada)).status, 404, "another's");
    assert.is((await post(`/comments/${two}/delete`, ben)).status, 303);
    assert.is((await post(`/comments/${three}/erase`, mod, { reason: "an address" })).status, 303);
    assert.equal(await said(), [
      ["", "hidden"],
      ["", "deleted"],
      ["", "deleted"],
    ]);
    const page = (await see(`/studies/${id}`)).text;
    for (const words of ["first words", "second words", "third words"]) assert.not.ok(page.includes(words));
    assert.ok(page.includes("Hidden by a moderator: insult"));
    assert.ok(
      (await see(`/studies/${id}`, mod)).text.includes("first words"),
      "moderators see what is hidden",
    );
    assert.is((await post(`/studies/${id}/comments`, ben, { body: "x", parent: one })).status, 404);
    assert.is((await post(`/comments/${one}/show`, mod)).status, 303);
    assert.equal((await said())[0], ["first words", undefined]);
    assert.is((await post(`/comments/${two}/show`, mod)).status, 409, "a deleted comment stays deleted");
    const left = await store.db
      .selectFrom("comments")
      .select("body")
      .where("id", "in", [two, three])
      .execute();
    assert.equal(left, [{ body: "" }, { body: "" }]);
    const open = () => store.db.selectFrom("reports").select("id").where("closed_at", "is", null).execute();
    assert.is((await open()).length, 1, "hiding closed the comment's report");
    const [{ id: report }] = (await open()) as [{ id: string }];
    assert.is((await post(`/reports/${report}/dismiss`, ben)).status, 404);
    assert.is((await post(`/reports/${report}/dismiss`, mod)).status, 303);
    assert.is((await open()).length, 0);
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: suspension ends tokens, sessions and forms; disapproval ends tokens`, async () => {
    const { service, store, ada, ben, mod, token, publish, post, see, api } = await world(database.fresh());
    const id = await publish();
    const suspended = await post(`/accounts/${ada.id}/suspend`, mod, { reason: "spam" });
    assert.equal([suspended.status, suspended.headers.location], [303, "/moderation/account?handle=ada"]);
    assert.is((await service.api(token, "/api/v1/studies")).json.code, "token_revoked");
    assert.is((await see("/drafts", ada)).status, 303, "signed out");
    assert.is((await post(`/studies/${id}/comments`, ada, { body: "x" })).status, 403);
    // Requests already in progress fail as well.
    for (const work of [
      () => service.token(ada.id),
      () => addComment(store, { accountId: ada.id, name: "Ada" }, id, null, "late"),
    ]) {
      await work().then(
        () => assert.unreachable(),
        (error) => assert.is(error.name, "AccountSuspended"),
      );
    }
    assert.is((await post(`/accounts/${mod.id}/suspend`, mod, { reason: "x" })).status, 403);
    assert.is(await suspend(store, "operator", mod, "x"), "changed", "the operator may");
    assert.is((await see("/moderation", mod)).status, 303);
    // Taking an approval back revokes the tokens that came with it.
    const reader = await service.account("Rae");
    const made = await service.token(reader.id);
    assert.is((await service.api(made.token, "/api/v1/studies")).status, 200);
    assert.ok(await disapprove(store, "agent", "@rae"));
    assert.is((await service.api(made.token, "/api/v1/studies")).json.code, "token_revoked");
    assert.is((await post("/agents", reader, { name: "n", days: "1", scope: "public:read" })).status, 403);
    assert.is((await see(`/studies/${id}`, ben)).status, 200, "published studies stay");
    assert.is((await api("")).status, 401);
    await service.close();
  });

  test(`${database.name}: equal names get two handles; a reused login has no approval`, async () => {
    const { service, store } = await world(database.fresh());
    const person = (subject: string, login: string | null, email: string | null = null) =>
      signInAccount(store, { issuer: "github", subject, name: "Same Name", email, login });
    const made = await Promise.all(["1", "2", "3", "4"].map((subject) => person(subject, null)));
    assert.is(new Set(made.map(({ handle }) => handle)).size, 4);
    assert.is((await person("1", null)).handle, made[0]!.handle);
    const octocat = await person("7", "octocat");
    await approve(store, "agent", "github:octocat");
    await person("7", "renamed");
    const thief = await person("8", "octocat");
    assert.equal([octocat.handle, thief.handle], ["octocat", "octocat-2"]);
    const holders = await store.db
      .selectFrom("approvals")
      .select("account_id")
      .where("identity", "=", "github:octocat")
      .execute();
    assert.equal(holders, [{ account_id: octocat.id }]);
    // A name that two show is refused, with both named, in one order also where they came at once.
    const third = await person("9", "octocat");
    const both = store.db.updateTable("accounts").where("id", "in", [thief.id, third.id]);
    await both.set({ created_at: 1 }).execute();
    await approve(store, "moderator", "github:octocat").then(
      () => assert.unreachable(),
      (error) => assert.match(error.message, /^2 accounts match github:octocat: @octocat-2 .* @octocat-3/),
    );
    assert.is((await accountNamed(store.db, "@Octocat-2")).id, thief.id);
    await approve(store, "moderator", "@nobody").then(
      () => assert.unreachable(),
      (error) => assert.is(error.message, "No account matches @nobody."),
    );
    await service.close();
  });

  test(`${database.name}: a change made by one process is seen by another's next request`, async () => {
    const location = database.fresh();
    const { service, store, ada, ben, mod, token, save, publish, comment, post } = await world(location);
    const other = await startService(location);
    const read = (path: string) => other.api(token, `/api/v1/studies${path}`);
    const page = async (path: string, who: Person) =>
      (await other.call(path, { headers: { Cookie: who.cookie } })).status;
    const reason = "because";
    assert.is(
      (await read("?q=heron")).json.total,
      0,
      "asked before, so that there is something old to be kept",
    );
    const id = await publish({ title: "Heron" });
    assert.equal([(await read("?q=heron")).json.total, (await read("")).json.total], [1, 1]);
    await publish({ title: "Kestrel" }, id);
    assert.equal([(await read("?q=heron")).json.total, (await read(`/${id}`)).json.version], [0, 2]);
    const said = await comment(id, ben, "words");
    assert.is((await read(`/${id}/discussion`)).json.comments[0].body, "words");
    await post(`/comments/${said}/hide`, mod, { reason });
    assert.is((await read(`/${id}/discussion`)).json.comments[0].state, "hidden");
    await post(`/studies/${id}/upvote`, ben, { wanted: "yes" });
    assert.is((await read("")).json.items[0].upvotes, 1);
    await post(`/studies/${id}/withdraw`, ada, { version: "2", reason });
    assert.equal([(await read("?q=heron")).json.total, (await read("?q=kestrel")).json.total], [1, 0]);
    await post(`/studies/${id}/remove`, mod, { reason });
    assert.equal([(await read(`/${id}`)).json.code, (await read("")).json.total], ["removed", 0]);
    await post(`/studies/${id}/reinstate`, mod);
    assert.is((await read(`/${id}`)).status, 200);
    const draft = await save();
    await post(`/drafts/${draft.id}/delete`, ada);
    assert.is((await read(`/${draft.id}`)).status, 404);
    assert.is(await page("/moderation", ben), 404);
    await approve(store, "moderator", "@ben");
    assert.is(await page("/moderation", ben), 200);
    await disapprove(store, "moderator", "@ben");
    assert.is(await page("/moderation", ben), 404);
    await post("/sign-out", ben);
    assert.is(await page("/account", ben), 303, "signed out everywhere");
    await post(`/accounts/${ada.id}/suspend`, mod, { reason });
    assert.is((await read("")).json.code, "token_revoked");
    assert.is(await page("/account", ada), 303);
    assert.equal([...service.log, ...other.log], []);
    await other.close();
    await service.close();
  });

  test(`${database.name}: every form against every visitor and state`, async () => {
    const { service, store, ada, ben, mod, publish, save, comment, post } = await world(database.fresh());
    const eve = await service.account("Eve", []);
    const suspended = await service.account("Sue");
    await suspend(store, "operator", suspended, "spam");
    const visitors: [name: string, who: Person | null][] = [
      ["nobody", null],
      ["owner", ada],
      ["another", eve],
      ["moderator", mod],
      ["suspended", suspended],
    ];
    const reason = "because";
    const states = ["published", "withdrawn", "removed", "unknown"] as const;
    type State = (typeof states)[number];
    /** A study (Ada's, with a comment of Ben's that Ada's forms treat as another's) in a state. */
    const make = async (state: State) => {
      const study = state === "unknown" ? randomUUID() : await publish();
      const said = state === "unknown" ? randomUUID() : await comment(study, ben);
      const own = state === "unknown" ? randomUUID() : await comment(study, ada);
      if (state === "withdrawn") await post(`/studies/${study}/withdraw`, ada, { reason });
      if (state === "removed") await post(`/studies/${study}/remove`, mod, { reason });
      return { study, said, own };
    };
    type Made = Awaited<ReturnType<typeof make>>;
    const up = (state: State) => state === "published";
    const notModerator = (who: string) => (who === "moderator" ? null : 404);
    /** Path, form, and expected response by sender and state of the study. */
    const forms: [string, (made: Made) => string, object, (who: string, state: State) => number][] = [
      [
        "comment",
        ({ study }) => `/studies/${study}/comments`,
        { body: "x" },
        (_, state) => (up(state) ? 303 : 404),
      ],
      [
        "upvote",
        ({ study }) => `/studies/${study}/upvote`,
        { wanted: "yes" },
        (who, state) => (!up(state) ? 404 : who === "owner" ? 403 : 303),
      ],
      [
        "report",
        ({ study }) => `/studies/${study}/report`,
        { reason },
        (_, state) => (up(state) ? 303 : 404),
      ],
      [
        "withdraw",
        ({ study }) => `/studies/${study}/withdraw`,
        { reason },
        (who, state) => (who !== "owner" || state === "unknown" ? 404 : up(state) ? 303 : 409),
      ],
      [
        "remove",
        ({ study }) => `/studies/${study}/remove`,
        { reason },
        (who, state) => notModerator(who) ?? (state === "unknown" ? 404 : up(state) ? 303 : 409),
      ],
      [
        "reinstate",
        ({ study }) => `/studies/${study}/reinstate`,
        {},
        (who, state) => notModerator(who) ?? (state === "unknown" ? 404 : state === "removed" ? 303 : 409),
      ],
      [
        "delete comment",
        ({ own }) => `/comments/${own}/delete`,
        {},
        (who, state) => (who === "owner" && state !== "unknown" ? 303 : 404),
      ],
      [
        "report comment",
        ({ said }) => `/comments/${said}/report`,
        { reason },
        (_, state) => (state === "unknown" ? 404 : 303),
      ],
      [
        "hide comment",
        ({ said }) => `/comments/${said}/hide`,
        { reason },
        (who, state) => notModerator(who) ?? (state === "unknown" ? 409 : 303),
      ],
      ["show comment", ({ said }) => `/comments/${said}/show`, {}, (who) => notModerator(who) ?? 409],
      [
        "erase comment",
        ({ said }) => `/comments/${said}/erase`,
        { reason },
        (who, state) => notModerator(who) ?? (state === "unknown" ? 409 : 303),
      ],
      ["dismiss", () => `/reports/${randomUUID()}/dismiss`, {}, (who) => notModerator(who) ?? 409],
      ["suspend", () => `/accounts/${randomUUID()}/suspend`, { reason }, (who) => notModerator(who) ?? 409],
      ["unsuspend", () => `/accounts/${randomUUID()}/reinstate`, {}, (who) => notModerator(who) ?? 409],
    ];
    const kept = new Map<State, Made>();
    let cells = 0;
    for (const [name, path, form, expected] of forms) {
      for (const state of states) {
        for (const [who, person] of visitors) {
          const made = kept.get(state) ?? (await make(state));
          const answer = await post(path(made), person, form as Record<string, string>);
          // A refused request changed nothing.
          if (answer.status === 303) kept.delete(state);
          else kept.set(state, made);
          const wanted = who === "nobody" || who === "suspended" ? 403 : expected(who, state);
          assert.is(answer.status, wanted, `${name} / ${who} / ${state}`);
          cells += 1;
        }
      }
      // Limits have their own test.
      await store.db.deleteFrom("limits").execute();
    }
    assert.is(cells, 14 * 4 * 5);

    // Every form of the site also refuses requests without its token, whoever sends them.
    const { study, said } = await make("published");
    const draft = await save();
    const ids: Record<string, string> = { studies: study, comments: said, drafts: draft.id };
    let refused = 0;
    for (const [method, pattern] of routes) {
      if (method !== "POST" || pattern.includes("sign-in")) continue;
      const path = pattern.replace(":id", ids[pattern.split("/")[1] as string] ?? randomUUID());
      for (const who of [ada, mod]) {
        for (const csrf of ["", "x".repeat(43)]) {
          const form = {
            csrf,
            reason,
            body: "x",
            reviewed: "yes",
            sha256: draft.package_sha256,
            wanted: "yes",
          };
          assert.is((await post(path, who, form)).status, 403, path);
          refused += 1;
        }
      }
      await store.db.deleteFrom("limits").execute();
    }
    assert.is(refused, 31 * 4, "every form that there is");
    assert.equal(service.log, []);
    await service.close();
  });
}

test.after(() => databases.close());
test.run();
