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

// Three blocks and the output head, which go to devices from the end; of two devices each takes its part.
for (const [spec, gpuLayers] of [
  ["1x1024", 0],
  ["1x1024", 2],
  ["1x1024", 3],
  ["1x1024", 4],
  ["2x1024", 3],
  ["2x1024", 4],
] as const) {
  test(`experts are those of the router's weights wherever blocks lie: ${spec}, ${gpuLayers} of 4 layers there`, async () => {
    const { output, counts } = await onPretendGpu<Compared>(spec, fixture, { gpuLayers });
    const { devices, ...numbers } = output;
    // Two models, two blocks with experts, 40 tokens.
    assert.equal(numbers, { compared: 160, experts: 0, weights: 0, added: 0 }, devices.join("; "));
    assert.ok(counts.nodes > 0, "the device computed something");
    const pretend = devices[0]!.split(", ").filter((device) => device.startsWith("Pretend")).length;
    assert.is(pretend, gpuLayers === 0 ? 0 : Number(spec[0]), devices[0]);
  });
}

test.run();
