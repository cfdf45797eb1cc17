import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { demo } from "../native/demo-model.js";
import { writeInF32 } from "../support/f32-model.js";
import { onPretendGpu } from "../support/pretend-gpu/index.js";
import type { InGraphTask } from "./fixtures/in-graph.js";

const test = suite("experiments in the graph");
const folder = mkdtempSync(join(tmpdir(), "tapline-in-graph-"));
const path = join(folder, "f32.gguf");
test.before(() => writeInF32(demo, path));
test.after(() => rmSync(folder, { recursive: true }));

const fixture = new URL("./fixtures/in-graph.ts", import.meta.url);
/** The embedded model has 8 blocks of width 128; the ninth layer is the output head. */
const whole = 9;
const [tokens, width] = [40, 128];
const four = [0, 2, 4, 6];
const every = [0, 1, 2, 3, 4, 5, 6];

const run = (task: InGraphTask, spec = "1x1024") => onPretendGpu<number[]>(spec, fixture, task);

const off = (found: number[], wanted: number[]) => {
  assert.is(found.length, wanted.length);
  assert.ok(wanted.length > 0);
  return Math.max(...wanted.map((value, i) => Math.abs(found[i]! - value) / Math.max(1, Math.abs(value))));
};

/** What one more pass costs. */
async function perPass(task: Omit<InGraphTask, "gpuLayers">) {
  const [long, short] = [
    await run({ ...task, gpuLayers: whole, times: 5 }),
    await run({ ...task, gpuLayers: whole, times: 3 }),
  ];
  const of = (name: keyof typeof long.counts) => (long.counts[name] - short.counts[name]) / 2;
  return {
    ...{ computes: of("computes"), builds: of("builds"), waits: of("waits") },
    ...{ uploaded: of("uploaded"), downloaded: of("downloaded") },
    numbers: long.output,
  };
}

test("a capture in the graph neither splits nor rebuilds it, and is fetched once", async () => {
  const plain = await perPass({ experiment: "plain", layers: [] });
  for (const layers of [four, every]) {
    const graph = await perPass({ experiment: "capture", layers, edits: "graph" });
    const callback = await perPass({ experiment: "capture", layers, edits: "callback" });
    assert.equal(graph.numbers, callback.numbers, "the same bits");
    const rows = layers.length * tokens * width * 4;
    assert.equal(
      [graph.computes, graph.builds, graph.waits],
      [plain.computes, plain.builds, plain.waits + 1],
    );
    assert.is(graph.downloaded - plain.downloaded, rows);
    // The number of each token's row.
    assert.is(graph.uploaded - plain.uploaded, tokens * 4);
    assert.equal(
      [callback.computes, callback.builds, callback.waits],
      [plain.computes + layers.length, plain.builds, plain.waits + layers.length],
    );
    assert.is(callback.downloaded - plain.downloaded, rows);
  }
});

test("norms alone leave the rows on the device", async () => {
  const plain = await perPass({ experiment: "plain", layers: [] });
  const graph = await perPass({ experiment: "norms", layers: four, edits: "graph" });
  const callback = await perPass({ experiment: "norms", layers: four, edits: "callback" });
  assert.ok(off(graph.numbers, callback.numbers) < 1e-6);
  assert.equal([graph.computes, graph.builds, graph.waits], [plain.computes, plain.builds, plain.waits]);
  assert.is(graph.downloaded - plain.downloaded, four.length * tokens * 4);
  assert.is(callback.downloaded - plain.downloaded, four.length * tokens * width * 4);
});

test("a pass that ends early stops at its last layer only", async () => {
  const [graph, callback] = [
    await perPass({ experiment: "extract", layers: four, edits: "graph" }),
    await perPass({ experiment: "extract", layers: four, edits: "callback" }),
  ];
  assert.equal(graph.numbers, callback.numbers, "the same bits");
  assert.is(graph.downloaded, callback.downloaded);
  // Two batches. In each, three layers are read without a stop, and then fetched together.
  assert.is(callback.computes - graph.computes, 2 * 3);
  assert.is(callback.waits - graph.waits, 2 * 2);
});

test("comparing continuations neither splits the graph nor moves activations", async () => {
  const [graph, callback] = [
    await perPass({ experiment: "compare", layers: four, edits: "graph" }),
    await perPass({ experiment: "compare", layers: four, edits: "callback" }),
  ];
  assert.ok(graph.computes * 2 < callback.computes, `${graph.computes} and ${callback.computes} pieces`);
  assert.ok(graph.waits * 2 < callback.waits, `${graph.waits} and ${callback.waits} waits`);
  assert.ok(graph.downloaded < callback.downloaded, `${graph.downloaded}, ${callback.downloaded} bytes`);
});

for (const experiment of ["edited", "forward", "compare", "patch", "extract"] as const) {
  for (const [name, spec, gpuLayers] of [
    ["one device", "1x1024", whole],
    ["half of one", "1x1024", 4],
    ["three devices", "3x1024", whole],
  ] as const) {
    test(`${experiment} on ${name}: the graph computes what the callback does`, async () => {
      const task = { experiment, gpuLayers, layers: four, path };
      const [graph, callback] = [await run(task, spec), await run({ ...task, edits: "callback" }, spec)];
      // Edits are rounded in another order; rows without edits are the same to the bit.
      const apart = off(graph.output, callback.output);
      assert.ok(apart <= (experiment === "extract" ? 0 : 2e-5), `${apart}`);
      assert.ok(graph.counts.computes < callback.counts.computes, "the default with devices");
    });
  }
}

test.run();
