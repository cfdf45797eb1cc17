/** Data that the store reads in parts and caches, and the requests that wait meanwhile. On SQLite. */
import { join } from "node:path";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { openStore } from "../../src/studies/store/open.js";
import { ReadAhead } from "../../src/studies/store/read-ahead.js";
import { numbersOf, readTimes } from "../../src/studies/store/reading.js";
import { readNow } from "../../src/studies/store/store.js";
import { VersionedCache } from "../../src/studies/store/versioned-cache.js";
import { aroundStore, folder, store } from "./support/one-store.js";

aroundStore();

test("common words are found with a vocabulary that is read in parts", async () => {
  const spoken = await openStore(join(folder, "spoken.db"));
  const entry = (at: number, ...title: string[]) => ({
    publishedAt: at,
    entry: { title, head: [], body: [] },
  });
  const rare = Array.from({ length: 1200 }, (_, at) => `w${String(at).padStart(4, "0")}`);
  await spoken.dialect.search.add(spoken.db, [
    ...[1, 2, 3, 4, 5].map((at) => entry(at, "zebra")),
    ...[11, 12, 13, 14].map((at) => entry(at, "ant")),
    ...[21, 22, 23].map((at) => entry(at, "moth")),
    entry(30, ...rare.slice(0, 600)),
    entry(31, ...rare.slice(600)),
  ]);
  let steps = 0;
  const common = (moreThan: number, most: number) => {
    steps = 0;
    return spoken.dialect.search.common(spoken.db, { moreThan, most }, (step) => {
      steps += 1;
      if (steps > 10) throw new Error("It goes round in a circle.");
      return step();
    });
  };
  assert.equal(await common(2, 9), ["zebra", "ant", "moth"]);
  assert.is(steps, 3, "1,203 words, 500 at a time");
  assert.equal(await common(3, 9), ["zebra", "ant"]);
  assert.equal(await common(2, 2), ["zebra", "ant"]);
  assert.equal(await common(5, 9), []);
  await spoken.close();
});

test("holding one file does not block another file", async () => {
  const [one, two] = [await openStore(join(folder, "one.db")), await openStore(join(folder, "two.db"))];
  const order: string[] = [];
  await one.db.transaction().execute(async () => {
    await readNow(two, two.db);
    order.push("the other file is read meanwhile");
    // The same file's second connection waits for this one.
    void readNow(one, one.quick).then(() => order.push("the turn"));
    await readNow(two, two.quick);
    order.push("the transaction ends");
  });
  await readNow(one, one.quick);
  assert.equal(order, ["the other file is read meanwhile", "the transaction ends", "the turn"]);
  await Promise.all([one.close(), two.close()]);
});

test("times in a text sort as numbers, and a publication's number has its moment", async () => {
  assert.equal([...numbersOf(null)], []);
  assert.equal([...numbersOf("")], []);
  assert.equal([...numbersOf("7")], [7]);
  assert.equal([...numbersOf("1700000000000,20,309")], [1_700_000_000_000, 20, 309]);
  await store.db.updateTable("counters").set({ value: 42 }).where("name", "=", "published_at").execute();
  for (const [text, times] of [
    ["3,1,20", [1, 3, 20]],
    ["1,2,2,3", [1, 2, 2, 3]],
    ["2,1", [1, 2]],
    ["", []],
  ] as const) {
    const read = await readTimes(store.db, sql`select ${text}`);
    assert.equal([read.publication, [...read.times]], [42, times]);
  }
});

test("computed values are cached while their number holds; failures are not", async () => {
  const kept = new VersionedCache<string>(2);
  let computed = 0;
  const get = (number: number, key: string, fails = false) =>
    kept.get(number, key, async () => {
      computed += 1;
      if (fails) throw new Error("no");
      return `${number} ${key} ${computed}`;
    });
  assert.equal([await get(5, "a"), await get(5, "a")], ["5 a 1", "5 a 1"]);
  assert.equal([kept.has(5, "a"), kept.has(5, "b"), kept.has(4, "a")], [true, false, false]);
  // Who saw an older state computes alone; a newer one lets all go.
  assert.is(await get(4, "a"), "4 a 2");
  assert.is(await get(5, "a"), "5 a 1");
  assert.is(await get(6, "a"), "6 a 3");
  assert.is(await get(6, "b"), "6 b 4");
  assert.ok(kept.has(6, "a"));
  assert.is(await get(6, "c"), "6 c 5");
  assert.equal([kept.has(6, "a"), kept.has(6, "b"), kept.has(6, "c")], [false, true, true]);
  kept.forget("c");
  assert.not.ok(kept.has(6, "c"));
  await get(6, "d", true).catch(() => {});
  assert.not.ok(kept.has(6, "d"));
  assert.is(await get(6, "d"), "6 d 7");
});

test("background work continues, restarts on demand and ends with its step", async () => {
  const done: string[] = [];
  let steps: string[] = [];
  const ahead = new ReadAhead(async (pace) => {
    for (const step of steps) {
      await pace(async () => {
        await null;
        done.push(step);
        if (step === "again") ahead.again();
        if (step === "end") void ahead.close();
        if (step === "fail") throw new Error("no");
      });
    }
  });
  ahead.again();
  assert.equal(done, [], "it was not started");
  steps = ["again", "b"];
  const first = ahead.start();
  steps = ["c", "fail", "never"];
  await first;
  assert.equal(done, ["again", "b", "c", "fail"], "what fails is left");
  steps = ["d"];
  await ahead.start();
  assert.is(done.at(-1), "d");
  steps = ["e", "end", "never"];
  await ahead.start();
  assert.equal(done.slice(-2), ["e", "end"]);
  await ahead.start();
  assert.equal(done.slice(-2), ["e", "end"]);
  await ahead.close();
});

test.run();
