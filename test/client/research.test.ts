import { createHash } from "node:crypto";
import { inspect } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { DraftMayExistError, ResearchClient, ResearchError } from "../../src/client/index.js";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { samplePackage } from "../studies/support/packages.js";
import { type ResearchService, startResearch } from "./research-service.js";

let service: ResearchService;
test.before(async () => {
  service = await startResearch();
});
test.after(() => service.close());

const client = async (scopes?: ("public:read" | "drafts:write")[]) =>
  new ResearchClient({}, service.environment(await service.token(scopes)));

async function rejection(promise: Promise<unknown>): Promise<ResearchError> {
  return promise.then(
    () => {
      throw new Error("It should have been refused.");
    },
    (error) => error,
  );
}

test("studies are listed, searched and paged", async () => {
  const research = await client();
  const all = await research.listStudies();
  assert.is(all.total, 6);
  assert.is(all.items.length, 6);
  const page = await research.listStudies({ limit: 2, offset: 2 });
  assert.equal(page.items, all.items.slice(2, 4));
  assert.is(page.next_offset, 4);
  const found = await research.listStudies({ query: "polite steers" });
  assert.match(found.items[0]!.title, /steers politeness/);
  const titles = [];
  for await (const { title } of research.studies({ limit: 4 })) titles.push(title);
  assert.equal(
    titles,
    all.items.map(({ title }) => title),
  );
});

test("a study and its discussion", async () => {
  const id = await service.publish(samplePackage({ title: "Read me" }), ["First!", "Second."]);
  const research = await client(["public:read"]);
  const study = await research.getStudy(id.toUpperCase());
  assert.is(study.visibility, "published");
  assert.is(study.package.title, "Read me");
  const discussion = await research.getDiscussion(id);
  assert.equal(
    discussion.comments.map(({ body }) => body),
    ["First!", "Second."],
  );
  assert.equal((await research.getDiscussion(id, { offset: 2 })).comments, []);
});

test("a draft is saved exactly, and can be read by the token that saved it alone", async () => {
  const study = samplePackage({ finding: "half a pair \ud800, null \u0000, \u202e" });
  const research = await client();
  const created = await research.savePrivateDraft(study);
  assert.is(created.review_url, `${service.origin}/drafts/${created.id}`);
  const envelope = await research.getStudy(created.id);
  assert.is(envelope.visibility, "private_draft");
  assert.equal(envelope.package, study);
  const stranger = await rejection((await client()).getStudy(created.id));
  assert.is(stranger.status, 404);
});

test("given bytes are sent unchanged", async () => {
  const bytes = Buffer.from(JSON.stringify(samplePackage(), null, 3));
  const created = await (await client()).savePrivateDraft(bytes);
  assert.is(created.package_sha256, createHash("sha256").update(bytes).digest("hex"));
});

test("the same idempotency key gives the same draft", async () => {
  const research = await client();
  const study = samplePackage();
  const idempotencyKey = "once";
  const first = await research.savePrivateDraft(study, { idempotencyKey });
  assert.equal(await research.savePrivateDraft(study, { idempotencyKey }), first);
  const other = await rejection(research.savePrivateDraft(samplePackage(), { idempotencyKey }));
  assert.is(other.code, "idempotency_key_reused");
  assert.not.instance(other, DraftMayExistError);
});

test("whether a token may save drafts is known without saving one", async () => {
  const writer = await client();
  assert.is(await writer.maySaveDrafts(), true);
  assert.is(await (await client(["public:read"])).maySaveDrafts(), false);
  const unknown = new ResearchClient({ token: "tpl_nobody" }, service.environment(""));
  assert.is((await rejection(unknown.maySaveDrafts())).status, 401);
});

test("refusals preserve the service's code, field and sentence", async () => {
  const research = await client();
  const invalid = await rejection(research.savePrivateDraft(samplePackage({ title: " " })));
  assert.equal([invalid.status, invalid.code, invalid.field], [400, "blank_title", "/title"]);
  assert.match(invalid.message, /^The title is blank\.$/);
  assert.match(String(invalid.requestId), /^[0-9a-f-]{36}$/);
  assert.not.instance(invalid, DraftMayExistError);
  const scope = await rejection((await client(["public:read"])).savePrivateDraft(samplePackage()));
  assert.equal([scope.status, scope.code, scope.field], [403, "scope_missing", "drafts:write"]);
  const absent = await rejection(research.getStudy("00000000-0000-0000-0000-000000000000"));
  assert.is(absent.message, "No such study, or this token may not read it.");
  const limit = await rejection(research.listStudies({ limit: 51 }));
  assert.equal([limit.status, limit.field], [400, "limit"]);
});

test("removed studies are refused with person and reason; older versions are readable", async () => {
  const research = await client(["public:read"]);
  const id = await service.publish(samplePackage({ title: "Once" }));
  assert.is((await research.getStudy(id, { version: 1 })).version, 1);
  assert.is((await rejection(research.getStudy(id, { version: 2 }))).status, 404);
  assert.match(
    (await rejection(research.getStudy(id, { version: 0.5 }))).message,
    "version must be an integer of at least 1, got 0.5.",
  );
  await service.takeDown(id, "A name\u202e was in it.\nAnd more.");
  for (const call of [
    () => research.getStudy(id),
    () => research.getStudy(id, { version: 1 }),
    () => research.getDiscussion(id),
  ]) {
    const gone = await rejection(call());
    assert.equal(
      [gone.status, gone.code, gone.field, gone.reason],
      [410, "removed", "id", "A name  was in it. And more."],
    );
    assert.match(gone.message, /^This was removed by a moderator on \d{4}-\d\d-\d\d\. Reason: A name {2}was/);
  }
});

test("the quota's exact wait is reported, and nothing is retried", async () => {
  const research = await client(["public:read"]);
  for (let request = 0; request < 60; request++) await research.listStudies({ limit: 1 });
  const error = await rejection(research.listStudies());
  assert.equal([error.status, error.code], [429, "request_quota"]);
  const { retryAfter } = error;
  assert.ok(retryAfter !== undefined && retryAfter >= 1 && retryAfter <= 60);
  assert.match(error.message, `wait ${retryAfter} s.`);
});

test("too large a package is refused before anything is sent", async () => {
  const study: StudyPackage = samplePackage();
  study.entries = Array.from({ length: 11 }, (_, index) => ({
    id: `00000000-0000-4000-8000-0000000000${10 + index}`,
    kind: "note",
    title: "",
    note: "n".repeat(100_000),
  }));
  const error = await rejection((await client()).savePrivateDraft(study));
  assert.match(error.message, /^A package must have at most 1000000 bytes, got 110\d{4}\.$/);
  assert.is(error.status, undefined);
});

test("a refusal sent before a large package was read still arrives", async () => {
  const study = samplePackage({ finding: "f".repeat(90_000), hypothesis: "h".repeat(90_000) });
  study.entries = Array.from({ length: 8 }, (_, index) => ({
    id: `00000000-0000-4000-8000-00000000000${index}`,
    kind: "note",
    title: "",
    note: "n".repeat(95_000),
  }));
  const reader = await client(["public:read"]);
  const unknown = new ResearchClient({ token: "tpl_nobody" }, service.environment(""));
  for (let round = 0; round < 8; round++) {
    assert.is((await rejection(reader.savePrivateDraft(study))).code, "scope_missing");
    assert.is((await rejection(unknown.savePrivateDraft(study))).code, "token_invalid");
  }
});

test("malformed ids never become a path", async () => {
  const research = await client();
  for (const id of ["..", "../studies", "", "a/b", "00000000-0000-9000-8000-000000000000"]) {
    assert.is((await rejection(research.getStudy(id))).message, "The study id must be a UUID.");
    assert.is((await rejection(research.getDiscussion(id))).status, undefined);
  }
});

test("the token shows nowhere", async () => {
  const token = await service.token();
  const research = new ResearchClient({}, service.environment(token));
  const error = await rejection(research.getStudy("00000000-0000-0000-0000-000000000000"));
  for (const shown of [
    inspect(research, { depth: 9, showHidden: true, getters: true }),
    JSON.stringify(research),
    String(research),
    inspect(error, { depth: 9, showHidden: true }),
    error.stack,
  ]) {
    assert.not.match(String(shown), token);
  }
});

test("reports missing or invalid settings immediately, without their values", () => {
  const secret = "tpl_secretsecret";
  const complaints: [NodeJS.ProcessEnv, RegExp][] = [
    [{}, /set AGENT_RESEARCH_URL/],
    [{ AGENT_RESEARCH_URL: "https://localhost" }, /set AGENT_RESEARCH_TOKEN/],
    [{ AGENT_RESEARCH_URL: secret, AGENT_RESEARCH_TOKEN: "x" }, /must look like https:/],
    [{ AGENT_RESEARCH_URL: `https://${secret}@localhost`, AGENT_RESEARCH_TOKEN: "x" }, /must look like/],
    [{ AGENT_RESEARCH_URL: "http://localhost", AGENT_RESEARCH_TOKEN: "x" }, /must look like https:/],
    [{ AGENT_RESEARCH_URL: "https://localhost/api", AGENT_RESEARCH_TOKEN: "x" }, /must look like https:/],
    [{ AGENT_RESEARCH_URL: "https://localhost", AGENT_RESEARCH_TOKEN: `${secret}\n` }, /printable ASCII/],
    [
      {
        AGENT_RESEARCH_URL: "https://localhost",
        AGENT_RESEARCH_TOKEN: secret,
        AGENT_RESEARCH_CA_FILE: "/nonexistent/ca.pem",
      },
      /Cannot read the CA file \/nonexistent\/ca\.pem \(ENOENT\)/,
    ],
    [
      {
        AGENT_RESEARCH_URL: "https://localhost",
        AGENT_RESEARCH_TOKEN: secret,
        AGENT_RESEARCH_CA_FILE: import.meta.filename,
      },
      /contains no PEM certificate/,
    ],
  ];
  for (const [environment, expected] of complaints) {
    assert.throws(
      () => new ResearchClient({}, environment),
      (error: Error) =>
        error instanceof ResearchError && expected.test(error.message) && !error.message.includes(secret),
    );
  }
});

test.run();
