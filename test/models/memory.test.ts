import { totalmem } from "node:os";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type DeviceMemory, hostMemory, judgeMemory } from "../../src/models/memory.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { estimateMemory, NativeError } from "../../src/native/index.js";

const GB = 1e9;
const device = (over: Partial<DeviceMemory>): DeviceMemory => ({
  name: "host",
  host: true,
  free: 0,
  total: 0,
  weights: 0,
  context: 0,
  compute: 0,
  ...over,
});

test("llama.cpp's layout: the weights of the file, and K/V as the shape says", async () => {
  const [host, ...others] = await estimateMemory({ path: demoModelPath, ctxSize: 512, parallel: 2 });
  assert.equal(others, []);
  assert.is(host?.host, true);
  // 1,542,784 parameters, nearly all in two bytes.
  assert.ok(host!.weights > 2 * 1_500_000 && host!.weights < 3_151_136);
  // 8 blocks, keys and values of 2 slots of 512 tokens; the shape has no more than 128 values of 2 bytes a token.
  const most = 8 * 2 * 2 * 512 * 128 * 2;
  assert.ok(host!.context > 0 && host!.context <= most);
  const [twice] = await estimateMemory({ path: demoModelPath, ctxSize: 512, parallel: 4 });
  assert.is(twice!.context, 2 * host!.context);
  try {
    await estimateMemory({ path: "none.gguf" });
    assert.unreachable();
  } catch (error) {
    assert.instance(error, NativeError);
    assert.is((error as NativeError).code, "MODEL_LOAD");
  }
});

test("what fits, what is tight, what cannot be", () => {
  const need = [device({ weights: 6 * GB, context: 1 * GB, compute: 1 * GB })];
  assert.equal(judgeMemory(need, { free: 10 * GB, total: 16 * GB }).fits, "yes");
  assert.is(judgeMemory(need, { free: 10 * GB, total: 16 * GB }).sentence, "");
  const tight = judgeMemory(need, { free: 4 * GB, total: 16 * GB });
  assert.is(tight.fits, "tight");
  assert.is(
    tight.sentence,
    "The model needs about 8.0 GB (weights 6.0 GB, context 1.0 GB, buffers 1.0 GB), but only 4.0 GB of 16.0 GB " +
      "is free: it may be slow, or the system may kill it.",
  );
  const no = judgeMemory(need, { free: 4 * GB, total: 7 * GB });
  assert.is(no.fits, "no");
  assert.match(no.sentence, "there is only 7.0 GB in total");
  assert.match(no.sentence, "--force");
});

test("exact fits pass and are marked as tight; a container's limit applies", () => {
  const need = [device({ weights: 8 * GB })];
  assert.is(judgeMemory(need, { free: 8 * GB, total: 8 * GB }).fits, "yes");
  assert.is(judgeMemory(need, { free: 8 * GB - 1, total: 8 * GB }).fits, "tight");
  const { availableMemory, constrainedMemory } = process;
  try {
    process.availableMemory = () => 5e5;
    process.constrainedMemory = () => 1e6;
    assert.equal(hostMemory(), { free: 5e5, total: 1e6 });
    process.constrainedMemory = () => 0; // none is known
    assert.equal(hostMemory(), { free: 5e5, total: totalmem() });
    process.constrainedMemory = () => 2 ** 63; // as none is told
    assert.is(hostMemory().total, totalmem());
  } finally {
    Object.assign(process, { availableMemory, constrainedMemory });
  }
});

test("devices count together: a GPU or an rpc-server takes what the machine cannot", () => {
  const both = [
    device({ name: "RPC0", host: false, free: 9 * GB, total: 12 * GB, weights: 8 * GB }),
    device({ weights: 1 * GB }),
  ];
  assert.is(judgeMemory(both, { free: 2 * GB, total: 4 * GB }).fits, "yes");
  assert.is(judgeMemory(both, { free: 0, total: 4 * GB }).fits, "yes");
  assert.is(judgeMemory([device({ weights: 9 * GB })], { free: 2 * GB, total: 4 * GB }).fits, "no");
});

test.run();
