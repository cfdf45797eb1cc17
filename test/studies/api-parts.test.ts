/** The API without a network: access, refusals and their wording, contents of lists and studies, audit log. */

import { createHash } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Scope, StudyPackage } from "../../src/contracts/studies/index.js";
import { api } from "../../src/studies/api/middleware.js";
import type { Service } from "../../src/studies/service.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { ActivityLog } from "../../src/studies/store/activity.js";
import { addComment, deleteComment, editComment, setUpvote } from "../../src/studies/store/discussion.js";
import { listDrafts } from "../../src/studies/store/drafts.js";
import { remove, setCommentHidden, withdraw } from "../../src/studies/store/moderation.js";
import { openStore } from "../../src/studies/store/open.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import type { Store } from "../../src/studies/store/store.js";
import { createToken, newToken, revokeToken } from "../../src/studies/store/tokens.js";
import { until } from "../support/until.js";
import { withTime } from "../support/with-time.js";
import { testClock } from "./support/clock.js";
import { samplePackage } from "./support/packages.js";
import { type Got, type Sent, serviceOf, visitor } from "./support/visits.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-api-"));
const clock = testClock();
const open = (name: string) => openStore(join(folder, name), { dialect: clock.dialect });
let store: Store;
let service: Service & { lines: string[] };
let stores = 0;
test.before(async () => (await open("empty.db")).close());
test.before.each(async () => {
  stores += 1;
  copyFileSync(join(folder, "empty.db"), join(folder, `${stores}.db`));
  store = await open(`${stores}.db`);
  service = serviceOf(store, {
    activity: new ActivityLog(store),
    disableFile: join(folder, `${stores}.off`),
  });
});
test.after.each(() => store.close());
test.after(() => rmSync(folder, { recursive: true, force: true }));

const origin = "https://studies.example.org";
const ask = (path: string, token: string | null = null, sent: Sent = {}): Promise<Got> =>
  visitor(service, api(service))(path, {
    ...sent,
    headers: { ...(token === null ? {} : { Authorization: `Bearer ${token}` }), ...sent.headers },
  });
const json = ({ text }: Got) => JSON.parse(text);
const account = async (name: string) =>
  (await signInAccount(store, { issuer: "t", subject: name, name, email: null, login: null })).id;
const tokenOf = async (id: string, scopes: Scope[] = ["public:read", "drafts:write"], days = 1) =>
  (await createToken(store, id, { name: "t", days, scopes })) as { id: string; token: string };
const all = "/api/v1/studies";
const save = (token: string, change: Partial<StudyPackage> = {}, headers: Record<string, string> = {}) => {
  clock.ms += 1000;
  const body = JSON.stringify(samplePackage(change));
  return ask(all, token, {
    method: "POST",
    body,
    headers: { "Content-Type": "application/json", ...headers },
  });
};
const publish = async (
  accountId: string,
  token: string,
  change: Partial<StudyPackage> = {},
  replaces: string | null = null,
) => {
  const { id, package_sha256 } = json(await save(token, change));
  clock.ms += 1000;
  const published = await publishDraft(store, {
    accountId,
    draftId: id,
    reviewedSha256: package_sha256,
    replaces,
  });
  return (published as { id: string }).id;
};
const refusal = (got: Got) => {
  const { code, error, field, reason } = json(got);
  return [
    got.status,
    code,
    error,
    ...(field === undefined ? [] : [field]),
    ...(reason === undefined ? [] : [reason]),
  ];
};

test("each token check refuses with its own sentence: browser, issuer, expiry, quota, scope", async () => {
  const ada = await account("Ada");
  const [reader, writer, short, gone] = [
    await tokenOf(ada, ["public:read"], 9),
    await tokenOf(ada, ["drafts:write"], 9),
    await tokenOf(ada, ["public:read"], 1),
    await tokenOf(ada, ["public:read"], 9),
  ];
  await revokeToken(store, ada, gone.id);
  for (const [name, value] of [
    ["Origin", origin],
    ["Cookie", ""],
  ] as const)
    assert.equal(refusal(await ask(all, reader.token, { headers: { [name]: value } })), [
      403,
      "browser_request",
      `The API does not accept browser requests: remove the ${name} header.`,
      name,
    ]);
  const missing = await ask(all);
  assert.equal(refusal(missing), [
    401,
    "token_missing",
    "The Authorization header is missing; send `Bearer` followed by a token.",
    "Authorization",
  ]);
  assert.is(missing.header("WWW-Authenticate"), 'Bearer realm="tapline studies"');
  const form = "The Authorization header must be `Bearer` followed by a token of this service.";
  const { token } = reader;
  for (const header of [
    token,
    `Basic ${token}`,
    `Bearer ${token} x`,
    `Bearer ${token},`,
    `Bearer${token}`,
    "Bearer ",
    `Bearer ${token.slice(0, -1)}${token.endsWith("x") ? "y" : "x"}`,
  ]) {
    const got = await ask(all, null, { headers: { Authorization: header } });
    assert.equal(refusal(got), [401, "token_invalid", form, "Authorization"], header);
    assert.is(got.header("WWW-Authenticate"), 'Bearer realm="tapline studies", error="invalid_token"');
  }
  assert.equal(refusal(await ask(all, newToken())).slice(1, 3), [
    "token_invalid",
    "This token does not exist.",
  ]);
  assert.equal(refusal(await ask(all, gone.token)).slice(1, 3), [
    "token_revoked",
    `The token was revoked; create another at ${origin}/agents.`,
  ]);
  for (const header of [`bearer ${token}`, `BEARER   ${token}`])
    assert.is((await ask(all, null, { headers: { Authorization: header } })).status, 200);
  const words = (scope: string) =>
    `The token lacks the scope ${scope}; create one with it at ${origin}/agents.`;
  assert.equal(refusal(await ask(all, writer.token)), [
    403,
    "scope_missing",
    words("public:read"),
    "public:read",
  ]);
  assert.equal(refusal(await save(token)), [403, "scope_missing", words("drafts:write"), "drafts:write"]);
  clock.ms += 86_400_000;
  assert.equal(refusal(await ask(all, short.token)).slice(1, 3), [
    "token_expired",
    `The token has expired; create another at ${origin}/agents.`,
  ]);
  // A quota of sixty, told with every answer from the first to the last; a refused one does not count.
  const quota = (got: Got) => ["Limit", "Remaining", "Reset"].map((name) => got.header(`RateLimit-${name}`));
  assert.equal(quota(await ask(all)), ["60", "60", "0"]);
  for (let count = 1; count <= 60; count += 1)
    assert.equal(quota(await ask(all, token)), ["60", String(60 - count), "60"]);
  clock.ms += 20_500;
  const over = await ask(all, token);
  assert.equal(refusal(over), [
    429,
    "request_quota",
    "The token has used its 60 requests per 60 seconds; wait 40 s.",
  ]);
  assert.equal([over.header("Retry-After"), ...quota(over)], ["40", "60", "0", "40"]);
  clock.ms += 39_499;
  assert.is((await ask(all, token)).header("Retry-After"), "1");
  clock.ms += 1;
  assert.equal(quota(await ask(all, token)), ["60", "59", "60"]);
  assert.equal(service.lines, []);
});

test("paths and methods match exactly; public responses get an ETag and compression", async () => {
  const ada = await account("Ada");
  const { token } = await tokenOf(ada);
  for (const path of [
    "/api",
    "/api/",
    "/api/v1/studies/",
    "/api/v2/studies",
    "/API/v1/studies".replace("API", "api/x"),
    "/api/v1/studies/x/versions",
    "/api/v1/studies/x/y",
  ]) {
    const got = await ask(path, token);
    assert.equal(refusal(got), [404, "not_found", "No such path in the API."], path);
    assert.is(json(got).request_id, "00000000-0000-0000-0000-000000000000");
  }
  for (const [path, method, allowed] of [
    [all, "DELETE", "GET, HEAD, POST"],
    [`${all}/x`, "POST", "GET, HEAD"],
    [`${all}/x/discussion`, "PUT", "GET, HEAD"],
    ["/api/v1/openapi.json", "POST", "GET, HEAD"],
  ] as const) {
    const got = await ask(path, null, { method });
    assert.equal(refusal(got), [405, "method_not_allowed", `This path accepts ${allowed}.`]);
    assert.is(got.header("Allow"), allowed);
    assert.match(json(got).request_id, /^[\da-f]{8}-[\da-f]{4}-4/);
  }
  assert.equal(
    refusal(
      await visitor(
        { ...service, trustedProxies: ["10.0.0.1"] },
        api({ ...service, trustedProxies: ["10.0.0.1"] }),
      )(all),
    ),
    [403, "https_required", "The API is available over HTTPS only."],
  );
  const id = await publish(ada, token, { finding: "Long enough. ".repeat(100) });
  const read = await ask(`${all}/${id.toUpperCase()}`, token, { headers: { "Accept-Encoding": "gzip" } });
  assert.equal(
    [read.header("Content-Encoding"), read.header("Cache-Control"), read.header("X-Content-Type-Options")],
    ["gzip", "no-store", "nosniff"],
  );
  const plain = await ask(`${all}/${id}`, token);
  const sha256 = createHash("sha256").update(plain.text).digest("hex");
  assert.equal(
    [plain.header("X-Content-SHA256"), plain.header("ETag")],
    [sha256, `"${sha256.slice(0, 32)}"`],
  );
  const length = (got: Got) => Number(got.header("Content-Length"));
  assert.is(length(plain), Buffer.byteLength(plain.text));
  assert.is(
    (await ask(`${all}/${id}`, token, { headers: { "If-None-Match": plain.header("ETag") } })).status,
    304,
  );
  const draft = json(await save(token));
  const own = await ask(`${all}/${draft.id}`, token, { headers: { "Accept-Encoding": "gzip" } });
  assert.equal(
    [own.header("Content-Encoding"), own.header("ETag"), length(own)],
    ["", "", Buffer.byteLength(own.text)],
  );
  assert.equal(
    [json(own).visibility, json(own).url, json(own).published_at],
    ["private_draft", `${origin}/drafts/${draft.id}`, null],
  );
  assert.is(draft.review_url, `${origin}/drafts/${draft.id}`);
  writeFileSync(service.disableFile, "");
  const off = await ask(all);
  assert.equal(
    [refusal(off), off.header("Retry-After")],
    [[503, "disabled", "The API is temporarily disabled; the website still works."], "60"],
  );
  assert.is((await ask("/api/v1/openapi.json")).status, 200);
});

test("lists: fields of an item, the next page, and cursors bound to their order", async () => {
  const [ada, ben] = [await account("Ada"), await account("Ben")];
  const { token } = await tokenOf(ada);
  const model = { name: "demo-2M", revision: "main", runtime: "r" };
  const first = await publish(ada, token, { title: "First", question: "q".repeat(400), model });
  const at = clock.ms;
  const second = await publish(ada, token, { title: "Second" });
  await publish(ada, token, { title: "Third" });
  await setUpvote(store, ben, first, true);
  await addComment(store, { accountId: ben, name: "Ben" }, first, null, "x");
  const list = async (query = "") => json(await ask(`${all}${query}`, token));
  const titles = async (query?: string) =>
    (await list(query)).items.map(({ title }: { title: string }) => title);
  const page = await list("?limit=2");
  assert.equal(
    [page.total, page.total_is_exact, page.limit, page.offset, page.next_offset],
    [3, true, 2, 0, 2],
  );
  assert.equal(await titles(), ["Third", "Second", "First"]);
  assert.equal(await titles("?sort=top"), ["First", "Third", "Second"]);
  assert.equal(await titles("?limit=2&offset=2"), ["First"]);
  assert.equal((await list("?limit=1&offset=2")).next_offset, null);
  assert.equal((await list()).items[2], {
    ...{
      id: first,
      title: "First",
      question: "q".repeat(300),
      author: { name: "Ada", handle: "ada" },
      model,
    },
    ...{ license: "CC-BY-4.0", published_at: new Date(at).toISOString(), version: 1 },
    ...{ entry_count: 1, upvotes: 1, comment_count: 1 },
  });
  assert.equal(
    (await list("?q=second")).items.map(({ id }: { id: string }) => id),
    [second],
  );
  // No page starts after the 10,000th item, though there are more.
  await store.db.updateTable("counters").set({ value: 10_051 }).where("name", "=", "studies").execute();
  await store.db.updateTable("counters").set({ value: 999 }).where("name", "=", "generation").execute();
  const next = async (offset: number, limit = 20) =>
    (await list(`?offset=${offset}&limit=${limit}`)).next_offset;
  assert.equal(
    [await next(9980), await next(9981), await next(10_000), await next(9950, 50)],
    [10_000, null, null, 10_000],
  );
});

test("responses for a study, its versions, removed content and comments", async () => {
  const [ada, ben] = [await account("Ada"), await account("Ben")];
  const { token } = await tokenOf(ada);
  const id = await publish(ada, token, { title: "One" });
  await publish(ada, token, { title: "Two" }, id);
  const newest = clock.ms;
  const read = async (path: string) => ask(`${all}/${path}`, token);
  const two = json(await read(id));
  assert.equal(
    [two.version, two.package.title, two.url, two.author],
    [2, "Two", `${origin}/studies/${id}`, { name: "Ada", handle: "ada" }],
  );
  assert.equal(
    [two.published_at, two.created_at],
    [newest, newest - 1000].map((ms) => new Date(ms).toISOString()),
  );
  const one = json(await read(`${id}/versions/1`));
  assert.equal([one.version, one.package.title, one.url], [1, "One", `${origin}/studies/${id}?version=1`]);
  assert.is(one.package_sha256, createHash("sha256").update(JSON.stringify(one.package)).digest("hex"));
  const nothing = [404, "not_found", "No such study, or this token may not read it.", "id"];
  for (const path of [`${id}/versions/3`, `${id.slice(0, -4)}0000`, `${id.slice(0, -4)}0000/discussion`])
    assert.equal(refusal(await read(path)), nothing);
  assert.equal(refusal(await read("x")), [
    400,
    "invalid_parameter",
    "The study id in the path must be a UUID.",
    "id",
  ]);
  for (const version of ["0", "01", "1.0", "x", "9".repeat(10)])
    assert.equal(refusal(await read(`${id}/versions/${version}`)), [
      400,
      "invalid_parameter",
      "The version in the path must be an integer of at least 1, in decimal digits.",
      "version",
    ]);
  for (const path of [`${id}?x=1`, `${id}/versions/1?x=1`, `${id}/discussion?limit=1`])
    assert.is(json(await read(path)).code, "unknown_parameter", path);
  const say = async (body: string, parent: string | null = null) => {
    clock.ms += 1000;
    return ((await addComment(store, { accountId: ben, name: "Ben" }, id, parent, body)) as { id: string })
      .id;
  };
  const [plain, hidden, deleted] = [await say("plain"), await say("hidden"), await say("deleted")];
  const answer = await say("answer", plain);
  clock.ms += 1000;
  await editComment(store, ben, plain, "edited");
  await setCommentHidden(store, "operator", hidden, "rude");
  await deleteComment(store, ben, deleted);
  const said = json(await read(`${id}/discussion`));
  const iso = (ago: number) => new Date(clock.ms - ago).toISOString();
  const author = { name: "Ben", handle: "ben" };
  assert.equal(said, {
    ...{ study_id: id, offset: 0, limit: 50, next_offset: null, total: 4, upvotes: 0 },
    comments: [
      { id: plain, parent_id: null, author, created_at: iso(5000), edited_at: iso(0), body: "edited" },
      { id: answer, parent_id: plain, author, created_at: iso(2000 - 1000), body: "answer" },
      { id: hidden, parent_id: null, author, created_at: iso(3000), body: "", state: "hidden" },
      { id: deleted, parent_id: null, author, created_at: iso(2000), body: "", state: "deleted" },
    ].map((comment) => (comment.id === plain ? { ...comment, created_at: iso(4000) } : comment)),
  });
  const past = json(await read(`${id}/discussion?offset=3`));
  assert.equal([past.offset, past.comments.map((one: { id: string }) => one.id)], [3, [deleted]]);
  const day = new Date(clock.ms).toISOString().slice(0, 10);
  await withdraw(store, ada, { studyId: id, version: 1 }, "wrong");
  assert.equal(refusal(await read(`${id}/versions/1`)), [
    410,
    "withdrawn",
    `This was withdrawn by its author on ${day}.`,
    "id",
    "wrong",
  ]);
  await remove(store, "operator", { studyId: id, version: null }, "copied");
  for (const path of [id, `${id}/discussion`, `${id}/versions/2`])
    assert.equal(
      refusal(await read(path)),
      [410, "removed", `This was removed by a moderator on ${day}.`, "id", "copied"],
      path,
    );
});

test("drafts: bytes stored unchanged, idempotency keys, ten per day", async () => {
  const ada = await account("Ada");
  const { token } = await tokenOf(ada);
  const body = Buffer.from(` ${JSON.stringify(samplePackage())}\n`);
  const send = (headers: Record<string, string> = {}, of: string | Buffer = body) =>
    ask(all, token, {
      method: "POST",
      body: of,
      headers: { "Content-Type": "application/json", ...headers },
    });
  const first = await send({ "Idempotency-Key": "k".repeat(200) });
  const { id } = json(first);
  assert.equal(json(first), {
    id,
    review_url: `${origin}/drafts/${id}`,
    package_sha256: createHash("sha256").update(body).digest("hex"),
    expires_at: null,
  });
  assert.equal([first.status, json(await send({ "Idempotency-Key": "k".repeat(200) })).id], [201, id]);
  const kept = await ask(`${all}/${id}`, token);
  assert.ok(kept.text.endsWith(`"package":${body.toString()}}`));
  const again = await send({ "Idempotency-Key": "k".repeat(200) }, JSON.stringify(samplePackage()));
  assert.equal(refusal(again), [
    400,
    "idempotency_key_reused",
    "This Idempotency-Key was already used with a different body.",
    "Idempotency-Key",
  ]);
  const key = "Idempotency-Key must be 1 to 200 printable ASCII characters without spaces.";
  for (const wrong of ["", "a b", "é", "k".repeat(201)])
    assert.equal(
      refusal(await send({ "Idempotency-Key": wrong })),
      [400, "invalid_idempotency_key", key, "Idempotency-Key"],
      wrong,
    );
  const type = "The Content-Type must be application/json, in UTF-8.";
  for (const [given, status] of [
    ["application/json;charset=UTF-8", 201],
    ['application/json ; charset = "utf-8" ', 201],
    ["application/json; charset=latin1", 400],
    ["application/json; x=y", 400],
    ["text/json", 400],
    ["", 400],
  ] as const) {
    const got = await send({ "Content-Type": given });
    assert.is(got.status, status, given);
    if (status === 400) assert.equal(refusal(got).slice(2), [type, "Content-Type"]);
  }
  assert.equal(refusal(await send({ "Content-Encoding": "gzip" })), [
    400,
    "unsupported_content_encoding",
    "The body must not have a Content-Encoding.",
    "Content-Encoding",
  ]);
  assert.is((await send({ "Content-Encoding": "Identity" })).status, 201);
  const large = (bytes: number) => send({}, Buffer.concat([body, Buffer.alloc(bytes - body.length, " ")]));
  assert.is((await large(1_000_000)).status, 201);
  assert.is((await large(1_000_001)).status, 400);
  for (let count = 5; count < 10; count += 1) {
    clock.ms += 10;
    assert.is((await send()).status, 201, String(count));
  }
  const { account_id } = await store.db.selectFrom("drafts").select("account_id").executeTakeFirstOrThrow();
  const written = (await listDrafts(store, account_id)).map(({ created_at }) => clock.ms - created_at);
  assert.equal(written, [0, 10, 20, 30, 40, 50, 50, 50, 50, 50], "the newest first");
  clock.ms += 450;
  const full = await send();
  assert.equal(
    [refusal(full), full.header("Retry-After")],
    [[429, "draft_quota", "The account has used its 10 drafts per 24 hours; wait 86400 s."], "86400"],
  );
  await store.db.deleteFrom("drafts").execute();
  const deleted = await send({ "Idempotency-Key": "k".repeat(200) });
  assert.equal(refusal(deleted), [
    410,
    "draft_deleted",
    "The draft saved with this Idempotency-Key was deleted by its owner; use a new key to save it again.",
    "Idempotency-Key",
  ]);
});

test("the log records a token's requests: action, outcome and id, but no content", async () => {
  const ada = await account("Ada");
  const [one, reader] = [await tokenOf(ada), await tokenOf(ada, ["public:read"])];
  const id = json(await save(one.token)).id as string;
  await ask(`${all}?q=secret`, one.token);
  await ask(`${all}?secret=1`, one.token);
  await ask(`${all}/${id.toUpperCase()}`, one.token);
  await ask(`${all}/${"-".repeat(36)}`, one.token);
  await ask(`${all}/secret-words`, one.token);
  await ask(`${all}/${id}/discussion`, one.token);
  await ask(`${all}/${id}/versions/1`, one.token);
  await save(reader.token);
  await ask(all, reader.token, { headers: { Origin: origin } });
  await ask(all, newToken());
  const records = async (token: string) =>
    (await service.activity.list(token))
      .map(({ action, status, resource }) => `${action} ${status} ${resource}`)
      .sort();
  assert.equal(
    await records(one.id),
    [
      `drafts.create 201 ${id}`,
      "studies.list 200 null",
      "studies.list 400 null",
      `studies.read 200 ${id}`,
      `studies.read 400 ${"-".repeat(36)}`,
      "studies.read 400 null",
      `studies.discussion 404 ${id}`,
      `studies.version 404 ${id}`,
    ].sort(),
  );
  assert.equal(await records(reader.id), ["drafts.create 403 null"]);
  // Requests refused for quota are logged as well.
  const eager = await tokenOf(ada);
  for (let count = 1; count <= 61; count += 1) await ask(all, eager.token);
  const statuses = (await records(eager.id)).map((record) => record.replace("studies.list ", ""));
  assert.equal([statuses.length, statuses.at(-2), statuses.at(-1)], [61, "200 null", "429 null"]);
  // The newest hundred, the newest first; what waits is written before it is read.
  const log = new ActivityLog(store);
  let at = 1;
  withTime({ "Date.now": () => at }, () => {
    for (; at <= 600; at += 1) log.record(reader.id, `a${at}`, 200, null);
  });
  const listed = (await log.list(reader.id)).map(({ action }) => action);
  assert.equal([listed.length, listed[0], listed[1], listed[99]], [100, "drafts.create", "a600", "a502"]);
  log.record(reader.id, "later", 200, null);
  await log.flush();
  assert.is((await log.list(reader.id, 1)).length, 1);
  const count = await store.db
    .selectFrom("activity")
    .select("at")
    .where("token_id", "=", reader.id)
    .execute();
  assert.is(count.length, 602, "each once");
  // A record that follows one already written is written separately.
  log.record(reader.id, "by itself", 200, null);
  const written = () =>
    store.db.selectFrom("activity").select("at").where("action", "=", "by itself").executeTakeFirst();
  await until(written);
});

test("a database fault returns 503 with an id that is in the log", async () => {
  const ada = await account("Ada");
  const { token } = await tokenOf(ada);
  await store.db.schema.alterTable("studies").renameTo("away").execute();
  const got = await ask(`${all}?limit=1`, token);
  assert.equal(refusal(got), [
    503,
    "unavailable",
    "The service is temporarily unavailable; a write may or may not have happened.",
  ]);
  assert.equal([got.header("Retry-After"), service.lines.length], ["5", 1]);
  assert.match(service.lines[0] ?? "", json(got).request_id);
});

test.run();
