import { readFileSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { blockCount } from "../../src/models/block-count.js";
import { demoModelPath, resolveModel } from "../../src/models/resolve.js";
import { TestHub } from "./support/hub.js";

const demo = readFileSync(demoModelPath);
let hub: TestHub;
let home: string;
test.before.each(async () => {
  hub = await TestHub.open();
  hub.repositories["tiny/demo"] = { files: { "demo-F16.gguf": demo } };
  home = await mkdtemp(join(tmpdir(), "tapline-blocks-"));
  Object.assign(process.env, { HF_ENDPOINT: hub.url, HF_HOME: home });
});
test.after.each(async () => {
  delete process.env.HF_ENDPOINT;
  delete process.env.HF_HOME;
  await hub.close();
  await rm(home, { recursive: true, force: true });
});

test("blocks of a file here, from its head", async () => {
  assert.is(await blockCount("demo"), 8);
  // Of one whose number is a text, nothing is known: one value, whose key ends as it has to.
  const key = "llama.block_count";
  const odd = Buffer.alloc(24 + 8 + key.length + 4 + 8 + 1);
  odd.write("GGUF");
  odd.writeUInt32LE(3, 4);
  odd.writeBigUInt64LE(1n, 16);
  odd.writeBigUInt64LE(BigInt(key.length), 24);
  odd.write(key, 32);
  odd.writeUInt32LE(8, 32 + key.length);
  odd.writeBigUInt64LE(1n, 36 + key.length);
  odd.write("5", 44 + key.length);
  await writeFile(join(home, "odd.gguf"), odd);
  assert.is(await blockCount(join(home, "odd.gguf")), undefined);
  odd.writeUInt32LE(4, 32 + key.length); // a number of four bytes
  await writeFile(join(home, "odd.gguf"), odd.subarray(0, 40 + key.length));
  assert.is(await blockCount(join(home, "odd.gguf")), 1);
  const cut = join(home, "cut.gguf");
  await writeFile(cut, demo.subarray(0, 20));
  assert.is(await blockCount(cut), undefined);
  assert.is(await blockCount("/models/of/another/machine.gguf"), undefined);
});

test("blocks of a hub's model: only its header is downloaded, and nothing is stored", async () => {
  hub.faults = { dripMs: 2, dripBytes: 40_000 };
  assert.is(await blockCount("tiny/demo"), 8);
  assert.ok(hub.sent < demo.length / 2, `${hub.sent} of ${demo.length} bytes`);
  assert.equal(await readdir(home), []);
  const error = await blockCount("tiny/none").catch((fault: Error) => fault);
  assert.match((error as Error).message, "is neither a local file nor a repository");
});

test("blocks of a model in the hub's cache: nothing travels", async () => {
  await resolveModel("tiny/demo");
  const before = hub.sent;
  assert.is(await blockCount("tiny/demo"), 8);
  assert.is(hub.sent, before);
  await hub.close();
  assert.is(await blockCount("tiny/demo"), 8);
  hub = await TestHub.open();
});

test.run();
