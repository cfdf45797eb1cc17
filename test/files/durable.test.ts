import promises, { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { makeFolderDurably, removeTorn, writeDurably } from "../../src/files/durable.js";
import { taplineHome } from "../../src/files/home.js";
import { watchOpenFiles } from "../support/open-files.js";

let folder: string;
const { open, rename, readdir } = promises;
test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-durable-"));
});
test.after.each(async () => {
  setDisk({ open, rename, readdir });
  await rm(folder, { recursive: true });
});

/** Lets the disk do something else from now on. */
function setDisk(functions: Partial<typeof promises>): void {
  Object.assign(promises, functions);
  syncBuiltinESMExports();
}

const failed = (code: string) => Object.assign(new Error(code), { code });
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (error: Error) => error.message,
  );

test("files are written from text, bytes or chunks, readable by the owner only", async () => {
  const path = join(folder, "a");
  const pieces = function* () {
    yield Buffer.from("one ");
    yield new Uint8Array([0x74, 0x77, 0x6f]);
  };
  const arriving = async function* () {
    yield* pieces();
  };
  const all = [
    ["é and more", "é and more"],
    [new Uint8Array([0x61, 0x62]), "ab"],
    [[Buffer.from("x"), Buffer.from("yz")], "xyz"],
    [pieces(), "one two"],
    [arriving(), "one two"],
    ["", ""],
  ] as const;
  for (const [content, text] of all) {
    await writeDurably(path, content);
    assert.is(await readFile(path, "utf8"), text);
  }
  if (process.platform !== "win32") assert.is((await stat(path)).mode & 0o777, 0o600);
  assert.equal(await readdir(folder), ["a"]);
});

test("a file that could not be written whole is the old one, with nothing beside it", async () => {
  const path = join(folder, "a");
  await writeDurably(path, "old");
  const breaking = function* () {
    yield Buffer.from("new");
    throw failed("no more");
  };
  assert.is(await refusal(writeDurably(path, breaking())), "no more");
  setDisk({ rename: () => Promise.reject(failed("EIO")) });
  assert.is(await refusal(writeDurably(path, "new")), "EIO");
  assert.is(await readFile(path, "utf8"), "old");
  assert.equal(await readdir(folder), ["a"]);
});

test("a file that is written is let go, whether that worked or not", async () => {
  const files = watchOpenFiles();
  try {
    await writeDurably(join(folder, "a"), "text");
    const failing = function* (): Generator<Uint8Array> {
      yield* [];
      throw failed("no bytes");
    };
    assert.is(await refusal(writeDurably(join(folder, "b"), failing())), "no bytes");
    // Both files, and the folder of the first.
    assert.equal([files.opened.length, files.left], [3, []]);
  } finally {
    files.stop();
  }
});

test("what a killed writer left of a file goes, and nothing else", async () => {
  const torn = "0123456789ab.tmp";
  const others = ["a", "a.json", `a.${torn}.old`, "a.0123456789aX.tmp", `b.${torn}`, torn, `a${torn}`];
  for (const name of [...others, `a.${torn}`, "a.ffffffffffff.tmp"]) await writeFile(join(folder, name), "");
  await removeTorn(join(folder, "a"));
  assert.equal((await readdir(folder)).sort(), others.toSorted());
  // Somebody else may have been faster.
  setDisk({ readdir: (async () => [`a.${torn}`]) as unknown as typeof readdir });
  await removeTorn(join(folder, "a"));
});

test("folders are private, and each new name is synced in its parent", async () => {
  const files = watchOpenFiles();
  const { opened: synced } = files;
  const path = join(folder, "a", "b", "c");
  await makeFolderDurably(path);
  assert.equal(
    synced,
    process.platform === "win32" ? [] : [join(folder, "a", "b"), join(folder, "a"), folder],
  );
  if (process.platform !== "win32") assert.is((await stat(path)).mode & 0o777, 0o700);
  // One that is there has been synced by whoever made it.
  synced.length = 0;
  await makeFolderDurably(path);
  files.stop();
  assert.equal([synced, files.left], [[], []]);
});

if (process.platform !== "win32") {
  test("a write-only folder is accepted; a failing one is reported", async () => {
    const refusing = (code: string) => ({ open: () => Promise.reject(failed(code)) });
    setDisk(refusing("EACCES"));
    await makeFolderDurably(join(folder, "a", "b"));
    setDisk(refusing("EIO"));
    assert.is(await refusal(makeFolderDurably(join(folder, "c", "d"))), "EIO");
  });
}

test("home is the option, else the environment, else the account's folder", () => {
  const saved = process.env.TAPLINE_HOME;
  try {
    process.env.TAPLINE_HOME = folder;
    assert.is(taplineHome("named"), join(process.cwd(), "named"));
    assert.is(taplineHome(), folder);
    for (const none of ["", undefined]) {
      if (none === undefined) delete process.env.TAPLINE_HOME;
      else process.env.TAPLINE_HOME = none;
      assert.is(taplineHome(), join(homedir(), ".tapline"));
    }
  } finally {
    if (saved === undefined) delete process.env.TAPLINE_HOME;
    else process.env.TAPLINE_HOME = saved;
  }
});

test.run();
