/** The figures of `tapline quants`, against sums by hand. */
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { circuitFigures, comparedGraphs, spearman } from "../../src/quants/circuits.js";
import { speedFigures, textFigures } from "../../src/quants/figures.js";
import { distinguish, openFile } from "../../src/quants/files.js";
import { compared } from "../../src/quants/measure.js";
import { survivalOf } from "../../src/quants/survival.js";
import { writeTinyModel } from "../inference/support/tiny-models.js";
import { temporaryFolder } from "../support/temporary.js";

const near = (found: number, wanted: number, bound = 1e-6) =>
  assert.ok(Math.abs(found - wanted) <= bound, `${found} instead of ${wanted}`);

test("KL, agreement and losses of three rows of logits", () => {
  // Probabilities 1/2, 1/4, 1/4 and 1/3, 1/3, 1/3; then the greatest in different places, then one that is
  // certain in both; the last row predicts nothing.
  const one = Float32Array.of(Math.log(2), 0, 0, 5, 5, 6, 0, 0, 99, 0, 0, 0);
  const two = Float32Array.of(3, 3, 3, 8, 7, 7, 0, 0, 99, 9, 0, 0);
  const found = compared(Int32Array.of(1, 0, 2, 2), one, two);
  assert.is(found.tokens, 3);
  const [first, second] = [0.5 * Math.log(3 / 2) + 0.5 * Math.log(3 / 4), (Math.E - 1) / (2 + Math.E)];
  near(found.divergence, first + second);
  assert.is(found.agreed, 2);
  const rest = Math.log(2 + Math.E);
  near(found.loss[0], Math.log(2) + rest - 1);
  near(found.loss[1], Math.log(3) + rest);
});

test("means weigh tokens, and perplexities are paired", () => {
  const lines = [
    { text: 0, tokens: 1, divergence: 0.5, agreed: 1, loss: [1, 2] as [number, number] },
    { text: 1, tokens: 3, divergence: 0.3, agreed: 0, loss: [3, 6] as [number, number] },
  ];
  const found = textFigures(lines, 0);
  near(found.divergence.value, 0.2);
  near(found.agreement.value, 0.25);
  near(found.reference.value, Math.E);
  near(found.perplexity.value, Math.E ** 2);
  near(found.perplexity_ratio.value, Math.E);
  // Every text has the same ratio, so that no choice of texts changes it.
  near(found.perplexity_ratio.low, Math.E);
  near(found.perplexity_ratio.high, Math.E);
  near(found.divergence.low, 0.1);
  near(found.divergence.high, 0.5);
});

test("speeds are means over a model's own rounds", () => {
  const lines = [0, 1].flatMap((round) => [
    { round, model: 0, prompt: 10 + round, generation: 4 },
    { round, model: 1, prompt: 100, generation: 50 },
  ]);
  const { prompt, generation } = speedFigures(lines, 0, 0);
  assert.equal([prompt.value, prompt.low, prompt.high], [10.5, 10, 11]);
  assert.is(generation.value, 4);
});

test("features survive, fade or die, token by token", () => {
  // Two texts of three tokens, of which the first does not count.
  const made = (active: number[][]) => ({
    ...{ tokens: [9, 1, 2, 9, 3, 4], starts: [0, 3, 6], values: active.flat().map(() => 1) },
    pointers: [0, ...active.keys()].map((at, place) =>
      place === 0 ? 0 : active.slice(0, at + 1).flat().length,
    ),
    indices: active.flat(),
  });
  const reference = made([
    [1, 7],
    [1, 2, 3],
    [1, 2, 3],
    [1, 7],
    [1, 2, 3, 4],
    [1, 2],
  ]);
  const form = made([[7], [1, 2], [1, 3], [7], [1, 5], [1]]);
  const options = { least: 3, first: 1, resamples: 200, seed: 0 };
  const found = survivalOf(reference, form, options);
  // 1: 4 of 4; 2: 1 of 4; 3: 1 of 3; 4 is too rare, 7 is at first tokens alone.
  assert.is(found.features, 3);
  near(found.recall.value, (1 + 1 / 4 + 1 / 3) / 3);
  near(found.surviving.value, 1 / 3);
  near(found.died.value, 0);
  assert.equal(found.dead, []);
  const gone = survivalOf(reference, made([[7], [1], [1], [7], [1], [1]]), options);
  near(gone.died.value, 2 / 3);
  assert.equal(gone.dead, [
    { feature: 2, tokens: 4 },
    { feature: 3, tokens: 3 },
  ]);
  assert.throws(
    () => survivalOf(reference, { ...form, tokens: [9, 1, 2, 9, 3, 5] }, options),
    /different tokens/,
  );
});

test("correlations of activations over all tokens, 0 where inactive", () => {
  // Five tokens of one text; features 0, 1 and 2, of which the last is dead in the form.
  const made = (rows: number[][]) => ({
    ...{ tokens: [1, 2, 3, 4, 5], starts: [0, 5] },
    pointers: [0, 1, 2, 3, 4, 5].map((to) => 3 * to),
    ...{ indices: rows.flatMap(() => [0, 1, 2]), values: rows.flat() },
  });
  const columns = (one: number[], two: number[], three: number[]) =>
    made(one.map((value, at) => [value, two[at]!, three[at]!]));
  const reference = columns([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 0, 2, 0, 3]);
  const form = columns([2, 4, 6, 8, 10], [2, 1, 4, 3, 5], [0, 0, 0, 0, 0]);
  const found = survivalOf(reference, form, { least: 3, first: 0, resamples: 50, seed: 0 });
  // Twice as much correlates perfectly; the second sums to 8 of deviations with 10 on either side.
  near(found.correlation.value, (1 + 0.8 + 0) / 3);
  near(found.correlated.value, 1 / 3);
  near(survivalOf(reference, reference, { least: 3, first: 0, resamples: 50, seed: 0 }).correlated.value, 1);
});

test("graphs overlap by their neurons and heads, ranked by influence", () => {
  const node = (kind: "neuron" | "head" | "rest" | "embedding", index: number, influence: number) => ({
    ...{ kind, layer: 1, position: 2, index, value: 1, influence },
  });
  const scores = (replacement: number, rounding: number) => ({ replacement, rounding, completeness: 1 });
  const reference = {
    nodes: [
      node("neuron", 1, 0.1),
      node("neuron", 2, 0.2),
      node("head", 1, 0.3),
      node("rest", 3, 0.9),
      node("embedding", 4, 0.9),
    ],
    scores: scores(0.7, 0.1),
  };
  const form = {
    nodes: [node("neuron", 1, 0.2), node("head", 1, 0.1), node("neuron", 5, 0.4)],
    scores: scores(0.4, 0.3),
  };
  const found = comparedGraphs(reference, form);
  assert.equal([found.nodes, found.overlap], [[3, 3], 0.5]);
  // Ranks 2 3 4 1 and 3 1 2 4, deviations -.5 .5 1.5 -1.5 and .5 -1.5 -.5 1.5: -4 of 5.
  near(found.rank!, -4 / 5);
  near(found.error[0], 0.3);
  near(found.error[1], 0.6);
  assert.equal(found.rounding, [0.1, 0.3]);
  near(comparedGraphs(reference, reference).overlap!, 1);
  const none = comparedGraphs({ nodes: [], scores: scores(1, 0) }, { nodes: [], scores: scores(1, 0) });
  assert.equal([none.overlap, none.rank], [null, null]);
  const prompt = (overlap: number | null) => ({ prompt: "a", target: "b", ...found, overlap });
  const figures = circuitFigures([prompt(0.2), prompt(0.6), prompt(null)], 0);
  near(figures.overlap!.value, 0.4);
  assert.ok(figures.overlap!.low >= 0.2 && figures.overlap!.high <= 0.6);
});

test("equal influences share their mean rank", () => {
  // Ranks 1 2.5 2.5 4 and 1 3 2 4.
  near(spearman([1, 2, 2, 4], [1, 3, 2, 4])!, 4.5 / Math.sqrt(4.5 * 5));
  assert.is(spearman([1, 1], [1, 2]), null);
});

test("forms of one type have names by imatrix, mix, or file", () => {
  const form = (file: string, imatrix: string, q6: number) => ({
    ...{ name: "Q4_K_M", file, fingerprint: `${file}-hash` },
    types: [
      { type: "Q4_K", tensors: 9, weights: 100 - q6 },
      { type: "Q6_K", tensors: 1, weights: q6 },
    ],
    imatrix: imatrix === "" ? null : { file: imatrix, dataset: "" },
  });
  const names = (...forms: ReturnType<typeof form>[]) => distinguish(forms).map(({ name }) => name);
  assert.equal(names(form("a", "", 20)), ["Q4_K_M"]);
  assert.equal(names(form("a", "", 20), form("b", "wiki.dat", 20)), [
    "Q4_K_M (no imatrix)",
    "Q4_K_M (imatrix wiki.dat)",
  ]);
  assert.equal(names(form("a", "", 20), form("b", "", 30)), [
    "Q4_K_M (Q4_K 80.0 %, Q6_K 20.0 %)",
    "Q4_K_M (Q4_K 70.0 %, Q6_K 30.0 %)",
  ]);
  assert.equal(names(form("a", "", 20), form("b", "", 20)), ["Q4_K_M (a)", "Q4_K_M (b)"]);
});

test("a file's types and importance matrix, without folders of its machine", async () => {
  const path = join(temporaryFolder("quants-file"), "some.gguf");
  const metadata = { "general.file_type": 15, "quantize.imatrix.file": "/home/someone/wiki.dat" };
  await writeTinyModel(path, { metadata });
  const found = await openFile(path);
  assert.is(found.name, "Q4_K_M");
  assert.is(found.file, "some.gguf");
  assert.equal(found.imatrix, { file: "wiki.dat", dataset: "" });
  assert.equal(
    found.types.map(({ type, tensors }) => [type, tensors]),
    [["F32", 24]],
  );
  assert.ok(Math.abs(found.bits_per_weight - 32) < 0.1);
  assert.equal([found.architecture, found.blocks], ["qwen3", 2]);
});

test.run();
