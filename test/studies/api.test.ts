import { createHash, randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  Discussion,
  DraftCreated,
  ErrorBody,
  errorCodes,
  StudyEnvelope,
  StudyPage,
} from "../../src/contracts/studies/index.js";
import { addComment } from "../../src/studies/store/discussion.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { revokeToken } from "../../src/studies/store/tokens.js";
import { assertLinted } from "../support/lint-openapi.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { type Answer, startService, type TestService } from "./support/service.js";

const databases = await startDatabases();
const shapes = new Map(
  [StudyPage, StudyEnvelope, Discussion, DraftCreated, ErrorBody].map((schema) => [
    schema as TSchema,
    Compile(schema as TSchema),
  ]),
);

function follows(schema: TSchema, answer: Answer): void {
  assert.ok(shapes.get(schema)?.Check(answer.json), answer.text.slice(0, 300));
  assert.is(answer.headers["content-type"], "application/json; charset=utf-8");
  assert.is(answer.headers["cache-control"], "no-store");
}

function refused(answer: Answer, status: number, code: string, field?: string): void {
  assert.is(`${answer.status} ${answer.json?.code}`, `${status} ${code}`, answer.text);
  follows(ErrorBody, answer);
  assert.is(errorCodes[code as keyof typeof errorCodes], status);
  if (field !== undefined) assert.is(answer.json.field, field);
  for (const name of ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]) {
    assert.match(String(answer.headers[name]), /^\d+$/);
  }
}

async function publish(service: TestService, accountId: string, token: string, study = samplePackage()) {
  const saved = await service.api(token, "/api/v1/studies", { method: "POST", body: JSON.stringify(study) });
  assert.is(saved.status, 201, saved.text);
  const published = await publishDraft(service.running.service.store, {
    accountId,
    draftId: saved.json.id,
    reviewedSha256: saved.json.package_sha256,
    replaces: null,
  });
  assert.is(published.outcome, "published");
  return saved.json.id as string;
}

for (const database of databases.all) {
  const on = (name: string, body: (service: TestService) => Promise<void>) =>
    test(`${database.name}: ${name}`, async () => {
      const service = await startService(database.fresh());
      try {
        await body(service);
        assert.equal(service.log, [], "nothing failed inside");
      } finally {
        await service.close();
      }
    });

  on("a draft's way: saved, read back exactly, published, listed, discussed", async (service) => {
    const ada = await service.account("Ada");
    const { token } = await service.token(ada.id);
    const body = `  ${JSON.stringify(samplePackage({ title: "Ünï \u0000 \ud800 😀" }), null, 1)}\n`;
    const saved = await service.api(token, "/api/v1/studies", { method: "POST", body });
    assert.is(saved.status, 201);
    follows(DraftCreated, saved);
    assert.is(saved.json.review_url, `${service.running.origin}/drafts/${saved.json.id}`);
    assert.is(saved.json.package_sha256, createHash("sha256").update(body).digest("hex"));
    const draft = await service.api(token, `/api/v1/studies/${saved.json.id.toUpperCase()}`);
    follows(StudyEnvelope, draft);
    assert.is(draft.json.visibility, "private_draft");
    assert.ok(draft.text.endsWith(`"package":${body}}`));
    assert.is(draft.headers["x-content-sha256"], createHash("sha256").update(draft.bytes).digest("hex"));
    refused(await service.api(token, `/api/v1/studies/${saved.json.id}/discussion`), 404, "not_found");
    assert.is((await service.api(token, "/api/v1/studies")).json.total, 0);
    const { store } = service.running.service;
    await publishDraft(store, {
      accountId: ada.id,
      draftId: saved.json.id,
      reviewedSha256: saved.json.package_sha256,
      replaces: null,
    });
    const list = await service.api(token, "/api/v1/studies?q=uni&limit=1");
    follows(StudyPage, list);
    assert.is(list.json.items[0].id, saved.json.id);
    assert.is(list.json.next_offset, null);
    const study = await service.api(token, `/api/v1/studies/${saved.json.id}`);
    follows(StudyEnvelope, study);
    assert.equal([study.json.visibility, study.json.version], ["published", 1]);
    const who = { accountId: ada.id, name: "Ada" };
    for (let count = 0; count < 51; count += 1) await addComment(store, who, saved.json.id, null, `${count}`);
    const discussion = await service.api(token, `/api/v1/studies/${saved.json.id}/discussion`);
    follows(Discussion, discussion);
    assert.equal([discussion.json.total, discussion.json.next_offset], [51, 50]);
    const rest = await service.api(token, `/api/v1/studies/${saved.json.id}/discussion?offset=50`);
    assert.equal([rest.json.comments.length, rest.json.next_offset], [1, null]);
    assert.is((await service.api(token, "/api/v1/studies")).json.items[0].comment_count, 51);
  });

  on("checks come in order: route, browser, token, quota, scope, input, object", async (service) => {
    const ada = await service.account("Ada");
    const reader = await service.token(ada.id, ["public:read"]);
    const writer = await service.token(ada.id, ["drafts:write"]);
    const bad = { Origin: "https://evil.example", Cookie: "a=b" };
    refused(await service.call("/api/v1/nothing", { headers: bad }), 404, "not_found");
    refused(await service.call("/api", { headers: bad }), 404, "not_found");
    for (const path of [
      "/api/v1/studies/",
      "/api/v1/Studies",
      "/api/v1/%73tudies",
      "/api/v1/studies/a/b",
      "/api/v2/studies",
    ]) {
      refused(await service.call(path), 404, "not_found");
    }
    const wrong = await service.call("/api/v1/studies", { method: "DELETE", headers: bad });
    refused(wrong, 405, "method_not_allowed");
    assert.is(wrong.headers.allow, "GET, HEAD, POST");
    refused(
      await service.call("/api/v1/studies/x", { method: "POST", body: "{}" }),
      405,
      "method_not_allowed",
    );
    refused(
      await service.call("/api/v1/studies?limit=0", { headers: bad }),
      403,
      "browser_request",
      "Origin",
    );
    const browsers: Record<string, string>[] = [
      { Origin: "null" },
      { Cookie: "" },
      { Origin: service.running.origin },
    ];
    for (const headers of browsers) {
      refused(await service.api(reader.token, "/api/v1/studies", { headers }), 403, "browser_request");
    }
    refused(await service.call("/api/v1/studies?limit=0"), 401, "token_missing");
    const changed = reader.token.slice(0, -1) + (reader.token.endsWith("a") ? "b" : "a");
    for (const value of [changed, "", "x y", "tpl_", `${reader.token}!`]) {
      const answer = await service.call("/api/v1/studies", { headers: { Authorization: `Bearer ${value}` } });
      refused(answer, 401, "token_invalid");
      assert.match(String(answer.headers["www-authenticate"]), /^Bearer /);
    }
    refused(
      await service.call("/api/v1/studies", { headers: { Authorization: `Basic ${reader.token}` } }),
      401,
      "token_invalid",
    );
    const ok = await service.call("/api/v1/studies", {
      headers: { Authorization: `bEARER  ${reader.token}` },
    });
    assert.is(ok.status, 200);
    refused(
      await service.api(reader.token, "/api/v1/studies", { method: "POST", body: "!" }),
      403,
      "scope_missing",
      "drafts:write",
    );
    const scope = await service.api(writer.token, "/api/v1/studies/not-an-id");
    refused(scope, 403, "scope_missing", "public:read");
    assert.ok(scope.json.error.includes(`${service.running.origin}/agents`));
    refused(await service.api(reader.token, "/api/v1/studies/not-an-id"), 400, "invalid_parameter", "id");
    refused(
      await service.api(reader.token, `/api/v1/studies/${randomUUID()}?x=1`),
      400,
      "unknown_parameter",
      "x",
    );
    refused(await service.api(reader.token, `/api/v1/studies/${randomUUID()}`), 404, "not_found");
    await revokeToken(service.running.service.store, ada.id, reader.id);
    refused(await service.api(reader.token, "/api/v1/studies"), 401, "token_revoked");
    const head = await service.api((await service.token(ada.id)).token, "/api/v1/studies", {
      method: "HEAD",
    });
    assert.equal([head.status, head.text], [200, ""]);
  });

  on("a draft of another token and an unknown id get the same answer, byte for byte", async (service) => {
    const ada = await service.account("Ada");
    const [mine, same] = [await service.token(ada.id), await service.token(ada.id)];
    const ben = await service.account("Ben");
    const other = await service.token(ben.id);
    const body = JSON.stringify(samplePackage());
    const draft = (await service.api(mine.token, "/api/v1/studies", { method: "POST", body })).json.id;
    for (const { token } of [same, other]) {
      for (const path of ["", "/discussion"]) {
        const hidden = await service.api(token, `/api/v1/studies/${draft}${path}`);
        const unknown = await service.api(token, `/api/v1/studies/${randomUUID()}${path}`);
        refused(hidden, 404, "not_found");
        assert.ok(hidden.bytes.equals(unknown.bytes));
        const stable = ({ headers }: Answer) =>
          Object.entries(headers).filter(
            ([name]) => !["date", "ratelimit-remaining", "ratelimit-reset"].includes(name),
          );
        assert.equal(stable(hidden), stable(unknown));
      }
    }
  });

  on("query parameters are strict", async (service) => {
    const { token } = await service.token((await service.account("Ada")).id);
    const bad: [string, string, string][] = [
      ["limit=0", "invalid_parameter", "limit"],
      ["limit=51", "invalid_parameter", "limit"],
      ["limit=+1", "invalid_parameter", "limit"],
      ["limit=%2B1", "invalid_parameter", "limit"],
      ["limit=01", "invalid_parameter", "limit"],
      ["limit=1e1", "invalid_parameter", "limit"],
      ["limit=1.0", "invalid_parameter", "limit"],
      ["limit=-1", "invalid_parameter", "limit"],
      ["limit=", "invalid_parameter", "limit"],
      ["limit", "invalid_parameter", "limit"],
      ["limit=١", "invalid_parameter", "limit"].map((part) => encodeURI(part)) as [string, string, string],
      ["offset=10001", "invalid_parameter", "offset"],
      ["offset=99999999999999999999", "invalid_parameter", "offset"],
      ["limit=1&limit=1", "repeated_parameter", "limit"],
      ["q=a&%71=b", "repeated_parameter", "q"],
      ["Q=a", "unknown_parameter", "Q"],
      ["__proto__=1", "unknown_parameter", "__proto__"],
      ["q=%FF", "invalid_parameter", "q"],
      ["q=%", "invalid_parameter", "q"],
      [`q=${"a".repeat(161)}`, "invalid_parameter", "q"],
    ];
    for (const [query, code, field] of bad) {
      refused(await service.api(token, `/api/v1/studies?${query}`), 400, code, field);
    }
    const good = [
      "",
      "?",
      "?q=",
      "?limit=50&offset=10000",
      `?q=${encodeURIComponent("😀".repeat(160))}`,
      "?q=%00%22*",
    ];
    for (const query of good) {
      const answer = await service.api(token, `/api/v1/studies${query}`);
      assert.is(answer.status, 200, query);
      follows(StudyPage, answer);
    }
  });

  on("bodies are strict, and faults are named", async (service) => {
    // Many refusals: each token has 60 a minute.
    const ada = await service.account("Ada");
    let { token } = await service.token(ada.id);
    let used = 0;
    const send = async (body: string | Buffer, headers: Record<string, string> = {}, chunk?: number) => {
      used += 1;
      if (used % 50 === 0) token = (await service.token(ada.id)).token;
      return service.api(token, "/api/v1/studies", { method: "POST", body, headers, chunk });
    };
    const sample = samplePackage();
    const text = JSON.stringify(sample);
    const entry = sample.entries[0]!;
    const withChange = (change: object) => JSON.stringify({ ...sample, ...change });
    const withEntry = (change: object) => withChange({ entries: [{ ...entry, ...change }] });
    refused(
      await send(text, { "Content-Type": "text/plain" }),
      400,
      "unsupported_content_type",
      "Content-Type",
    );
    refused(
      await send(text, { "Content-Type": "application/json; charset=latin1" }),
      400,
      "unsupported_content_type",
    );
    refused(await send(gzipSync(text), { "Content-Encoding": "gzip" }), 400, "unsupported_content_encoding");
    refused(await send(text, { "Idempotency-Key": "a b" }), 400, "invalid_idempotency_key");
    refused(await send(Buffer.from([0x22, 0xff, 0x22])), 400, "invalid_utf8");
    refused(
      await send(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)])),
      400,
      "invalid_json",
    );
    for (const body of ["", "{", "nul", "{'a':1}", "[1,]", "01", "NaN", "{}{}", '"\u0001"']) {
      refused(await send(body), 400, "invalid_json", "");
    }
    refused(await send("null"), 400, "invalid_value", "");
    refused(await send("[]"), 400, "invalid_value", "");
    refused(await send("{}"), 400, "missing_property", "/schemaVersion");
    refused(await send(text.replace("{", '{"title":"x",')), 400, "duplicate_key", "/title");
    refused(await send(text.replace("{", '{"\\u0074itle":"x",')), 400, "duplicate_key", "/title");
    refused(
      await send(text.replace('"kind":', '"kind":"note","kind":')),
      400,
      "duplicate_key",
      "/entries/0/kind",
    );
    refused(await send(`${"[".repeat(33)}${"]".repeat(33)}`), 400, "too_deep");
    refused(await send(`${"[".repeat(32)}${"]".repeat(32)}`), 400, "invalid_value", "");
    refused(await send("[".repeat(100_000) + "]".repeat(100_000)), 400, "too_deep");
    refused(
      await send(text.replace('"schemaVersion":1', '"schemaVersion":1e400')),
      400,
      "number_out_of_range",
      "/schemaVersion",
    );
    refused(await send(withChange({ extra: 1 })), 400, "unknown_property", "/extra");
    refused(await send(text.replace("{", '{"__proto__":{},')), 400, "unknown_property", "/__proto__");
    refused(await send(withChange({ schemaVersion: 2 })), 400, "invalid_value", "/schemaVersion");
    refused(await send(withChange({ title: "" })), 400, "invalid_value", "/title");
    refused(await send(withChange({ title: " \u3000\n" })), 400, "blank_title", "/title");
    refused(await send(withChange({ title: "\u200b\u00ad\u2060" })), 400, "blank_title", "/title");
    refused(await send(withChange({ title: "😀".repeat(161) })), 400, "invalid_value", "/title");
    refused(await send(withChange({ license: "MIT" })), 400, "invalid_value", "/license");
    refused(
      await send(withChange({ model: { name: "", runtime: "" } })),
      400,
      "invalid_value",
      "/model/name",
    );
    refused(await send(withChange({ entries: [] })), 400, "invalid_value", "/entries");
    const many = (count: number) => Array.from({ length: count }, () => ({ ...entry, id: randomUUID() }));
    refused(await send(withChange({ entries: many(201) })), 400, "invalid_value", "/entries");
    refused(await send(withEntry({ id: "x" })), 400, "invalid_value", "/entries/0/id");
    refused(await send(withEntry({ id: "00000000-0000-9000-8000-000000000000" })), 400, "invalid_value");
    refused(await send(withEntry({ parent: randomUUID() })), 400, "unknown_parent", "/entries/0/parent");
    refused(await send(withEntry({ parent: entry.id })), 400, "parent_cycle", "/entries/0/parent");
    refused(
      await send(withEntry({ settings: {} })),
      400,
      "missing_property",
      "/entries/0/settings/temperature",
    );
    const settings = { temperature: 0, seed: 0, maxTokens: 1, thinking: "on" };
    for (const [name, value] of [
      ["temperature", 10.1],
      ["seed", 2 ** 53],
      ["maxTokens", 0],
      ["thinking", "no"],
    ] as const) {
      refused(
        await send(withEntry({ settings: { ...settings, [name]: value } })),
        400,
        "invalid_value",
        `/entries/0/settings/${name}`,
      );
    }
    refused(
      await send(withChange({ entries: [entry, { ...entry, id: entry.id.toUpperCase() }] })),
      400,
      "duplicate_entry_id",
      "/entries/1/id",
    );
    const ring = many(3).map((value, index, all) => ({ ...value, parent: all[(index + 1) % 3]?.id }));
    refused(await send(withChange({ entries: ring })), 400, "parent_cycle");
    const fill = (bytes: number) => text + " ".repeat(bytes - Buffer.byteLength(text));
    refused(await send(fill(1_000_001)), 400, "body_too_large", "");
    refused(await send(fill(1_000_001), {}, 65_536), 400, "body_too_large", "");
    const nil = "00000000-0000-0000-0000-000000000000";
    const good = [
      fill(1_000_000),
      withChange({ entries: many(200) }),
      withEntry({ id: nil, parent: null, settings, finishReason: null, title: "" }),
      withEntry({ id: "FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF" }),
      text.replace('"schemaVersion":1', '"schemaVersion":1.0e0'),
      withChange({ title: "😀".repeat(160), finding: "\ud800\u0000" }),
      withChange({ hypothesis: "é".repeat(100_000) }),
    ];
    for (const body of good) assert.is((await send(body)).status, 201, body.slice(0, 100));
    assert.is((await send(text, { "Content-Type": 'Application/JSON; charset="UTF-8"' }, 1000)).status, 201);
  });

  on("quotas: headers count down, 429 says how long, drafts are 10 a day", async (service) => {
    const ada = await service.account("Ada");
    const { token } = await service.token(ada.id);
    const body = JSON.stringify(samplePackage());
    const post = (headers = {}) => service.api(token, "/api/v1/studies", { method: "POST", body, headers });
    const first = await post({ "Idempotency-Key": "k" });
    assert.is(first.headers["ratelimit-remaining"], "59");
    assert.is((await post({ "Idempotency-Key": "k" })).json.id, first.json.id);
    refused(
      await service.api(token, "/api/v1/studies", {
        method: "POST",
        body: `${body} `,
        headers: { "Idempotency-Key": "k" },
      }),
      400,
      "idempotency_key_reused",
      "Idempotency-Key",
    );
    for (let count = 0; count < 9; count += 1) assert.is((await post()).status, 201);
    const eleventh = await post();
    refused(eleventh, 429, "draft_quota");
    assert.ok(Number(eleventh.headers["retry-after"]) > 86_000);
    const other = await service.token(ada.id);
    refused(await service.api(other.token, "/api/v1/studies", { method: "POST", body }), 429, "draft_quota");
    const all = await Promise.all(Array.from({ length: 60 }, () => service.api(token, "/api/v1/studies")));
    assert.is(all.filter(({ status }) => status === 200).length, 60 - 13);
    const last = await service.api(token, "/api/v1/studies?limit=0", { method: "POST", body: "!" });
    refused(last, 429, "request_quota");
    assert.is(last.headers["ratelimit-remaining"], "0");
    const wait = Number(last.headers["retry-after"]);
    assert.ok(wait >= 1 && wait <= 60);
  });

  on("a suspension between token check and write makes the token invalid", async (service) => {
    const ada = await service.account("Ada");
    const { token } = await service.token(ada.id);
    const { db } = service.running.service.store;
    const suspended = (suspended_at: number | null) =>
      db.updateTable("accounts").set({ suspended_at }).where("id", "=", ada.id).execute();
    const save = () =>
      service.api(token, "/api/v1/studies", { method: "POST", body: JSON.stringify(samplePackage()) });
    await suspended(1);
    refused(await save(), 401, "token_revoked", "Authorization");
    await suspended(null);
    assert.is((await save()).status, 201);
  });

  on("activity holds action, status and id; lists follow every change", async (service) => {
    const ada = await service.account("Ada");
    const made = await service.token(ada.id);
    const id = await publish(service, ada.id, made.token);
    await service.api(made.token, "/api/v1/studies?q=secret-words");
    await service.api(made.token, `/api/v1/studies/${id}`);
    await service.api(made.token, "/api/v1/studies/secret-words");
    const records = await service.running.service.activity.list(made.id);
    assert.equal(records.map(({ action, status, resource }) => [action, status, resource]).sort(), [
      ["drafts.create", 201, id],
      ["studies.list", 200, null],
      ["studies.read", 200, id],
      ["studies.read", 400, null],
    ]);
    const { store } = service.running.service;
    const before = await service.api(made.token, "/api/v1/studies");
    await addComment(store, { accountId: ada.id, name: "Ada" }, id, null, "x");
    const after = await service.api(made.token, "/api/v1/studies");
    assert.equal(
      [before, after].map(({ json }) => json.items[0].comment_count),
      [0, 1],
    );
  });
}

test("a switch file turns the API off and on, while health checks still answer", async () => {
  const service = await startService(databases.all[0]!.fresh());
  const { token } = await service.token((await service.account("Ada")).id);
  writeFileSync(service.disableFile, "");
  const off = await service.api(token, "/api/v1/studies");
  refused(off, 503, "disabled");
  assert.is(off.headers["retry-after"], "60");
  assert.is((await service.call("/healthz")).status, 200);
  rmSync(service.disableFile);
  assert.is((await service.api(token, "/api/v1/studies")).status, 200);
  assert.is((await service.call("/readyz")).status, 200);
  const description = await service.call("/api/v1/openapi.json", { headers: { Cookie: "a=b" } });
  assert.equal([description.json.openapi, description.json.info.version], ["3.1.0", "1.0.0"]);
  // The linter is right that a public description names no localhost; this service has no other origin.
  assertLinted({ ...description.json, servers: [{ url: "https://studies.example.net" }] });
  assert.is(description.json.components.schemas.StudyPackage.properties.title.maxLength, 160);
  await service.close();
});

if (databases.cluster !== null) {
  test("postgresql: losing the database gives 503, and the service recovers with it", async () => {
    const cluster = databases.cluster!;
    const service = await startService(databases.all[1]!.fresh());
    const { token } = await service.token((await service.account("Ada")).id);
    assert.is((await service.api(token, "/api/v1/studies")).status, 200);
    const back = cluster.crash();
    const during = await service.api(token, "/api/v1/studies");
    assert.ok([200, 503].includes(during.status));
    await back;
    assert.is((await service.call("/readyz")).status, 200);
    assert.is((await service.api(token, "/api/v1/studies")).status, 200);
    for (const line of service.log) assert.not.ok(line.includes(token));
    await service.close();
  });
}

test.after(() => databases.close());
test.run();
