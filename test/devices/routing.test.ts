import { test } from "uvu";
import * as assert from "uvu/assert";
import { onPretendGpu } from "../support/pretend-gpu/index.js";

const fixture = new URL("./fixtures/routing.ts", import.meta.url);

interface Compared {
  devices: string[];
  compared: number;
  experts: number;
  weights: number;
  added: number;
}

// Three blocks and the output head, which go to devices from the end; of two devices the last layers are the second's.
for (const [spec, gpuLayers, where] of [
  ["1x1024", 0, "CPU 3"],
  ["1x1024", 2, "CPU 2, Pretend0 1"],
  ["1x1024", 3, "CPU 1, Pretend0 2"],
  ["1x1024", 4, "Pretend0 3"],
  ["2x1024", 3, "CPU 1, Pretend0 2"],
  ["2x1024", 4, "Pretend0 2, Pretend1 1"],
] as const) {
  test(`the router's weights choose the experts: ${spec}, ${where}`, async () => {
    const { output, counts } = await onPretendGpu<Compared>(spec, fixture, { gpuLayers });
    // Two models, two blocks with experts, 40 tokens.
    const right = { compared: 160, experts: 0, weights: 0, added: 0 };
    assert.equal(output, { devices: [where, where], ...right });
    assert.ok(counts.nodes > 0, "the device computed something");
  });
}

test.run();
