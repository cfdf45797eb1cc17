/** What operations ask of a model, and what they make of its answers: models of words that compute nothing. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type {
  CompareConfig,
  Config,
  DriftConfig,
  InspectConfig,
  ProbeConfig,
} from "../../src/contracts/index.js";
import { exampleFeatures } from "../../src/lab/rows/example-features.js";
import { trainLayers } from "../../src/lab/rows/train-layers.js";
import { modelFingerprint, Probes, Vectors } from "../../src/library/index.js";
import type { AdvanceRequest, Context, FeatureRequest, Model, SweepRequest } from "../../src/native/index.js";
import { compare } from "../../src/operations/compare/run.js";
import { drift } from "../../src/operations/drift/run.js";
import { attention } from "../../src/operations/inspect/run-attention.js";
import { decompose } from "../../src/operations/inspect/run-decompose.js";
import { refusal } from "../support/refusal.js";
import { readNpz } from "./npz-reader.js";
import { inputIn, ownHome, signal, there, toy } from "./toy.js";

const { folder, leave } = ownHome("operation-requests");
test.after(leave);

const inputOf = <C extends Config>(config: object, model: Model, other?: Model) =>
  inputIn<C>(folder, config, model, other);

/** A model whose sweeps return their requests, and rows of texts that are their last tokens. */
function sweeping(more: { finite?: (row: number) => boolean } = {}) {
  const sweeps: SweepRequest[] = [];
  const captured: FeatureRequest[] = [];
  const own = toy({
    points: { block_out: there, attn_out: { supported: false, reason: "No halves here." } },
    sweep: async (request: SweepRequest) => {
      sweeps.push(request);
      request.onProgress?.(1, 2);
      return request.prompts.map((tokens, prompt) => ({
        target: request.targets![prompt]! < 0 ? 7 : request.targets![prompt]!,
        baseline: { probability: 0.5, continuation: Int32Array.of(1, 2), finite: more.finite?.(-1) ?? true },
        rows: request.plans.map((plan, row) => ({
          ...{ probability: (1 + row) / 16, finite: more.finite?.(row) ?? true },
          continuation: Int32Array.from({ length: row }, (_, i) => tokens.length + i),
          effects: plan.map(() => ({ rows: 1 + row, rowLength: 10, changeLength: row })),
        })),
      }));
    },
    features: async (request: FeatureRequest) => {
      captured.push(request);
      request.onProgress?.(3, 4);
      const rows = request.sequences.flatMap((tokens) => [tokens.at(-1)!, tokens.length]);
      return new Map(request.layers.map((layer) => [layer, { data: Float32Array.from(rows) }]));
    },
  });
  return { ...own, sweeps, captured };
}

const comparison = {
  ...{ operation: "compare", model: "toy", layers: [2, 3], max_tokens: 4, max_input_tokens: 100, seed: 5 },
  ...{ intervention: "scale", strengths: [0, 2], prompt: "a b c" },
};

test("a comparison runs every strength on every prompt, then controls, each with a baseline", async () => {
  const own = sweeping();
  const prompts = ["a b", "a b c d"];
  const input = inputOf<CompareConfig>(
    { ...comparison, prompt: undefined, prompts, controls: true, target_token: " x" },
    own.model,
  );
  const { trials, ...found } = await compare(input);
  const [sweep] = own.sweeps as [SweepRequest];
  assert.equal(
    sweep.prompts.map((tokens) => tokens.length),
    [3, 5],
  );
  assert.equal([own.sweeps.length, sweep.maxTokens, sweep.plans.length], [1, 4, 4]);
  assert.equal([...sweep.targets!], [5, 5]);
  assert.equal(
    sweep.plans.map(([edit]) => [edit!.layer, edit!.scale]),
    [
      [2, 0],
      [2, 2],
      [2, 0],
      [2, 2],
    ],
  );
  // (1 + 4 plans) of 4 tokens and the prompt once: 23 and 25; sequences of a baseline and four rows each.
  assert.equal(own.contexts, [{ nCtx: 48, nBatch: 256, maxSequences: 10 }]);
  const of = (row: number, tokens: number) => ({
    ...{ probability: (1 + row) / 16, delta: (1 + row) / 16 - 0.5 },
    output: Array.from({ length: row }, (_, i) => tokens + i).join("+"),
    change: { rows: 1 + row, length: row, row_length: 10 },
  });
  assert.equal(
    trials,
    prompts.flatMap((prompt, index) =>
      [0, 2].map((strength, row) => ({
        ...{ prompt, strength, layer: 2, target_token: " x", target_token_id: 5, baseline_probability: 0.5 },
        ...{ baseline: "1+2", ...of(row, [3, 5][index]!), control: of(2 + row, [3, 5][index]!) },
      })),
    ),
  );
  const { note, ...rest } = found;
  assert.equal(rest, { intervention: "scale", position: "last token", control_seed: 5 });
  assert.match(note, /^Only the first layer \(2\) was changed; 3 was ignored\./);
  assert.equal([own.closed, input.told], [["context"], [{ stage: "sweep", done: 1, total: 2 }]]);
  assert.equal([own.captured.length, trials.length], [0, 4]);
});

test("a direction is the difference of the sides' means; a donor's state is used as is", async () => {
  const own = sweeping();
  const steer = {
    ...{ ...comparison, intervention: "steer", positives: ["p", "p q r"], negatives: ["s t"] },
    ...{ strength_unit: "vector", controls: true },
  };
  const input = inputOf<CompareConfig>(steer, own.model);
  const found = await compare(input);
  const [{ sequences, layers }] = own.captured as [FeatureRequest];
  assert.equal(
    [layers, sequences.map((tokens) => [...tokens])],
    [
      [2],
      [
        [0, 4],
        [0, 4, 5, 6],
        [0, 7, 8],
      ],
    ],
  );
  // Rows (4, 2) and (6, 4) against (8, 3).
  const [plans, controls] = [own.sweeps[0]!.plans.slice(0, 2), own.sweeps[0]!.plans.slice(2)];
  for (const [i, [edit]] of plans.entries()) {
    assert.equal([[...edit!.vector!], edit!.strength, edit!.unit], [[-3, 0], [0, 2][i], "vector"]);
  }
  for (const [edit] of controls) {
    assert.ok(Math.abs(Math.hypot(...edit!.vector!) - 3) < 1e-6);
    assert.not.equal([...edit!.vector!], [-3, 0]);
  }
  assert.equal([found.vector_length, found.strength_unit, found.control_seed], [3, "vector", 5]);
  assert.equal(input.told.slice(0, 2), [
    { stage: "capture", done: 0, total: 3 },
    { stage: "capture", done: 3, total: 4 },
  ]);
  const donor = sweeping();
  await compare(
    inputOf<CompareConfig>({ ...comparison, intervention: "patch", donor_prompt: "p q r" }, donor.model),
  );
  assert.equal([...donor.sweeps[0]!.plans[1]![0]!.vector!], [6, 4]);
  // Eight sides at once need as many sequences; the longest of them its tokens.
  const many = sweeping();
  const long = Array.from({ length: 300 }, () => "w").join(" ");
  const sides = { positives: ["a", "b", "c", long], negatives: ["d", "e", "f", "g"] };
  await compare(
    inputOf<CompareConfig>({ ...steer, controls: false, ...sides, max_input_tokens: 500 }, many.model),
  );
  // All sides' tokens: 301 and seven times 2.
  assert.equal(many.contexts, [{ nCtx: 315, nBatch: 301, maxSequences: 8 }]);
});

test("non-finite numbers are refused with their strength and prompt", async () => {
  const says = (body: object, finite: (row: number) => boolean = () => true, info: object = {}) => {
    const own = sweeping({ finite });
    Object.assign(own.model.info, info);
    return refusal(() => compare(inputOf<CompareConfig>({ ...comparison, ...body }, own.model)));
  };
  assert.is(
    await says({}, (row) => row !== -1),
    "The model's probabilities for prompt are not finite; the model file may be damaged.",
  );
  const why =
    "the model's probabilities for prompts[0] are not finite; the change overflows the model's arithmetic, or leaves an activation of zeros that a norm with epsilon 0 divides by 0.";
  const prompts = { prompt: undefined, prompts: ["a", "b"], controls: true };
  assert.is(await says(prompts, (row) => row !== 1), `At strength 2 ${why}`);
  assert.is(await says(prompts, (row) => row !== 2), `At strength 0 ${why}`, "of a control");
  assert.is(await says({ layers: [4] }), "layers: 4 does not exist; the model has 4 blocks, 0 to 3.");
  assert.is(await says({ point: "attn_out" }), "No halves here.");
  assert.is(await says({ max_input_tokens: 3 }), "prompt has 4 tokens; max_input_tokens allows 3.");
  assert.is(
    await says({}, undefined, { nCtxTrain: 7 }),
    "prompt has 4 tokens and max_tokens adds 4; the model was trained on at most 7 positions.",
  );
  const sides = { intervention: "steer", max_input_tokens: 4 };
  assert.is(
    await says({ ...sides, positives: ["a", "a b c d"], negatives: ["b"] }),
    "positives[1] has 5 tokens; max_input_tokens allows 4.",
  );
  assert.is(
    await says({ ...sides, positive: "a", negative: "a b c d" }),
    "negative has 5 tokens; max_input_tokens allows 4.",
  );
});

test("attention: what each head reads on average, and the last token's top sources", async () => {
  const asked: AdvanceRequest[] = [];
  // Tokens a b a c after a BOS: the second a occurred before, and b came after the first.
  const weights = [
    [1, 0, 0, 0, 0],
    [0.75, 0.25, 0, 0, 0],
    [0.5, 0.25, 0.25, 0, 0],
    [0.125, 0.25, 0.5, 0.125, 0],
    [0.0625, 0.125, 0.25, 0.0625, 0.5],
  ];
  const attending = (heads: number, read: number[]) => ({
    points: {
      attention: { ...there, layers: [1, 2], heads: [2, 2] },
      head_out: { ...there, layers: read, heads: read.map(() => 2) },
    },
    advance: async (request: AdvanceRequest) => {
      asked.push(request);
      return {
        attention: request.attention!.layers.map((layer) => ({
          ...{ layer, heads: Int32Array.from({ length: heads }, (_, i) => i) },
          weights: {
            shape: [heads, 5, 5],
            data: Float32Array.from({ length: 25 * heads }, (_, i) => weights.flat()[i % 25]!),
          },
        })),
        layers: request.layers.map((layer) => ({
          ...{ layer, point: "head_out" },
          states: { shape: [5, 6], data: Float32Array.from({ length: 30 }, (_, i) => i) },
        })),
      };
    },
  });
  const run = async (config: object, context: object) => {
    const own = toy(context);
    const input = inputOf<InspectConfig>({ layers: [1], max_input_tokens: 100, ...config }, own.model);
    const found = await attention(input, await own.model.tokenize("a b c d"));
    return {
      found,
      arrays: readNpz(readFileSync(join(input.place, "attention.npz"))),
      ...own,
      told: input.told,
    };
  };
  const repeated = toy(attending(1, [1]));
  const tokens = Int32Array.of(0, 4, 5, 4, 6);
  const input = inputOf<InspectConfig>({ layers: [1], attention: {} }, repeated.model);
  const [head, ...others] = await attention(input, tokens);
  assert.equal(others, []);
  assert.equal(head, {
    ...{ layer: 1, head: 0 },
    // Means over four tokens, over all five, and over one place.
    ...{ previous: (0.75 + 0.25 + 0.5 + 0.0625) / 4, first: (0.75 + 0.5 + 0.125 + 0.0625) / 4 },
    ...{ own: (1 + 0.25 + 0.25 + 0.125 + 0.5) / 5, induction: 0.5 },
    last: [
      { position: 4, weight: 0.5 },
      { position: 2, weight: 0.25 },
      { position: 1, weight: 0.125 },
    ],
  });
  assert.equal(repeated.contexts, [{ nCtx: 5, nBatch: 5, keepAttention: true }]);
  assert.equal([input.told, repeated.closed], [[{ stage: "attention", done: 0, total: 1 }], ["context"]]);
  asked.length = 0;
  const two = await run({ attention: { layers: [2], heads: [0, 1] } }, attending(2, [1, 2]));
  assert.equal([asked[0]!.layers, asked[0]!.attention], [[2], { layers: [2], heads: [0, 1] }]);
  assert.equal([two.found.length, two.found[1]!.head, two.found[0]!.induction], [2, 1, null]);
  assert.equal(
    [two.arrays.get("layer_2")!.shape, two.arrays.get("layer_2_head_out")!.shape],
    [
      [2, 5, 5],
      [5, 2, 3],
    ],
  );
  // If one of the blocks reports no attention, none is requested.
  const none = await run({ layers: [1, 2] }, attending(1, [1]));
  assert.equal([asked[1]!.layers, asked[1]!.attention], [[], { layers: [1, 2] }]);
  assert.equal([...none.arrays.keys()], ["layer_1", "layer_2"]);
  const single = toy(attending(1, [1]));
  const alone = { ...single.model, tokenize: undefined } as unknown as Model;
  const one = await attention(
    inputOf<InspectConfig>({ layers: [1], attention: {} }, alone),
    Int32Array.of(9),
  );
  assert.equal([one[0]!.previous, one[0]!.first, one[0]!.own, one[0]!.last.length], [null, null, 1, 1]);
});

/** A model whose rows of a text are made of its words, by a rule of the test's own. */
function rowModel(rule: (token: number, layer: number) => [number, number], info: object = {}) {
  const requests: FeatureRequest[] = [];
  const own = toy(
    {
      points: { block_out: there },
      features: async (request: FeatureRequest) => {
        requests.push(request);
        const tokens = request.sequences.flatMap((sequence) => [...sequence]);
        return new Map(
          request.layers.map((layer) => [
            layer,
            { data: Float32Array.from(tokens.flatMap((token) => rule(token, layer))) },
          ]),
        );
      },
    },
    info,
  );
  return { ...own, requests };
}

const path = join(folder, "model.gguf");
writeFileSync(path, "no model at all");

test("drift: cosines, norms and differences without the first token; a vector's separation", async () => {
  // Words: a 1, b 2, c 3. The other model's rows are twice as long at layer 1, and turned by a right angle for b.
  const rule = (token: number): [number, number] => (token === 0 ? [100, 100] : [token, 0]);
  const one = rowModel(rule, { path, bytes: 10 });
  const two = rowModel(
    (token, layer) =>
      token === 2 ? [0, 2] : layer === 1 ? (rule(token).map((x) => 2 * x) as [number, number]) : rule(token),
    { path, bytes: 20, quantization: "Q8_0" },
  );
  const identity = { id: "toy", fingerprint: await modelFingerprint(path), nEmbd: 2, nLayer: 4 };
  const vectors = new Vectors(folder);
  await vectors.put("axis", new Map([[3, Float32Array.of(1, 0)]]), identity, { note: "" });
  const examples = [
    { text: "a", label: 0 },
    { text: "a b", label: 1 },
    { text: "a b c", label: 1 },
  ];
  const config = {
    ...{ operation: "drift", model: "toy", other: "other", layers: [1, 3], max_input_tokens: 10, seed: 1 },
    ...{ examples, vector: "axis" },
  };
  // Words get their numbers as they come, the same in both.
  for (const { model } of [one, two]) await model.tokenize("a b c");
  const input = inputOf<DriftConfig>(config, one.model, two.model);
  const found = await drift(input);
  assert.equal([found.texts, found.tokens], [3, 6]);
  assert.equal(found.models, [
    { name: "toy", quantization: "F32", bytes: 10 },
    { name: "toy", quantization: "Q8_0", bytes: 20 },
  ]);
  const [first, third] = found.layers as [(typeof found.layers)[0], (typeof found.layers)[0]];
  const near = (measured: { value: number }, value: number) =>
    assert.ok(Math.abs(measured.value - value) < 1e-6, `${measured.value} for ${value}`);
  // Of six tokens two are b. Layer 1: four twice as long along their row; b as long, across: its difference is the root of 2.
  near(first.cosine, 4 / 6);
  near(first.relative_length, (4 * 2 + 2) / 6);
  near(first.relative_difference, (4 * 1 + 2 * Math.SQRT2) / 6);
  near(third.cosine, 4 / 6);
  near(third.relative_length, 1);
  near(third.relative_difference, (2 * Math.SQRT2) / 6);
  // Last tokens a, b and c go 1, 2 and 3 along the axis in the first model, and 1, 0 and 3 in the second.
  const { separation, difference, ...vector } = found.vector!;
  near(separation[0]!, 1);
  near(separation[1]!, 0.5);
  near(difference, -0.5);
  assert.equal([vector.name, vector.layer], ["axis", 3]);
  assert.is(found.note, "Values per token exclude BOS tokens.");
  assert.equal(
    input.told,
    [0, 1, 2].map((done) => ({ stage: "comparing the models", done, total: 3 })),
  );
  assert.equal([one.closed, two.closed], [["context"], ["context", "model"]]);
  assert.equal(
    one.requests.map(({ layers, rows, sequences }) => [layers, rows, sequences.length]),
    new Array(3).fill([[1, 3], "all", 1]),
  );
  assert.equal(one.contexts, [{ nCtx: 4, nBatch: 4 }]);

  // A row that is nothing in one model has no direction, and nothing is measured in its length.
  const silent = rowModel((token) => (token === 1 ? [0, 0] : rule(token)), { path });
  const loud = rowModel(rule, { path });
  for (const { model } of [silent, loud]) await model.tokenize("a b c");
  const plain = { ...config, vector: undefined, layers: [1] };
  const [gone] = (await drift(inputOf<DriftConfig>(plain, silent.model, loud.model))).layers;
  near(gone!.cosine, 3 / 6);
  near(gone!.relative_length, 3 / 6);
  near(gone!.relative_difference, 0);

  const says = (more: object, other = two.model) =>
    refusal(() => drift(inputOf<DriftConfig>({ ...config, ...more }, one.model, other)));
  for (const [info, what] of [
    [{ architecture: "else" }, "architecture: toy and else"],
    [{ nLayer: 5 }, "blocks: 4 and 5"],
    [{ nEmbd: 3 }, "hidden size: 2 and 3"],
  ] as const) {
    assert.is(await says({}, rowModel(rule, { path, ...info }).model), `The models differ in their ${what}.`);
  }
  assert.is(await says({ layers: [4] }), "layers: 4 does not exist; the model has 4 blocks, 0 to 3.");
  assert.is(
    await says({ layers: [1, 2] }),
    "The vector axis has layers 3; none of them is among the compared layers.",
  );
  const three = Float32Array.of(1, 1, 1);
  const wide = { ...identity, nEmbd: 3 };
  const numbers = { weight: three, mean: three, std: three, bias: 0 };
  await new Probes(folder).put("wide", 1, numbers as never, wide, { note: "" });
  assert.is(
    await says({ vector: undefined, probe: "wide" }),
    "The probe wide has 3 values; the models' hidden size is 2.",
  );
  const strange = rowModel(rule, { path });
  await strange.model.tokenize("z");
  assert.is(
    await says({ vector: undefined }, strange.model),
    "The models tokenize examples[0].text differently (different vocabularies).",
  );
  const words = (count: number) => Array.from({ length: count }, () => "a").join(" ");
  const large = { vector: undefined, max_input_tokens: 1e6 };
  assert.is(
    await says({ ...large, examples: [{ text: words(8191) }, { text: words(8192) }] }),
    "The examples have 16385 tokens; the limit is 16384.",
  );
});

test("logit parts: each block's halves along the token's direction, from the last token", async () => {
  const asked: AdvanceRequest[] = [];
  const rows: Record<string, [number, number]> = {
    ...{ "0 block_in": [1, 1], "0 attn_out": [2, 0], "0 ffn_out": [0, 3], "0 block_out": [9, 9] },
    ...{ "1 block_in": [8, 8], "1 attn_out": [-1, 0], "1 ffn_out": [0.5, 0.5], "1 block_out": [4, 5] },
  };
  const scaled: number[][] = [];
  const points = Object.fromEntries(
    ["block_in", "attn_out", "ffn_out", "block_out"].map((name) => [name, there]),
  );
  const context = {
    ...{ nBatch: 2, points, reset: async () => {} },
    advance: async (request: AdvanceRequest) => {
      asked.push(request);
      return {
        layers: request.layers.flatMap((layer) =>
          request.points!.map((point) => ({
            states: { data: Float32Array.from(rows[`${layer} ${point}`]!) },
          })),
        ),
        ...(request.logits && { logits: Float32Array.of(0, 1, 2, 3), next: { tokenIds: Int32Array.of(2) } }),
      };
    },
    logitDirection: async (row: Float32Array, token: number) => {
      scaled.push([...row, token]);
      return { direction: Float64Array.of(1, 10), constant: 0.5 };
    },
  } as unknown as Context;
  const { model } = toy({}, { nLayer: 2 });
  const found = await decompose(model, context, Int32Array.of(5, 6, 7), null);
  assert.equal(found, {
    ...{ target_token_id: 2, logit: 2, sum: 11 + 2 + 30 - 1 + 5.5 + 0.5, embedding: 11, constant: 0.5 },
    blocks: [
      { layer: 0, attention: 2, mlp: 30 },
      { layer: 1, attention: -1, mlp: 5.5 },
    ],
  });
  assert.equal(scaled, [[4, 5, 2]]);
  assert.equal(
    asked.map(({ tokens, layers, rows, logits }) => [[...tokens], layers, rows, logits]),
    [
      [[5, 6], [], "last", undefined],
      [[7], [0, 1], "last", true],
    ],
  );
  asked.length = 0;
  const told = await decompose(model, context, Int32Array.of(5, 6), 3);
  assert.equal([told.target_token_id, told.logit, asked.length], [3, 3, 1]);
  const halves = { ...points, ffn_out: { supported: false, reason: "No halves here." } };
  const without = { ...context, points: halves } as unknown as Context;
  assert.is(await refusal(() => decompose(model, without, Int32Array.of(5), null)), "No halves here.");
});

test("examples are captured once, and layers train on their own rows in the given order", async () => {
  const requests: FeatureRequest[] = [];
  const own = toy({
    points: { block_out: there },
    features: async (request: FeatureRequest) => {
      requests.push(request);
      request.onProgress?.(1, 3);
      return new Map(request.layers.map((layer) => [layer, { data: Float32Array.of(layer, 1, layer, 2) }]));
    },
  });
  const config = {
    ...{ operation: "probe", model: "toy", layers: [3, 1], max_input_tokens: 4 },
    examples: [
      { text: "a b", split: "train", label: 1 },
      { text: "a b c", split: "test", label: 0 },
    ],
  };
  const input = inputOf<ProbeConfig>(config, own.model);
  const done: string[] = [];
  const reports = await trainLayers(input, {
    train: async ({ features, train }, { onProgress }) => {
      onProgress(1, 4);
      done.push(`train ${features[0]} on ${train}`);
      return [...features];
    },
    write: async (layer) => void done.push(`write ${layer}`),
    report: (layer, trained) => `${layer}: ${trained}`,
  });
  assert.equal(reports, ["3: 3,1,3,2", "1: 1,1,1,2"]);
  assert.equal(done, ["train 3 on 1,0", "write 3", "train 1 on 1,0", "write 1"]);
  assert.equal(input.told, [
    { stage: "capture", done: 0, total: 2 },
    { stage: "capture", done: 1, total: 3 },
    { stage: "train", done: 0.25, total: 2 },
    { stage: "train", done: 1.25, total: 2 },
  ]);
  assert.equal(own.contexts, [{ nCtx: 7, nBatch: 7, maxSequences: 2 }]);
  const [{ layers, point, rows, starts }] = requests as [FeatureRequest];
  assert.equal([layers, point, rows, [...starts!]], [[3, 1], "block_out", "last", [1, 1]]);
  const trainer = { train: async () => {}, write: async () => {}, report: () => 0 };
  const says = (more: object) =>
    refusal(() => trainLayers(inputOf<ProbeConfig>({ ...config, ...more }, own.model), trainer));
  assert.is(await says({ layers: [1, 4] }), "layers: 4 does not exist; the model has 4 blocks, 0 to 3.");
  assert.is(await says({ max_input_tokens: 3 }), "examples[1].text has 4 tokens; max_input_tokens allows 3.");
});

test("every token's rows: their texts, and duplicates that a training text also contains", async () => {
  const examples = [
    { text: "a b c", split: "train", label: 1 },
    { text: "a b d", split: "test", label: 0 },
  ];
  for (const [causal, shared] of [
    [true, 2],
    [false, 0],
  ] as const) {
    const own = toy({
      ...{ causal, points: { mid: there } },
      features: async ({ layers }: FeatureRequest) =>
        new Map(layers.map((layer) => [layer, { data: Float32Array.of(layer) }])),
    });
    const config = {
      operation: "probe",
      model: "toy",
      layers: [2],
      rows: "all",
      point: "mid",
      max_input_tokens: 4,
    };
    const input = inputOf<ProbeConfig>({ ...config, examples }, own.model);
    const { byLayer, train, all } = await exampleFeatures(input);
    assert.equal([...byLayer.get(2)!], [2]);
    assert.equal([...train], [1, 1, 1, 0, 0, 0]);
    assert.equal(
      [[...all!.texts], [...all!.tokens], all!.bytes],
      [[0, 0, 0, 1, 1, 1], [1, 2, 3, 1, 2, 3], 48],
    );
    assert.is(all!.shared, shared, causal ? "a and b start both" : "an encoder's");
    assert.equal(input.told, [{ stage: "capturing 6 rows, 48 bytes", done: 0, total: 2 }]);
    assert.equal(own.closed, ["context"]);
  }
});

test("cancelling an operation also cancels its calls to the addon", async () => {
  const asked: Record<string, unknown[]> = {};
  /** Notes the signal of each request, and answers it. */
  const noting = <A>(name: string, answer: (request: never) => A) => ({
    [name]: async (request: { signal?: AbortSignal }) => {
      asked[name] = [...(asked[name] ?? []), request.signal];
      return answer(request as never);
    },
  });
  const rows = ({ layers }: FeatureRequest) =>
    new Map(layers.map((layer) => [layer, { data: new Float32Array(64) }]));
  const trial = { probability: 0, finite: true, continuation: new Int32Array(), effects: [{}] };
  const context = {
    ...{ causal: true, nBatch: 64 },
    points: { block_out: there, head_out: { ...there, layers: [1], heads: [1], widths: [2] } },
    ...noting("features", rows),
    ...noting("advance", () => ({ layers: [{ states: { data: Float32Array.of(1, 2), shape: [1, 2] } }] })),
    ...noting("sweep", ({ prompts, plans }: SweepRequest) =>
      prompts.map(() => ({ target: 1, baseline: trial, rows: plans.map(() => trial) })),
    ),
  };
  const own = toy(context, { path });
  const other = toy({ ...noting("features", rows) }, { path });
  for (const { model } of [own, other]) await model.tokenize("a b");
  const base = { layers: [1], max_input_tokens: 9, max_tokens: 1, seed: 1 };
  const said = { ...comparison, ...base, strengths: [1] };
  const examples = [{ text: "a", split: "train", label: 1 }];
  await compare(inputOf<CompareConfig>({ ...said, intervention: "patch", donor_prompt: "a" }, own.model));
  await compare(
    inputOf<CompareConfig>(
      { ...said, intervention: "patch", donor_prompt: "a", point: "head_out" },
      own.model,
    ),
  );
  await drift(
    inputOf<DriftConfig>({ ...base, operation: "drift", other: "other", examples }, own.model, other.model),
  );
  await exampleFeatures(inputOf<ProbeConfig>({ ...base, operation: "probe", examples }, own.model));
  assert.equal(
    Object.entries(asked).map(([name, signals]) => [name, signals.length, new Set(signals)]),
    [
      ["features", 4, new Set([signal])],
      ["sweep", 2, new Set([signal])],
      ["advance", 1, new Set([signal])],
    ],
  );
});

test.run();
