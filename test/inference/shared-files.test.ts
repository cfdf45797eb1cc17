/** Results in shared memory: what a full one answers, and what a killed process left. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { SharedFiles } from "../../src/inference/shared-files.js";

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

test.run();
