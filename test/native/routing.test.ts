import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, Model } from "../../src/native/index.js";
import { type Choice, route, sizes, type Weights, writeExpertsModel } from "../support/experts-model.js";
import { apart, demo, logitsOf, rejects, scratch, someTokens } from "./demo-model.js";

/** As routers come: one with all that they have, one with nothing but a softmax. */
const choices: Record<string, Choice> = {
  grouped: { groups: 4, groupsUsed: 2, gate: "sigmoid", biased: true, normed: true, scale: 2.5 },
  plain: { groups: 1, groupsUsed: 1, gate: "softmax", biased: false, normed: false, scale: 1 },
};
const layers = [1, 2];
const tokens = someTokens(11, sizes.vocabulary);
const folder = scratch();

interface Subject {
  model: Model;
  context: Context;
  weights: Weights;
  choice: Choice;
}
const subjects: Subject[] = [];
test.before(async () => {
  for (const [name, choice] of Object.entries(choices)) {
    const path = join(folder, `${name}.gguf`);
    const weights = await writeExpertsModel(path, choice);
    const model = await Model.open(path, { gpuLayers: 0 });
    const context = await model.createContext({ threads: 1, nCtx: 64, nBatch: 64 });
    subjects.push({ model, context, weights, choice });
  }
});
test.after(async () => {
  for (const { model } of subjects) await model.close();
});

test("experts and weights are those that the weights of the router give, and what they add is theirs", async () => {
  for (const { context, weights, choice } of subjects) {
    assert.equal(context.points.router.layers, layers);
    assert.equal(context.points.router.experts, [sizes.experts, sizes.experts]);
    assert.equal(context.points.router.widths, [sizes.used, sizes.used]);
    await context.reset();
    const found = await context.advance({ tokens, layers, points: ["mid", "ffn_out"], routing: layers });
    const seen = new Set<number>();
    for (const [i, { layer, experts, chosen, weights: applied }] of found.routing!.entries()) {
      assert.is(layer, layers[i]);
      assert.is(experts, sizes.experts);
      assert.equal(chosen.shape, [tokens.length, sizes.used]);
      assert.equal(applied.shape, [tokens.length, sizes.used]);
      const at = (point: string) =>
        found.layers.find((one) => one.layer === layer && one.point === point)!.states!.data;
      for (const token of tokens.keys()) {
        const row = (values: Float32Array, width: number) =>
          values.subarray(token * width, (token + 1) * width);
        const expected = route(weights, choice, layer, row(at("mid"), sizes.hidden));
        const ours = chosen.data.subarray(token * sizes.used, (token + 1) * sizes.used);
        assert.equal([...ours], expected.chosen, `block ${layer}, token ${token}`);
        assert.ok(apart(row(applied.data, sizes.used), expected.weights) < 1e-5);
        assert.ok(apart(row(at("ffn_out"), sizes.hidden), expected.added) < 1e-5);
        for (const expert of ours) seen.add(expert);
      }
    }
    assert.ok(seen.size > sizes.used, "not always the same experts");
  }
});

test("reading the router changes no logit, and in chunks, or where a batch is split, rows are put together", async () => {
  for (const { model, context } of subjects) {
    const plain = await logitsOf(context, { tokens, layers: [] });
    await context.reset();
    const whole = await context.advance({ tokens, layers: [], routing: layers, logits: true });
    assert.equal(whole.logits, plain);
    await context.reset();
    const chunks: number[][] = [[], []];
    for (const chunk of [tokens.slice(0, 4), tokens.slice(4, 5), tokens.slice(5)]) {
      const { routing } = await context.advance({ tokens: chunk, layers: [], routing: layers });
      for (const [i, { chosen }] of routing!.entries()) chunks[i]!.push(...chosen.data);
    }
    for (const [i, chunk] of chunks.entries()) assert.equal(chunk, [...whole.routing![i]!.chosen.data]);
    // The last layer alone, first: without an answer one pass has all rows, with one two have.
    await context.reset();
    const one = await context.advance({ tokens, layers: [], routing: [2] });
    assert.equal(one.routing![0]!.chosen.data, whole.routing![1]!.chosen.data);
    assert.ok(apart(one.routing![0]!.weights.data, whole.routing![1]!.weights.data) < 1e-5);
    // With rows of the last token alone, the router is still every token's.
    await context.reset();
    const last = await context.advance({ tokens, layers: [2], rows: "last", routing: [2, 1] });
    assert.equal(
      last.routing!.map(({ layer }) => layer),
      [2, 1],
    );
    assert.equal(last.routing![0]!.chosen.data, whole.routing![1]!.chosen.data);
    assert.is(model.info.nLayer, sizes.blocks);
  }
});

test("expert weights that are not finite are refused with the token's index", async () => {
  for (const [name, choice] of Object.entries(choices)) {
    const path = join(folder, `damaged-${name}.gguf`);
    await writeExpertsModel(path, choice, tokens[6]);
    const model = await Model.open(path, { gpuLayers: 0 });
    try {
      const context = await model.createContext({ threads: 1, nCtx: 64, nBatch: 64 });
      await context.advance({ tokens: tokens.slice(0, 4), layers: [], routing: layers });
      await context.advance({ tokens: tokens.slice(4, 6), layers: [], routing: layers });
      await rejects(
        context.advance({ tokens: tokens.slice(6, 9), layers: [], routing: layers }),
        "COMPUTE",
        /^The weight of an expert of block 1 at token 6 is not finite; the model file may be damaged\.$/,
      );
    } finally {
      await model.close();
    }
  }
});

test("a model without experts is refused in one sentence", async () => {
  const { context } = subjects[0]!;
  const read = (routing: number[], of = context) => of.advance({ tokens, layers: [], routing });
  await context.reset();
  await rejects(read([0]), "UNSUPPORTED_ARCHITECTURE", /^Block 0 has no router: it has no experts\.$/);
  await rejects(read([3]), "LAYER_OUT_OF_RANGE");
  await rejects(read([1, 1]), "INVALID_ARGUMENT", /listed twice/);
  await rejects(
    context.advance({ tokens, layers: [1], points: ["router"] }),
    "INVALID_ARGUMENT",
    /^The point router does not have one vector per token; request it separately\.$/,
  );
  await rejects(
    context.advance({ tokens, layers: [1], points: ["mid"], edits: [{ layer: 1, point: "router" }] }),
    "INVALID_ARGUMENT",
    /cannot be changed/,
  );
  const dense = await Model.open(demo);
  try {
    const other = await dense.createContext({ threads: 1, nCtx: 64 });
    assert.is(other.points.router.supported, false);
    await rejects(
      read([1], other),
      "UNSUPPORTED_ARCHITECTURE",
      /^The architecture 'qwen3' has no proven router: block 7 has no experts\.$/,
    );
  } finally {
    await dense.close();
  }
});

test.run();
