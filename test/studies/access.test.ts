/**
 * The access matrix: route x credential x ownership x headers x what became of a study, each cell computed from the
 * contract's order; and the website's pages of the same studies, by visitor.
 */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { approve } from "../../src/studies/store/approvals.js";
import { addComment, deleteComment } from "../../src/studies/store/discussion.js";
import { remove, setCommentHidden, suspend, withdraw } from "../../src/studies/store/moderation.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { newToken, revokeToken } from "../../src/studies/store/tokens.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { startService } from "./support/service.js";

const databases = await startDatabases();
const body = JSON.stringify(samplePackage());

type Outcome = `${number} ${string}`;

interface Route {
  name: string;
  method: string;
  path: string;
  body?: string;
  /** Refused before anything else is looked at. */
  refused?: Outcome;
  scope?: "public:read" | "drafts:write";
  /** Expected response for a token with the scope, by the token's owner. */
  answer?: (owner: "creator" | "same account" | "another account") => Outcome;
}

/** What reading a study answers in a state of it: the study, its versions 1 and 2, its discussion. */
const reads = ["", "/versions/1", "/versions/2", "/discussion"] as const;
const [yes, no, away, out] = ["200 ", "404 not_found", "410 withdrawn", "410 removed"] as const;
const states = {
  published: [yes, yes, no, yes],
  draft: ["own", no, no, no],
  unknown: [no, no, no, no],
  // A second version, and the draft that became it, under its own id.
  revised: [yes, yes, yes, yes],
  "revised's draft": [yes, no, no, no],
  "first withdrawn": [yes, away, yes, yes],
  "second removed": [yes, yes, out, yes],
  "second removed's draft": [out, no, no, no],
  withdrawn: [away, away, no, away],
  removed: [out, out, no, out],
} as const;
type State = keyof typeof states;

interface Credential {
  name: string;
  header: string | null;
  refused?: Outcome;
  scopes?: string[];
  owner?: "creator" | "same account" | "another account";
}

for (const database of databases.all) {
  test(`${database.name}: every cell of the access matrix`, async () => {
    const clock = testClock();
    const service = await startService(database.fresh(), { store: { dialect: clock.dialect } });
    const { store } = service.running.service;
    const ada = await service.account("Ada");
    const ben = await service.account("Ben");
    const both = ["public:read", "drafts:write"] as const;
    const creator = await service.token(ada.id, [...both]);
    const save = async () =>
      (await service.api(creator.token, "/api/v1/studies", { method: "POST", body })).json;
    const draft = await save();
    const publish = async (replaces: string | null = null) => {
      const saved = await save();
      const reviewed = {
        accountId: ada.id,
        draftId: saved.id,
        reviewedSha256: saved.package_sha256,
        replaces,
      };
      const { outcome } = await publishDraft(store, reviewed);
      assert.is(outcome, "published");
      // More than ten drafts a day are needed here.
      await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).execute();
      return saved.id as string;
    };
    const ids = {} as Record<State, string>;
    for (const state of [
      "published",
      "revised",
      "first withdrawn",
      "second removed",
      "withdrawn",
      "removed",
    ] as const)
      ids[state] = await publish();
    ids.draft = draft.id;
    ids.unknown = randomUUID();
    ids["revised's draft"] = await publish(ids.revised);
    ids["second removed's draft"] = await publish(ids["second removed"]);
    await publish(ids["first withdrawn"]);
    const of = (state: State, version: number | null) => ({ studyId: ids[state], version });
    await withdraw(store, ada.id, of("first withdrawn", 1), "wrong");
    await remove(store, "operator", of("second removed", 2), "copied");
    await withdraw(store, ada.id, of("withdrawn", null), "wrong");
    await remove(store, "operator", of("removed", null), "copied");
    const said = [];
    for (const words of ["words that stand", "words that are hidden", "words that are deleted"])
      said.push(await addComment(store, { accountId: ben.id, name: "Ben" }, ids.published, null, words));
    const [, hidden, deleted] = said.map((one) => (one as { id: string }).id) as [string, string, string];
    await setCommentHidden(store, "operator", hidden, "rude");
    await deleteComment(store, ben.id, deleted);
    const sue = await service.account("Sue");
    const suspended = await service.token(sue.id, [...both]);
    await suspend(store, "operator", sue, "spam");
    const revoked = await service.token(ada.id);
    await revokeToken(store, ada.id, revoked.id);
    const expired = await service.token(ada.id, [...both], 1);
    const exhausted = await service.token(ada.id);
    const exhaust = async () => {
      const recent = JSON.stringify(Array.from({ length: 60 }, () => clock.ms));
      await store.db.updateTable("tokens").set({ recent }).where("id", "=", exhausted.id).execute();
    };
    clock.ms += 86_400_000;
    const bearer = async (accountId: string, scopes: ("public:read" | "drafts:write")[]) =>
      `Bearer ${(await service.token(accountId, scopes)).token}`;

    const readable = (owner: string): Outcome => (owner === "creator" ? "200 " : "404 not_found");
    const routes: Route[] = [
      { name: "list", method: "GET", path: "/api/v1/studies", scope: "public:read", answer: () => "200 " },
      {
        name: "bad list",
        method: "GET",
        path: "/api/v1/studies?limit=x",
        scope: "public:read",
        answer: () => "400 invalid_parameter",
      },
      {
        name: "bad draft",
        method: "POST",
        path: "/api/v1/studies",
        body: "{",
        scope: "drafts:write",
        answer: () => "400 invalid_json",
      },
      ...Object.entries(states).flatMap(([state, outcomes]) =>
        reads.map((read, place): Route => {
          const outcome = outcomes[place] as (typeof outcomes)[number];
          return {
            name: `${state}${read}`,
            method: "GET",
            path: `/api/v1/studies/${ids[state as State]}${read}`,
            scope: "public:read",
            answer: (owner) => (outcome === "own" ? readable(owner) : outcome),
          };
        }),
      ),
      {
        name: "no id",
        method: "GET",
        path: "/api/v1/studies/x",
        scope: "public:read",
        answer: () => "400 invalid_parameter",
      },
      {
        name: "no version",
        method: "GET",
        path: `/api/v1/studies/${ids.published}/versions/0`,
        scope: "public:read",
        answer: () => "400 invalid_parameter",
      },
      { name: "no route", method: "GET", path: "/api/v1/drafts", refused: "404 not_found" },
      {
        name: "no method",
        method: "DELETE",
        path: `/api/v1/studies/${draft.id}`,
        refused: "405 method_not_allowed",
      },
      {
        name: "publish by PUT",
        method: "PUT",
        path: "/api/v1/studies",
        body,
        refused: "405 method_not_allowed",
      },
    ];
    const credentials: Credential[] = [
      { name: "none", header: null, refused: "401 token_missing" },
      { name: "another scheme", header: "Basic YTpi", refused: "401 token_invalid" },
      { name: "garbage", header: "Bearer x", refused: "401 token_invalid" },
      { name: "unknown", header: `Bearer ${newToken()}`, refused: "401 token_invalid" },
      { name: "expired", header: `Bearer ${expired.token}`, refused: "401 token_expired" },
      { name: "revoked", header: `Bearer ${revoked.token}`, refused: "401 token_revoked" },
      { name: "suspended", header: `Bearer ${suspended.token}`, refused: "401 token_revoked" },
      { name: "exhausted", header: `Bearer ${exhausted.token}`, refused: "429 request_quota" },
      { name: "creator", header: `Bearer ${creator.token}`, scopes: [...both], owner: "creator" },
      {
        name: "same account",
        header: await bearer(ada.id, [...both]),
        scopes: [...both],
        owner: "same account",
      },
      {
        name: "reader",
        header: await bearer(ben.id, ["public:read"]),
        scopes: ["public:read"],
        owner: "another account",
      },
      {
        name: "writer",
        header: await bearer(ben.id, ["drafts:write"]),
        scopes: ["drafts:write"],
        owner: "another account",
      },
    ];
    const kinds: { name: string; headers: Record<string, string> }[] = [
      { name: "plain", headers: {} },
      { name: "origin", headers: { Origin: "https://evil.example" } },
      { name: "own origin", headers: { Origin: service.running.origin } },
      { name: "cookie", headers: { Cookie: ada.cookie } },
    ];
    // Nothing that the API describes is left out.
    const { paths } = (await service.call("/api/v1/openapi.json")).json as { paths: Record<string, object> };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{.*?\}/g, "{}")}`),
    );
    const asked = routes.map(({ method, path }) => {
      const [plain] = path.split("?") as [string];
      return `${method} ${plain.replace(/\/studies\/[^/]+/, "/studies/{}").replace(/\/versions\/.+/, "/versions/{}")}`;
    });
    assert.equal(
      described.filter((one) => one.includes("/studies") && !asked.includes(one)),
      [],
    );
    let cells = 0;
    const texts = new Map<string, string>();
    for (const route of routes) {
      for (const credential of credentials) {
        for (const kind of kinds) {
          // What browsers send is refused before anything is looked up: once for each kind of route.
          if (kind.name !== "plain" && Object.keys(states).indexOf(route.name.replace(/\/.*/, "")) > 2)
            continue;
          // Nothing but the exhausted token runs out of its quota.
          clock.ms += 2000;
          if (credential.name === "exhausted") await exhaust();
          const expected =
            route.refused ??
            (kind.name === "plain" ? undefined : "403 browser_request") ??
            credential.refused ??
            (credential.scopes?.includes(route.scope as string) ? undefined : "403 scope_missing") ??
            route.answer?.(credential.owner as "creator");
          const answer = await service.call(route.path, {
            method: route.method,
            body: route.body,
            headers: {
              ...kind.headers,
              ...(credential.header === null ? {} : { Authorization: credential.header }),
              ...(route.body === undefined ? {} : { "Content-Type": "application/json" }),
            },
          });
          const cell = `${route.name} / ${credential.name} / ${kind.name}`;
          assert.is(`${answer.status} ${answer.json?.code ?? ""}`, expected, cell);
          if (answer.status === 410)
            assert.is(answer.json.reason, expected === away ? "wrong" : "copied", cell);
          if (answer.status === 200) texts.set(cell, answer.text);
          cells += 1;
        }
      }
    }
    assert.is(cells, 12 * ((3 * 4 + 8) * 4 + 7 * 4));
    const discussions = [...texts].filter(([cell]) => cell.startsWith("published/discussion"));
    assert.is(discussions.length, 3, "readers of each version");
    for (const [, text] of discussions) {
      const { comments } = JSON.parse(text) as { comments: { body: string; state?: string }[] };
      assert.equal(
        comments.map((one) => [one.body, one.state]),
        [
          ["words that stand", undefined],
          ["", "hidden"],
          ["", "deleted"],
        ],
      );
    }

    // The website, by visitor: authors and moderators still see content that was taken down.
    const mod = await service.account("Mod", []);
    await approve(store, "moderator", "@mod");
    const visitors = { nobody: null, owner: ada, another: ben, moderator: mod, suspended: sue };
    let pages = 0;
    for (const [state, outcomes] of Object.entries(states)) {
      for (const [place, query] of ["", "?version=1", "?version=2"].entries()) {
        for (const [who, person] of Object.entries(visitors)) {
          for (const file of ["", "/package.json"]) {
            const path = `/studies/${ids[state as State]}${file}${query}`;
            const headers: Record<string, string> = person === null ? {} : { Cookie: person.cookie };
            const { status, text } = await service.call(path, { headers });
            const outcome = outcomes[place] as string;
            // Under a draft's id the site has the draft's page alone.
            const plain = outcome === "own" || state.endsWith("draft") ? 404 : Number(outcome.slice(0, 3));
            const seen = plain === 410 && (who === "owner" || who === "moderator") ? 200 : plain;
            assert.is(status, seen, `${path} (${state}) / ${who}`);
            if (state === "published" && status === 200 && file === "") {
              const found = ["stand", "are hidden", "are deleted"].map((end) =>
                text.includes(`words that ${end}`),
              );
              assert.equal(found, [true, who === "moderator", false], who);
            }
            pages += 1;
          }
        }
      }
    }
    assert.is(pages, 10 * 3 * 5 * 2);
    assert.equal(service.log, []);
    await service.close();
  });
}

test.after(() => databases.close());
test.run();
