import { test } from "uvu";
import * as assert from "uvu/assert";
import { onPretendGpu } from "../support/pretend-gpu/index.js";

const fixture = new URL("./fixtures/pass.ts", import.meta.url);
const pass = (gpuLayers: number, request: object, times = 1, edits?: "callback") =>
  onPretendGpu<number[][]>("1x1024", fixture, { gpuLayers, request, times, edits });

/** Of the embedded model (models/demo/README.md): 8 blocks, width 128, F16, tied embeddings. */
const blockBytes = 2 * (4 * 128 * 128 + 3 * 128 * 256);

test("a pass that is cancelled on partial offload uploads and computes nothing more", async () => {
  // No block lives on the device: at 40 tokens each block's products are offloaded, and their weights with them.
  const whole = await pass(0, { layers: [1] });
  const left = await pass(0, { layers: [1], earlyExit: true });
  assert.equal(left.output, whole.output);
  const saved = whole.counts.uploaded - left.counts.uploaded;
  assert.ok(saved > 5 * blockBytes, `6 blocks of ${blockBytes} bytes were left out, ${saved} bytes saved`);
  assert.ok(
    left.counts.nodes < whole.counts.nodes / 2,
    `${left.counts.nodes} of ${whole.counts.nodes} nodes`,
  );
});

test("a lens on the device multiplies with the matrix already there", async () => {
  const request = { layers: [7], rows: "last", lensTopK: 3 };
  const once = await pass(9, request, 1);
  const thrice = await pass(9, request, 3);
  const uploadedByPass = (thrice.counts.uploaded - once.counts.uploaded) / 2;
  // A pass and its lens upload tokens, masks and rows. The embedding matrix alone has over a million bytes.
  assert.ok(uploadedByPass < 200_000, `${uploadedByPass} bytes uploaded by a pass with a lens`);
});

test("an edit of many rows by the callback writes them to the device together", async () => {
  const read = await pass(9, { layers: [3] }, 1, "callback");
  const edits = [{ layer: 3, scale: 2, positions: "all" }];
  const edited = await pass(9, { layers: [3], edits }, 1, "callback");
  assert.is(edited.counts.uploads - read.counts.uploads, 1);
  assert.equal(edited.counts.uploaded - read.counts.uploaded, 40 * 128 * 4);
});

for (const gpuLayers of [0, 2]) {
  test(`passes of a model with experts are cancelled, ${gpuLayers} of 4 layers on GPU`, async () => {
    const fixture = new URL("./fixtures/cancelled.ts", import.meta.url);
    const { output } = await onPretendGpu<{ cancelled: number; differed: number }>("1x1024", fixture, {
      gpuLayers,
      wanted: 12,
    });
    assert.is(output.cancelled, 12, "every one of the 12 is left while it runs, and the process lives");
    assert.is(output.differed, 0, "what follows has the numbers of an undisturbed pass");
  });
}

test.run();
