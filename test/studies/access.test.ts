/** The access matrix: route x credential x ownership x headers, each cell computed from the contract's order. */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
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
  /** What a token with the scope gets, by whose token it is. */
  answer?: (owner: "creator" | "same account" | "another account") => Outcome;
}

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
    const published = await save();
    await publishDraft(store, {
      accountId: ada.id,
      draftId: published.id,
      reviewedSha256: published.package_sha256,
      replaces: null,
    });
    const revoked = await service.token(ada.id);
    await revokeToken(store, ada.id, revoked.id);
    const expired = await service.token(ada.id, [...both], 1);
    const exhausted = await service.token(ada.id);
    const later = JSON.stringify(Array.from({ length: 60 }, () => clock.ms + 1e9));
    await store.db.updateTable("tokens").set({ recent: later }).where("id", "=", exhausted.id).execute();
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
      {
        name: "published",
        method: "GET",
        path: `/api/v1/studies/${published.id}`,
        scope: "public:read",
        answer: () => "200 ",
      },
      {
        name: "draft",
        method: "GET",
        path: `/api/v1/studies/${draft.id}`,
        scope: "public:read",
        answer: readable,
      },
      {
        name: "unknown",
        method: "GET",
        path: `/api/v1/studies/${randomUUID()}`,
        scope: "public:read",
        answer: () => "404 not_found",
      },
      {
        name: "no id",
        method: "GET",
        path: "/api/v1/studies/x",
        scope: "public:read",
        answer: () => "400 invalid_parameter",
      },
      {
        name: "discussion",
        method: "GET",
        path: `/api/v1/studies/${published.id}/discussion`,
        scope: "public:read",
        answer: () => "200 ",
      },
      {
        name: "draft's discussion",
        method: "GET",
        path: `/api/v1/studies/${draft.id}/discussion`,
        scope: "public:read",
        answer: () => "404 not_found",
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
    let cells = 0;
    for (const route of routes) {
      for (const credential of credentials) {
        for (const kind of kinds) {
          // Nothing but the exhausted token runs out of its quota.
          clock.ms += 2000;
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
          cells += 1;
        }
      }
    }
    assert.is(cells, 12 * 11 * 4);
    assert.equal(service.log, []);
    await service.close();
  });
}

test.after(() => databases.close());
test.run();
