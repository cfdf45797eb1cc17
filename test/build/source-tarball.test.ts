import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { packSource } from "../../scripts/build/source-tarball.js";

const test = suite<{ folder: string; said: string[] }>("source tarball");
const ids = ["-c", "user.name=test", "-c", "user.email=test@example.com"];

test.before.each((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-source-tarball-"));
  context.said = [];
  const clone = join(context.folder, "clone");
  mkdirSync(clone);
  const git = (...args: string[]) => execFileSync("git", [...ids, ...args], { cwd: clone });
  git("init", "--quiet");
  writeFileSync(join(clone, "file.txt"), "committed\n");
  git("add", "file.txt");
  git("commit", "--quiet", "--message", "first");
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }));

function textIn(tarball: string): string {
  return execFileSync("tar", ["-xzOf", tarball, "tapline-1.2.3/file.txt"], { encoding: "utf8" });
}

test("clones of a commit in two folders give the same bytes", ({ folder, said }) => {
  const [clone, other] = [join(folder, "clone"), join(folder, "another one")];
  execFileSync("git", ["clone", "--quiet", clone, other]);
  utimesSync(join(other, "file.txt"), 1e9, 1e9);
  const bytes = [clone, other].map((from) => {
    const name = packSource("1.2.3", folder, (text) => said.push(text), from);
    assert.is(name, "tapline-1.2.3-source.tar.gz");
    return readFileSync(join(folder, name as string));
  });
  assert.ok(bytes[0]?.equals(bytes[1] as Buffer));
  assert.is(textIn(join(folder, "tapline-1.2.3-source.tar.gz")), "committed\n");
  assert.equal(said, []);
});

test("uncommitted changes are left out with a note", ({ folder, said }) => {
  const clone = join(folder, "clone");
  writeFileSync(join(clone, "file.txt"), "changed\n");
  packSource("1.2.3", folder, (text) => said.push(text), clone);
  assert.is(textIn(join(folder, "tapline-1.2.3-source.tar.gz")), "committed\n");
  assert.equal(said, ["tapline-1.2.3-source.tar.gz has the last commit, without your uncommitted changes"]);
});

test("an installed package packs no sources", ({ folder, said }) => {
  assert.is(
    packSource("1.2.3", folder, (text) => said.push(text), folder),
    undefined,
  );
});

test.run();
