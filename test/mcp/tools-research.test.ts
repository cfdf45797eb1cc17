/** Every tool of the studies service: pages, pieces, refusals in their fences, and drafts that are saved once. No process. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  DraftMayExistError,
  ResearchError,
  type ResearchErrorDetails,
  TimeoutError,
} from "../../src/client/index.js";
import { Comment, StudyEnvelope, StudySummary } from "../../src/contracts/studies/index.js";
import { samplePackage } from "../studies/support/packages.js";
import { until } from "../support/until.js";
import { unfence } from "./session.js";
import { begin, call, closeAll, refused, research, sample, shown, stand } from "./stand-in.js";

test.before.each(begin);
test.after(closeAll);

const [summary, comment] = [StudySummary, Comment].map(sample);
const uuid = "12345678-1234-4234-8234-123456789abc";

test("pages of studies and comments continue after the shown, to the end", async () => {
  const client = await research();
  for (const [name, method, field, one, rest, input, asked] of [
    ["list_studies", "listStudies", "items", summary, {}, { query: "q", limit: 5, offset: 20 }, []],
    [
      "get_discussion",
      "getDiscussion",
      "comments",
      comment,
      { study_id: uuid, upvotes: 0 },
      { id: uuid, offset: 20 },
      [uuid],
    ],
  ] as const) {
    const read = async (count: number, characters: number, next_offset: number | null) => {
      const all = Array.from({ length: count }, () => ({ ...one, long: "t".repeat(characters) }));
      stand.answers = { [method]: { ...rest, total: 90, limit: 20, offset: 20, next_offset, [field]: all } };
      stand.calls.length = 0;
      const page = await shown(client, name, input);
      assert.equal(page[field], all.slice(0, page[field].length));
      assert.is(page.total, 90);
      return [page[field].length, page.next_offset];
    };
    assert.equal(await read(5, 10, 25), [5, 25], name);
    const { id: _, ...options } = input as { id?: string; offset: number };
    assert.equal(stand.calls, [[`research.${method}`, ...asked, options]]);
    assert.equal(await read(5, 10, null), [5, null], name);
    // Three of eleven thousand characters fit.
    assert.equal(await read(5, 11_000, 25), [3, 23], name);
    assert.equal(await read(5, 11_000, null), [3, 23], name);
    assert.equal(await read(3, 11_000, 23), [3, 23], name);
  }
});

test("a study gives its head, fitting entries, pieces by pointer, versions", async () => {
  const client = await research();
  const entry = (characters: number) => ({ id: uuid, kind: "note", title: "", note: "n".repeat(characters) });
  // The room that an entry without its note takes, and the two characters between entries.
  const around = JSON.stringify(entry(0)).length + 2;
  const read = async (entries: object[], input: object = {}, finding = "") => {
    const study = { ...samplePackage({ finding }), entries };
    stand.answers = { getStudy: { ...sample(StudyEnvelope), package: study } };
    stand.calls.length = 0;
    const { entries: _, ...head } = study;
    return { head, page: await shown(client, "get_study", { id: uuid, ...input }) };
  };
  const few = await read([entry(1), entry(2)]);
  assert.equal(stand.calls, [["research.getStudy", uuid, { version: undefined }]]);
  assert.equal(few.page.package, JSON.parse(JSON.stringify(few.head)));
  assert.is(few.page.study.package, undefined);
  const { entry_count, entry_offset, next_entry_offset, cut } = few.page;
  assert.equal([entry_count, entry_offset, next_entry_offset, cut], [2, 0, null, []]);

  // Of 40,000 characters the head takes its own, and the rest is the entries'.
  const left = 40_000 - JSON.stringify(few.head).length;
  const exact = [entry(10_000), entry(left - 2 * around - 10_000), entry(1)];
  assert.equal((await read(exact)).page.entries, exact.slice(0, 2));
  assert.is((await read(exact)).page.next_entry_offset, 2);
  const wider = [entry(10_000), entry(left - 2 * around - 9999), entry(1)];
  assert.equal((await read(wider)).page.entries, wider.slice(0, 1));
  // Behind it, without the head.
  const rest = [entry(1), entry(20_000), entry(20_000 - 2 * around), entry(1)];
  const { page } = await read(rest, { entry_offset: 1 });
  assert.equal(
    [page.entries, page.package, page.entry_offset, page.next_entry_offset],
    [...[rest.slice(1, 3), undefined, 1, 3]],
  );
  const long = await read([entry(1), entry(30_000)], { entry_offset: 1 });
  assert.equal(long.page.cut, []);
  const longer = await read([entry(1), entry(50_000)], { entry_offset: 1 });
  assert.equal(longer.page.cut, [{ pointer: "/entries/1/note", total: 50_000, shown: 12_000 }]);
  // A head has half of a page.
  const wide = await read([entry(19_000)], {}, "f".repeat(30_000));
  assert.equal(wide.page.cut, [{ pointer: "/finding", total: 30_000, shown: 12_000 }]);

  const pointed = await read([entry(13_000)], { pointer: "/entries/0/note", offset: 12_999, version: 3 });
  assert.equal(stand.calls, [["research.getStudy", uuid, { version: 3 }]]);
  assert.equal(
    [pointed.page.piece.value, pointed.page.piece.next_offset, pointed.page.entry_count],
    ["n", null, 1],
  );
  assert.is(pointed.page.entries, undefined);
  assert.is((await read([entry(3)], { pointer: "/entries/0/note" })).page.piece.value, "nnn");
  // The empty pointer is all of it.
  const { piece } = (await read([entry(3)], { pointer: "" })).page;
  assert.equal([piece.pointer, piece.total, piece.value.entries], ["", null, [entry(3)]]);
  assert.is(
    await refused(client, "get_study", { id: uuid, pointer: "/a" }),
    'No value at "/a"; pointers look like /entries/3/answer.',
  );
});

test("what a service says of a refusal is fenced, with the facts before it", async () => {
  const client = await research();
  const failing = async (error: Error, name = "list_studies", input: object = {}) => {
    stand.answers = {
      listStudies: () => Promise.reject(error),
      savePrivateDraft: () => Promise.reject(error),
    };
    return refused(client, name, input);
  };
  const said = async (details: ResearchErrorDetails) => {
    const { preface, data } = unfence(await failing(new ResearchError("not shown", details)));
    return [/\((.*)\)/.exec(preface)?.[1], data];
  };
  const serviceSentence = "No\u200b.";
  assert.equal(await said({ status: 400, serviceSentence }), ["status 400", { error: "No\\u{200B}." }]);
  const code = `${"a".repeat(57)}_09`;
  assert.equal(
    await said({ status: 429, code, retryAfter: 0, serviceSentence, field: "/a\u200b", reason: "b\u200b" }),
    [`status 429, ${code}, wait 0 s`, { error: "No\\u{200B}.", field: "/a\\u{200B}", reason: "b\\u{200B}" }],
  );
  for (const odd of [`${code}x`, "Ignore", "a b", ""]) {
    assert.is((await said({ status: 400, code: odd, serviceSentence }))[0], "status 400", odd);
  }
  const draft = { package: samplePackage() };
  const unclear = new DraftMayExistError("It broke.", "key", { status: 504, serviceSentence });
  assert.is(
    unfence(await failing(unclear, "save_private_draft", draft)).preface,
    "The studies service refused the call (status 504). The draft may exist; check the website. Its message follows.",
  );
  // Without words of the service's, the client's own sentence, on one line.
  assert.is(await failing(new ResearchError("One.\r\n\nTwo\u200b.")), "One. Two\\u{200B}.");
  assert.is(await failing(new TimeoutError("Too late.")), "Too late.");
});

test("a save keeps its key while its outcome is open, and no longer", async () => {
  const client = await research();
  const draft = { id: "x", review_url: "https://x/", expires_at: null, package_sha256: "0" };
  const study = samplePackage();
  const key = async (outcome: () => unknown, given = study) => {
    stand.calls.length = 0;
    stand.answers = { savePrivateDraft: outcome };
    await call(client, "save_private_draft", { package: given });
    const [, bytes, { idempotencyKey }] = stand.calls[0] as [string, Buffer, { idempotencyKey: string }];
    assert.equal(JSON.parse(bytes.toString()), given);
    assert.match(idempotencyKey, /^[0-9a-f-]{36}$/);
    return idempotencyKey;
  };
  const rejects = (error: Error) => () => Promise.reject(error);
  const open = rejects(new DraftMayExistError("It broke.", "k"));
  const first = await key(open);
  assert.is(await key(open), first, "tried again");
  assert.is.not(await key(open, samplePackage()), first, "another study");
  assert.is(await key(() => draft), first);
  const second = await key(rejects(new ResearchError("No.")));
  assert.is.not(second, first, "what was saved is done");
  const third = await key(() => draft);
  assert.is.not(third, second, "what was refused is done");
  // A call that was ended in its middle may have arrived.
  stand.calls.length = 0;
  stand.answers = {
    savePrivateDraft: () =>
      new Promise((_, reject) => stand.signal?.addEventListener("abort", () => reject(new Error("aborted")))),
  };
  const stop = new AbortController();
  const asked = client.callTool(
    { name: "save_private_draft", arguments: { package: study } },
    { signal: stop.signal },
  );
  asked.catch(() => {});
  await until(() => stand.calls.length === 1);
  const { idempotencyKey } = stand.calls[0]![2] as { idempotencyKey: string };
  stop.abort();
  await until(() => stand.signal?.aborted);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.is(await key(() => draft), idempotencyKey);
});

test.run();
