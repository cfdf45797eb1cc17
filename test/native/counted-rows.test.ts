import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine } from "../../src/native/engine.js";
import { countedRows, Model } from "../../src/native/index.js";
import { demo } from "./demo-model.js";

const counted = (norms: number[], bos = 0) =>
  [...countedRows(Float32Array.from(norms.flatMap((norm) => [0.6 * norm, 0.8 * norm])), 2, bos)].join("");

test("activations above ten times the median norm do not count", () => {
  // The median of 1, 2, 4, 41 is 3; of 1, 2, 4, 5, 41 it is 4.
  assert.is(counted([2, 41, 1, 4]), "1011");
  assert.is(counted([2, 41, 1, 4, 5]), "10111");
  assert.is(counted([2, 39, 1, 4, 5]), "11111");
  // One activation, or equal ones, are never above their own median.
  assert.equal([counted([7]), counted([3, 3, 3]), counted([0, 0])], ["1", "111", "11"]);
});

test("a BOS token counts neither in figures nor in the median", () => {
  // With its 900 among them the median of 1, 2, 25 and 900 would be 13.5; of the others it is 2.
  assert.is(counted([900, 1, 2, 25], 1), "0110");
  assert.is(counted([5, 1, 2, 3], 1), "0111");
});

test("a text with a broken activation counts whole, so that it shows", () => {
  assert.is(counted([1, Number.NaN, 1, 1, 500]), "11111");
  assert.is(counted([1, Number.POSITIVE_INFINITY, 1, 1, 500]), "11111");
});

test("means of both ports leave out BOS and agree", async () => {
  const prompt = "The captain took off his cap and held it against his chest.";
  const model = await Model.open(demo, { gpuLayers: 0 });
  const engine = await Engine.open({ path: demo, id: "demo", threads: 1, parallel: 1 });
  try {
    const tokens = await model.tokenize(prompt);
    assert.ok(model.info.addBos && tokens.length > 8);
    const context = await model.createContext({ nCtx: 64, threads: 1 });
    const width = model.info.nEmbd;
    const layers = [1, model.info.nLayer - 1];
    const all = await context.features({ sequences: [tokens], layers, rows: "all" });
    const means = await context.features({ sequences: [tokens], layers, rows: "mean" });
    const resident = await engine.states({ prompt, layers, rows: "mean", maxTokens: 64 });
    for (const [i, layer] of layers.entries()) {
      const rows = all.get(layer)!.data;
      const norm = (row: number) => Math.hypot(...rows.subarray(row * width, (row + 1) * width));
      const norms = Array.from(tokens, (_, row) => norm(row));
      const sorted = norms.slice(1).sort((a, b) => a - b);
      const median = (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
      const kept = norms.flatMap((length, row) => (row > 0 && length <= 10 * median ? [row] : []));
      const excluded = { bos: 1, outliers: tokens.length - 1 - kept.length };
      assert.equal([means.get(layer)!.excluded, resident[i]!.excluded], [excluded, excluded]);
      const mean = Float32Array.from({ length: width }, (_, k) => {
        return kept.reduce((sum, row) => sum + rows[row * width + k]!, 0) / kept.length;
      });
      for (const found of [means.get(layer)!.data, resident[i]!.state]) {
        const apart = Math.hypot(...found.map((value, k) => value - mean[k]!)) / Math.hypot(...mean);
        assert.ok(apart < 2e-3, `layer ${layer}: ${apart}`);
      }
    }
  } finally {
    await engine.close();
    await model.close();
  }
});

test.run();
