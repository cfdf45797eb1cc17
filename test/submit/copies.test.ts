/** Parts that are far slower than the others: which they are, and what their second run leaves. */
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { stragglers } from "../../src/submit/copies.js";
import type { Engine } from "../../src/submit/engine.js";
import { progressOf } from "../../src/submit/index.js";
import { copyFolder, partsFolder, type Submission, startedFile } from "../../src/submit/submission.js";
import { contents, followToy, toySubmissions } from "./setting.js";

// Each part has 6 texts of 4 tokens, in three files.
const { compute, leave, ...toys } = toySubmissions("copies", 18);
test.after(leave);

const finished = (part: number, seconds: number) => ({
  ...{ part, complete: true, done: 100, tokens: 100 },
  ...{ started: 1000, ended: 1000 + 1000 * seconds },
});
const running = (part: number, done: number) => ({ part, complete: false, done, tokens: 100, started: 1000 });

test("a part is slow if it will take more than twice the median of the finished ones", () => {
  // Durations of 10, 20 and 60 s: the median is 20 s, the bound 40 s.
  const others = [finished(0, 60), finished(1, 10), finished(2, 20)];
  const slow = (seconds: number, ...more: ReturnType<typeof running>[]) =>
    stragglers({ parts: [...others, ...more] }, 1000 + 1000 * seconds);
  assert.equal(slow(40, running(3, 0)), []);
  assert.equal(slow(40.001, running(3, 0)), [3], "without a file, by the time that has passed");
  assert.equal(slow(20, running(3, 50)), [], "half in 20 s is all in 40 s");
  assert.equal(slow(20, running(3, 49)), [3]);
  assert.equal(slow(20, running(3, 40), running(4, 20), running(5, 60)), [4, 3], "the slowest first");
  assert.equal(
    slow(1000, running(3, 1), running(4, 1), running(5, 1), running(6, 1)),
    [],
    "3 of 7 are finished",
  );
  assert.equal(stragglers({ parts: [running(0, 1)] }, 1e9), []);
  const { started, ...waiting } = running(3, 0);
  assert.equal(stragglers({ parts: [...others, waiting] }, 1e9), [], `not started, ${started}`);
});

async function setting() {
  const { home, submission, whole } = await toys.setting({ workers: 3 });
  submission.batches.push({ handle: "first", parts: [0, 1, 2] });
  for (const part of [0, 1, 2]) await compute(submission, part);
  // Parts 0 and 2 took a minute each; part 1 has two of its files after an hour, and a third one is being written.
  const now = Date.now() / 1000;
  for (const part of [0, 1, 2]) {
    writeFileSync(startedFile(submission, part), "");
    utimesSync(startedFile(submission, part), now - 3600, now - 3600);
    utimesSync(at(submission, `index-${part}-of-3.json`), now - 3540, now - 3540);
  }
  const index = at(submission, "index-1-of-3.json");
  writeFileSync(index, readFileSync(index, "utf8").replace('"complete": true', '"complete": false'));
  rmSync(at(submission, "index-1-of-3.parquet"));
  const held = readFileSync(at(submission, third));
  rmSync(at(submission, third));
  writeFileSync(at(submission, `${third}.partial`), "torn");
  writeFileSync(`${index}.lock`, JSON.stringify({ pid: 2 ** 30, started: "1", since: "" }));
  return { home, submission, whole, held };
}
const third = "shard-1-of-3-00002.safetensors";
const at = (submission: Submission, name: string) => join(partsFolder(submission), name);
/** An engine in which part 1 runs until it is stopped; `second` is what its second run does. */
function engineOf(second: (submission: Submission, part: number) => Promise<boolean>) {
  const stopped: unknown[] = [];
  const active = new Map([["first", [1]]]);
  const engine: Engine = {
    script: () => "",
    active: async ({ batches }) => new Set(batches.flatMap(({ handle }) => active.get(handle) ?? [])),
    busy: async ({ batches }) => batches.filter(({ handle }) => active.get(handle)?.length).length,
    async start(submission, parts, copies) {
      assert.equal([parts, copies], [[1], true], "nothing else starts");
      active.set("second", (await second(submission, 1)) ? [1] : []);
      return "second";
    },
    async stop({ batches }, parts) {
      stopped.push([batches.map(({ handle }) => handle), parts]);
      for (const { handle } of batches) active.set(handle, []);
    },
  };
  return { engine, stopped };
}

async function followed(home: string, submission: Submission, engine: Engine) {
  const copied: number[][] = [];
  const seen: string[][] = [];
  await followToy(home, submission, engine, {
    onRestart: () => assert.unreachable("nothing starts again"),
    onCopy: (parts) => void copied.push([...parts]),
    onMerge: () => void seen.push(readdirSync(partsFolder(submission))),
  });
  return { copied, left: seen[0] as string[] };
}

test("a second run that finishes first counts, and resumes after finished files", async () => {
  const { home, submission, whole } = await setting();
  const kept: number[] = [];
  const { engine, stopped } = engineOf(async (own, part) => {
    kept.push((await compute(own, part, copyFolder(own, part))).kept_files);
    return false;
  });
  const { copied, left } = await followed(home, submission, engine);
  assert.equal([copied, kept], [[[1]], [2]]);
  assert.equal(stopped, [[["first"], [1]]], "the first run is stopped");
  assert.equal(contents(submission.out), contents(whole));
  assert.equal(
    left.filter((name) => /copy-|partial$|lock$/.test(name)),
    [],
    "nothing of both runs is left",
  );
});

test("a first run that finishes after all ends the second one, which leaves nothing", async () => {
  const { home, submission, whole, held } = await setting();
  const { engine, stopped } = engineOf(async (own) => {
    assert.equal(readdirSync(copyFolder(own, 1)).sort(), [
      "index-1-of-3.json",
      "shard-1-of-3-00000.safetensors",
      "shard-1-of-3-00001.safetensors",
    ]);
    writeFileSync(at(own, third), held);
    rmSync(`${at(own, third)}.partial`);
    await compute(own, 1); // writes the table and marks the index complete
    return true;
  });
  const { copied, left } = await followed(home, submission, engine);
  assert.equal(copied, [[1]]);
  assert.equal(stopped, [[["second"], [1]]]);
  assert.equal(contents(submission.out), contents(whole));
  assert.not(left.some((name) => name.startsWith("copy-")));
});

test("a second run that fails is not repeated, and the first one is waited for", async () => {
  const { home, submission } = await setting();
  const stop = new AbortController();
  const { engine, stopped } = engineOf(async () => false);
  let [starts, looks] = [0, 0];
  const counting: Engine = {
    ...engine,
    start: (...words) => {
      starts++;
      return engine.start(...words);
    },
    active: (own) => {
      if (starts > 0 && ++looks === 12) stop.abort("enough");
      return engine.active(own);
    },
  };
  await followToy(home, submission, counting, {
    signal: stop.signal,
    onRestart: () => assert.unreachable("the first one still runs"),
  }).then(
    () => assert.unreachable("it is not complete"),
    (reason) => assert.is(reason, "enough"),
  );
  assert.equal([starts, stopped], [1, []]);
  assert.not(existsSync(copyFolder(submission, 1)));
  assert.equal([submission.batches.length, (await progressOf(submission)).complete], [1, 2]);
});

test("a slow part that has ended starts again instead of a second time", async () => {
  const { home, submission, whole } = await setting();
  const starts: unknown[] = [];
  const engine: Engine = {
    ...engineOf(() => assert.unreachable() as never).engine,
    active: async () => new Set(),
    busy: async () => 0,
    async start(own, parts, copies = false) {
      starts.push([parts, copies]);
      await compute(own, 1);
      return "again";
    },
  };
  await followToy(home, submission, engine, { onCopy: () => assert.unreachable("it does not run") });
  assert.equal(starts, [[[1], false]]);
  assert.equal(contents(submission.out), contents(whole));
});

test("no place is free: nothing runs a second time", async () => {
  const { home, submission } = await setting();
  const { engine } = engineOf(() => assert.unreachable("it was started") as never);
  const stop = new AbortController();
  let looks = 0;
  const full: Engine = {
    ...engine,
    busy: async () => {
      if (++looks === 3) stop.abort("enough");
      return 3;
    },
  };
  await followToy(home, submission, full, {
    ...{ signal: stop.signal, onCopy: () => assert.unreachable(), onRestart: () => assert.unreachable() },
  }).then(
    () => assert.unreachable("it is not complete"),
    (reason) => assert.is(reason, "enough"),
  );
});

test.run();
