/** Following a submission: progress, what starts again, what is given up, and the merged files. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Engine } from "../../src/submit/engine.js";
import { findSubmission, planned, progressOf, start, submissions } from "../../src/submit/index.js";
import { logOf, partsFolder, type Submission } from "../../src/submit/submission.js";
import { refusal } from "../support/refusal.js";
import { contents, followToy, toySubmissions } from "./setting.js";

const { setting, compute, leave } = toySubmissions("follow", 12);
test.after(leave);

/** An engine whose parts end as soon as they are started; `fails` says which do not compute anything. */
function engineOf(fails: (part: number, attempt: number) => boolean) {
  const started: number[][] = [];
  const engine: Engine = {
    script: () => "",
    active: async () => new Set(),
    busy: async () => 0,
    async start(submission, parts) {
      started.push([...parts]);
      const attempt = started.length;
      for (const part of parts) if (!fails(part, attempt)) await compute(submission, part);
      return "h";
    },
    stop: async () => {},
  };
  return { engine, started };
}

test("parts that end early start again, and all are merged into what one run writes", async () => {
  const { home, submission, whole } = await setting();
  const { engine, started } = engineOf((part, attempt) => part === 1 && attempt < 2);
  await compute(submission, 0);
  const restarts: number[][] = [];
  const merged = await followToy(home, submission, engine, {
    onRestart: (parts) => void restarts.push([...parts]),
  });
  assert.equal(
    [started, restarts],
    [
      [[1, 2], [1]],
      [[1, 2], [1]],
    ],
  );
  assert.is(merged.parts, 3);
  assert.equal(contents(submission.out), contents(whole));
  assert.not(existsSync(partsFolder(submission)), "the parts are removed");
  const [saved] = await submissions(home);
  assert.equal([saved?.merged, saved?.batches.length], [true, 2]);
  assert.match(
    await refusal(() => followToy(home, saved as Submission, engine)),
    /is merged: its files are in /,
  );
});

test("a part that gets no further is given up with the end of its log", async () => {
  const { home, submission } = await setting();
  const { engine, started } = engineOf((part) => part === 2);
  writeFileSync(logOf(submission, 2), "loading\ntapline: Text 5 of texts.txt has 900 tokens.\n");
  assert.is(
    await refusal(() => followToy(home, submission, engine)),
    "Part 2 of 3 ended 3 times without finishing another file. It said: Text 5 of texts.txt has 900 tokens. " +
      `Its log: ${logOf(submission, 2)}.`,
  );
  assert.equal(started, [[0, 1, 2], [2]]);
  assert.is((await progressOf(submission)).complete, 2, "finished parts stay");
});

test("a part that still runs is waited for, and an abort leaves everything", async () => {
  const { home, submission } = await setting();
  const { engine, started } = engineOf(() => true);
  const stop = new AbortController();
  let looks = 0;
  const patient = {
    ...engine,
    active: async () => {
      if (++looks === 5) stop.abort("SIGINT");
      return new Set([0, 1, 2]);
    },
  };
  await followToy(home, submission, patient, { signal: stop.signal }).then(
    () => assert.unreachable(),
    (reason) => assert.is(reason, "SIGINT"),
  );
  assert.equal(started, []);
  assert.ok(existsSync(partsFolder(submission)));
});

test("progress counts finished files, and takes uncounted parts for as large as the others", async () => {
  const { submission } = await setting();
  assert.equal(await progressOf(submission), {
    ...{ complete: 0, done: 0 },
    parts: [0, 1, 2].map((part) => ({ part, complete: false, done: 0 })),
  });
  // Each part has 4 texts of 4 tokens (a BOS token and three words), in two files.
  await compute(submission, 0);
  await compute(submission, 1);
  rmSync(join(partsFolder(submission), "shard-1-of-3-00001.safetensors"));
  const { parts, ...rest } = await progressOf(submission);
  assert.equal(rest, { complete: 2, done: 24, tokens: 48 });
  assert.equal(parts[1], { part: 1, complete: true, tokens: 16, done: 8 });
});

test("the same submission is joined, another one in its folder is refused", async () => {
  const { home, submission } = await setting();
  await compute(submission, 0);
  const program = ["true"]; // a local worker that ends at once
  const joined = await start(home, { ...submission, workers: 2 }, program);
  assert.equal([joined.joined, joined.submission.workers, joined.submission.batches.length], [true, 2, 1]);
  assert.equal(joined.submission.batches[0]?.parts, [1, 2], "complete parts do not start again");
  const other = planned({ model: "other" }, submission);
  assert.match(
    await refusal(() => start(home, other, program)),
    /has parts of another submission, s-[0-9a-f]{8}\./,
  );
  assert.match(
    await refusal(() => start(home, { ...submission, parts: 4 }, program)),
    /has 3 parts, got --parts 4\. Omit it to continue\.$/,
  );
});

test("submissions are found by the start of their id", async () => {
  const { home, submission } = await setting();
  assert.is((await findSubmission(home, submission.id.slice(0, 5))).out, submission.out);
  assert.match(await refusal(() => findSubmission(home, "s-xyz")), /^There is no submission s-xyz; /);
});

test.run();
