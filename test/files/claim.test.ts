import promises, { mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { claim, isClaimed, unclaim } from "../../src/files/claim.js";

let folder: string;
const { link } = promises;
test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-claim-"));
});
test.after.each(async () => {
  setLink(link);
  await rm(folder, { recursive: true });
});

function setLink(implementation: typeof link): void {
  promises.link = implementation;
  syncBuiltinESMExports();
}

for (const [where, implementation] of [
  ["with hard links", link],
  ["without hard links", () => Promise.reject(Object.assign(new Error("no links"), { code: "EPERM" }))],
] as const) {
  test(`one of many gets it, and leaves nothing else behind, ${where}`, async () => {
    setLink(implementation);
    const path = join(folder, "lock");
    const dead = (text: string) => text === "dead";
    for (const before of [undefined, "dead"]) {
      if (before !== undefined) await writeFile(path, before);
      const claims = await Promise.all(
        Array.from({ length: 20 }, (_, index) => claim(path, `mine ${index}`, dead)),
      );
      const winners = claims.flatMap(({ taken }, index) => (taken ? [`mine ${index}`] : []));
      assert.equal(winners, [await readFile(path, "utf8")]);
      assert.ok(await isClaimed(path, dead));
      assert.equal(await readdir(folder), ["lock"]);
      await unclaim(path, "another's");
      assert.ok(await isClaimed(path, dead));
      await unclaim(path, winners[0] as string);
      assert.equal(await readdir(folder), []);
    }
  });
}

test("an heir that died over a dead one's lock is waited for, then succeeded", async () => {
  const path = join(folder, "lock");
  const dead = (text: string) => text === "dead";
  await writeFile(path, "dead");
  await writeFile(`${path}.heir`, "");
  // It may be about to take the lock.
  assert.equal(await claim(path, "mine", dead), { taken: false, holder: undefined });
  assert.is(await readFile(path, "utf8"), "dead");
  const minuteAgo = new Date(Date.now() - 60_000);
  await utimes(`${path}.heir`, minuteAgo, minuteAgo);
  assert.ok((await claim(path, "mine", dead)).taken);
  assert.is(await readFile(path, "utf8"), "mine");
  assert.equal(await readdir(folder), ["lock"]);
});

test("who has read a dead one's text does not take the lock from whoever came in between", async () => {
  const path = join(folder, "lock");
  await writeFile(path, "dead");
  const late = await claim(path, "late", async (text) => {
    assert.ok((await claim(path, "first", (other) => other === "dead")).taken);
    return text === "dead";
  });
  assert.not(late.taken);
  assert.is(await readFile(path, "utf8"), "first");
  assert.equal(await readdir(folder), ["lock"]);
});

test.run();
