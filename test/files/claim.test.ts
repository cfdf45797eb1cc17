import promises, { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { claim, isClaimed, unclaim } from "../../src/files/claim.js";

let folder: string;
const { link, rename, open: openFile } = promises;
const dead = (text: string) => text === "dead";
test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-claim-"));
});
test.after.each(async () => {
  setDisk({ link, rename, open: openFile });
  await rm(folder, { recursive: true });
});

/** Lets the disk do something else from now on. */
function setDisk(functions: Partial<typeof promises>): void {
  Object.assign(promises, functions);
  syncBuiltinESMExports();
}

const refusing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));

for (const [where, implementation] of [
  ["with hard links", link],
  ["without hard links", refusing("EPERM")],
] as const) {
  test(`one of many gets it, and leaves nothing else behind, ${where}`, async () => {
    setDisk({ link: implementation });
    const path = join(folder, "lock");
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

test("a stale lock is never taken from a process that claimed it in between", async () => {
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

test("who reads a file that has no content yet looks again, and finds its holder", async () => {
  const path = join(folder, "lock");
  await writeFile(path, "");
  let looks = 0;
  setDisk({
    open: (async (file: string, ...rest: []) => {
      const handle = await openFile(file, ...rest);
      const read = handle.readFile.bind(handle);
      handle.readFile = (async (encoding: "utf8") => {
        const seen = await read(encoding);
        if (file === path && ++looks === 1) await writeFile(path, "holder");
        return seen;
      }) as typeof handle.readFile;
      return handle;
    }) as typeof openFile,
  });
  assert.equal(await claim(path, "mine", dead), { taken: false, holder: "holder" });
  assert.is(looks, 2);
});

test("an heir whose file was cleared away meanwhile has the lock all the same", async () => {
  const path = join(folder, "lock");
  await writeFile(path, "dead");
  setDisk({
    rename: async (from, to) => {
      await rename(from, to);
      await rm(`${path}.heir`);
    },
  });
  assert.equal(await claim(path, "mine", dead), { taken: true, holder: undefined });
  assert.is(await readFile(path, "utf8"), "mine");
});

test("a disk that fails is told, and nothing is left of the attempt", async () => {
  const path = join(folder, "lock");
  const refusal = () =>
    claim(path, "mine", dead).then(
      ({ taken }) => `taken: ${taken}`,
      (error: Error) => error.message,
    );
  setDisk({ link: refusing("EIO") });
  assert.is(await refusal(), "EIO");
  assert.equal(await readdir(folder), []);
  // Without links the lock is written; a folder of that name is no lock that somebody holds.
  await mkdir(`${path}.heir`);
  await writeFile(path, "dead");
  setDisk({ link: refusing("ENOTSUP"), rename: refusing("EROFS") });
  assert.is(await refusal(), "taken: false");
  await rm(`${path}.heir`, { recursive: true });
  assert.is(await refusal(), "EROFS");
  assert.equal(await readdir(folder), ["lock"]);
});

test.run();
