/** Results in shared memory: their bytes, when they are deleted, what a full folder answers, what a killed process left. */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { SharedFiles } from "../../src/inference/shared-files.js";
import { until } from "../support/until.js";

let parent: string;
test.before.each(() => {
  parent = mkdtempSync(join(tmpdir(), "tapline-shared-"));
});
test.after.each(() => rmSync(parent, { recursive: true, force: true }));

const parts = (bytes: number) => [Buffer.alloc(8), [Buffer.alloc(bytes - 8)], bytes] as const;

const small = mkdtempSync(join(tmpdir(), "tapline-small-"));
const mounted =
  process.platform === "linux" &&
  spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", small]).status === 0;
test.after(() => {
  if (mounted) spawnSync("umount", [small]);
  rmSync(small, { recursive: true, force: true });
});

(mounted ? test : test.skip)("a full folder ends a call in one sentence and keeps nothing", async () => {
  const files = new SharedFiles(small);
  const refused = await files.write(...parts(1_000_000)).catch((error) => error);
  assert.is(refused.status, 503);
  assert.is(
    refused.message,
    `The result's 1000000 bytes do not fit into ${small}: no space is left; use transfer: stream.`,
  );
  const [folder] = readdirSync(small);
  assert.equal(readdirSync(join(small, folder!)), []);
  const { path } = await files.write(...parts(4096));
  assert.ok(existsSync(path));
  files.close();
  assert.equal(readdirSync(small), []);
});

test("folders of processes that ended are deleted, those of running ones are not", async () => {
  const left = join(parent, "tapline-forward-999999999-abcdef");
  const busy = join(parent, `tapline-forward-${process.ppid}-abcdef`);
  for (const folder of [left, busy]) {
    mkdirSync(folder);
    writeFileSync(join(folder, "result.safetensors"), "half");
  }
  const files = new SharedFiles(parent);
  await files.write(...parts(16));
  assert.not.ok(existsSync(left));
  assert.ok(existsSync(busy));
  files.close();
});

for (const [size, bytes] of [
  ["small", 3000],
  ["large", 3_000_000],
] as const) {
  test(`a ${size} file has all parts in order, for this user only`, async () => {
    const files = new SharedFiles(parent);
    const whole = Buffer.from(Array.from({ length: bytes }, (_, i) => i % 251));
    const cuts = [0, 8, 8, 1000, 1001, bytes];
    const pieces = cuts.slice(1).map((end, i) => whole.subarray(cuts[i], end));
    const { path } = await files.write(pieces[0]!, pieces.slice(1), bytes);
    assert.ok(readFileSync(path).equals(whole));
    assert.is(statSync(path).mode & 0o777, 0o600);
    files.close();
  });
}

test("a file that no client fetches is deleted after a while, others are not", async () => {
  const files = new SharedFiles(parent, { seconds: 0.05, sweepMs: 5 });
  const { path } = await files.write(...parts(16));
  await until(() => !existsSync(path), "the file is deleted");
  const patient = new SharedFiles(parent, { seconds: 600, sweepMs: 5 });
  const { path: kept } = await patient.write(...parts(16));
  await setTimeout(50);
  assert.ok(existsSync(kept));
  files.close();
  patient.close();
});

test("files count until their clients delete them", async () => {
  const files = new SharedFiles(parent, { bytes: 40 });
  const [first] = [await files.write(...parts(16)), await files.write(...parts(16))];
  const refused = await files.write(...parts(16)).catch((error) => error);
  assert.is(refused.status, 503);
  assert.match(refused.message, /: 32 bytes wait for their clients, of at most 40; use transfer: stream\.$/);
  rmSync(first!.path);
  assert.ok(existsSync((await files.write(...parts(16))).path));
  files.close();
});

test.run();
