import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../../src/models/resolve.js";
import type { LiveArgument, LiveOutput } from "../../devices/fixtures/live.js";
import { writeInF32 } from "../../support/f32-model.js";
import { onPretendGpu } from "../../support/pretend-gpu/index.js";

const fixture = new URL("../../devices/fixtures/live.ts", import.meta.url);
const test = suite("live requests on devices");

/** The embedded model has 8 blocks; the ninth layer is the output head. */
const whole = 9;
/** Tokens for which a plain request holds all slots while two others queue. */
const held = 60;
const layersOf = (count: number) => [3, 1, 5, 7, 0, 2, 4, 6].slice(0, count);
const folder = mkdtempSync(join(tmpdir(), "tapline-live-"));
const path = join(folder, "f32.gguf");
test.before(() => writeInF32(demoModelPath, path));
test.after(() => rmSync(folder, { recursive: true }));

const ask = (spec: string, argument: LiveArgument) => onPretendGpu<LiveOutput>(spec, fixture, argument);

/** Per step of 32 rows, with a number of layers that are edited; `inside` of the rows are read inside a block instead. */
async function perStep(edits: "graph" | "callback", layers: number, inside?: number) {
  const rows = 32 - (inside ?? 0);
  const once = (tokens: number) =>
    ask("1x1024", {
      ...{ edits, gpuLayers: whole, layers: layersOf(layers), rows, tokens },
      ...(inside !== undefined && { inside, held }),
    });
  const run = async (tokens: number) => {
    const found = await once(tokens);
    // Each batch generates one token of each request, so that two requests share them all.
    assert.is(found.output.decodes, tokens + (inside === undefined ? 0 : held), "batches");
    return found;
  };
  const [long, short] = [await run(30), await run(20)];
  assert.is(long.output.computed, layers === 0 ? undefined : edits);
  assert.is(long.output.computedInside, inside === undefined ? undefined : "callback");
  const of = (name: keyof typeof long.counts) => (long.counts[name] - short.counts[name]) / 10;
  const [computes, builds, waits] = [of("computes"), of("builds"), of("waits")];
  return { computes, builds, waits, uploaded: of("uploaded"), downloaded: of("downloaded") };
}

let plain: Awaited<ReturnType<typeof perStep>>;
test.before(async () => {
  plain = await perStep("graph", 0);
});

test("edits in the graph neither split nor rebuild it, and activations stay on the device", async () => {
  assert.equal([plain.computes, plain.builds], [1, 0]);
  for (const layers of [1, 4, 8]) {
    const step = await perStep("graph", layers);
    assert.equal([step.computes, step.builds, step.waits], [1, 0, plain.waits], `${layers} layers`);
    // The lengths of these and, as of the prompt, of the last but one, 4 bytes per row.
    const lengths = new Set([...layersOf(layers), 6]).size;
    assert.is(step.downloaded - plain.downloaded, lengths * 32 * 4);
    // Row numbers: of the results, and per layer. Lists begin at multiples of 64.
    assert.is(step.uploaded - plain.uploaded, (lengths * 64 + 32) * 4);
  }
});

test("the callback cuts the graph at each layer and moves its activations twice", async () => {
  for (const layers of [1, 8]) {
    const step = await perStep("callback", layers);
    // It waits for the positions of the rows, too, which it checks.
    assert.equal([step.computes, step.builds, step.waits], [1 + layers, 0, plain.waits + layers + 1]);
    assert.is(step.downloaded - plain.downloaded, layers * 32 * 128 * 4 + 32 * 4);
    assert.is(step.uploaded - plain.uploaded, layers * 32 * 128 * 4);
  }
});

test("one watched row fetches one row", async () => {
  const step = await perStep("callback", 0, 1);
  assert.equal([step.computes, step.builds, step.waits], [2, 0, plain.waits + 2]);
  assert.is(step.downloaded - plain.downloaded, 128 * 4 + 32 * 4);
  assert.is(step.uploaded, plain.uploaded);
});

test("a request that needs the callback leaves the others' edits in the graph", async () => {
  const step = await perStep("graph", 4, 1);
  // One piece more, at the point inside the block, and of its activations one row.
  assert.equal([step.computes, step.builds, step.waits], [2, 0, plain.waits + 2]);
  assert.is(step.downloaded - plain.downloaded, 5 * 32 * 4 + 128 * 4 + 32 * 4);
  assert.is(step.uploaded - plain.uploaded, (5 * 64 + 32) * 4);
});

const off = (found: number[], wanted: number[]) => {
  assert.is(found.length, wanted.length);
  assert.ok(wanted.length > 0);
  return Math.max(...wanted.map((value, i) => Math.abs(found[i]! - value) / Math.max(1, Math.abs(value))));
};

let reference: ReturnType<typeof ask> | undefined;
for (const [name, spec, gpuLayers] of [
  ["whole on one device", "1x1024", whole],
  ["in part", "1x1024", 4],
  ["over three devices", "3x1024", whole],
  ["over two devices and the host", "2x1024", 5],
] as const) {
  test(`${name}, the graph computes what the callback does on the processor`, async () => {
    const options = { cacheTypeK: "f32", cacheTypeV: "f32", flashAttention: "off" } as const;
    const shared = { path, layers: [3, 6], rows: 3, tokens: 6, watch: true, options };
    const graph = await ask(spec, { ...shared, gpuLayers });
    reference ??= ask("0x0", { ...shared, gpuLayers: 0, edits: "callback" });
    const callback = await reference;
    assert.is(graph.output.computed, "graph", "the default with devices");
    assert.is(callback.output.computed, "callback");
    assert.equal(graph.output.ids, callback.output.ids);
    assert.ok(off(graph.output.logprobs, callback.output.logprobs) < 2e-5);
    assert.ok(off(graph.output.changes, callback.output.changes) < 1e-6);
    assert.ok(off(graph.output.norms, callback.output.norms) < 1e-6);
    assert.ok(off(graph.output.projections, callback.output.projections) < 1e-5);
  });
}

test.run();
