/**
 * Requests of an inspection to a model, chunk by chunk, and its result from the answers: a model that computes nothing.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { InspectConfig } from "../../src/contracts/index.js";
import { Lenses } from "../../src/library/lenses.js";
import type { AdvanceRequest, Point } from "../../src/native/index.js";
import { inspect } from "../../src/operations/inspect/run.js";
import { RoutingReader } from "../../src/operations/inspect/run-routing.js";
import { refusal } from "../support/refusal.js";
import { readNpz } from "./npz-reader.js";
import { inputIn, ownHome, signal, there, toy } from "./toy.js";

const { folder, leave } = ownHome("inspect-requests");
test.after(leave);

const numberOf: Partial<Record<Point, number>> = {
  block_out: 0,
  mid: 1,
  attn_out: 2,
  block_in: 3,
  ffn_out: 4,
};
/** The row of a token at a point of a block: the token, and where it is. */
const rowOf = (token: number, layer: number, point: Point = "block_out") => [
  token,
  10 * layer + (numberOf[point] as number),
];
const normOf = (token: number, layer: number, point: Point = "block_out") =>
  1000 * token + 10 * layer + (numberOf[point] as number);

/** Candidates of a row: the token itself and the two after it. */
const topOf = (tokens: readonly number[], k = 3, from = 0) => ({
  k,
  tokenIds: Int32Array.from(tokens.flatMap((token) => Array.from({ length: k }, (_, i) => from + token + i))),
  probabilities: Float32Array.from(tokens.flatMap(() => Array.from({ length: k }, (_, i) => 2 ** -(1 + i)))),
});

interface Toy {
  lens?: object;
  points?: object;
  sidePath?: string;
  layers?: number;
}

/** A model of three blocks of two values, whose passes take two tokens. */
function inspected({ lens = there, points = {}, sidePath = "", layers = 3 }: Toy = {}) {
  const asked: Omit<AdvanceRequest, "measure">[] = [];
  const measured: AdvanceRequest["measure"][] = [];
  const resets: number[] = [];
  const own = toy(
    {
      ...{ nBatch: 2, lens, blockOutputs: { supported: true, sidePath } },
      points: {
        ...{
          block_out: { ...there, layers: [...Array(layers).keys()] },
          block_in: there,
          attn_out: there,
          ffn_out: there,
        },
        ...{ mid: there, router: { supported: false, reason: "No router here." }, ...points },
      },
      reset: async () => void resets.push(asked.length),
      advance: async ({ measure, ...request }: AdvanceRequest) => {
        asked.push(request);
        measured.push(measure);
        const tokens = [...request.tokens];
        const rows = request.rows === "last" ? tokens.slice(-1) : tokens;
        const { lensTopK, lensTarget, lensAnswer, nextTopK, routing, lensExtras } = request;
        const follows = (row: number) =>
          lensTarget !== undefined || (lensAnswer && nextTopK && row === rows.length - 1);
        const followed = (layer: number) => ({
          targetRanks: Int32Array.from(rows, (token, i) => (follows(i) ? token + layer + 1 : 0)),
          targetProbabilities: Float32Array.from(rows, (token) => token / 16),
        });
        let places = 0;
        /** Of the next place that is read; through a translator other tokens. */
        const read = (from: number) => {
          const place = places++;
          return {
            ...topOf(rows, lensTopK!, from),
            targetRanks: Int32Array.from(rows, (_, i) => (follows(i) ? 1 + place : 0)),
            targetProbabilities: Float32Array.from(rows, () => (1 + place) / 16),
            ...(lensExtras!.measures && {
              entropies: Float32Array.from(rows, (token) => token + place / 8),
              divergences: Float32Array.from(rows, (token) => token - place / 8),
            }),
          };
        };
        const lensOf = (layer: number, point: Point) => {
          if (!lensTopK || point === "attn_out") return {};
          if (lensExtras === undefined) return { lens: { ...topOf(rows, lensTopK), ...followed(layer) } };
          const translated =
            point === "block_out" && lensExtras.translators?.some((each) => each.layer === layer);
          return { lens: read(0), ...(translated && { translated: read(1) }) };
        };
        return {
          layers: request.layers.flatMap((layer) =>
            (request.points ?? ["block_out"]).map((point) => ({
              ...{ layer, point },
              states: {
                shape: [rows.length, 2],
                data: Float32Array.from(rows.flatMap((token) => rowOf(token, layer, point))),
              },
              norms: Float32Array.from(rows, (token) => normOf(token, layer, point)),
              ...lensOf(layer, point),
            })),
          ),
          ...(measure && {
            measured: measure.layers.map((layer) => ({
              layer,
              norms: Float32Array.from(rows, (token) => normOf(token, layer)),
              ...(measure.lensTopK && {
                lens: {
                  ...topOf(rows.slice(measure.lensFrom), measure.lensTopK),
                  targetRanks: followed(layer).targetRanks.slice(measure.lensFrom),
                  targetProbabilities: followed(layer).targetProbabilities.slice(measure.lensFrom),
                },
              }),
            })),
          }),
          ...(nextTopK && { next: topOf([tokens.at(-1)!], nextTopK) }),
          ...(request.logits && { logits: Float32Array.of(0, 1, 2, 3, 4, 5, 6) }),
          ...(routing && {
            routing: routing.map((layer) => ({
              ...{ layer, experts: 4 },
              chosen: {
                shape: [rows.length, 2],
                data: Int32Array.from(rows.flatMap((token) => [token % 4, 3])),
              },
              weights: {
                shape: [rows.length, 2],
                data: Float32Array.from(rows.flatMap((token) => [token / 8, layer])),
              },
            })),
          }),
        };
      },
      logitDirection: async () => ({ direction: Float64Array.of(1, 1), constant: 0.5 }),
    },
    { nLayer: layers, nVocab: 100 },
  );
  return { ...own, asked, measured, resets };
}

async function run(body: object, own = inspected()) {
  const config = {
    operation: "inspect",
    model: "toy",
    layers: [2, 0],
    prompt: "a b c d",
    max_input_tokens: 9,
  };
  const input = inputIn<InspectConfig>(folder, { ...config, ...body }, own.model);
  const { all_layers, all_layers_from, ...found } = await inspect(input);
  const file = (name: string) => readNpz(readFileSync(join(input.place, name)));
  return {
    found,
    all: { all_layers, all_layers_from },
    file,
    told: input.told,
    names: input.artifacts.names,
    clock: input.clock,
    place: input.place,
  };
}

/** The BOS token and the words of the prompt, in passes of two. */
const tokens = [0, 1, 2, 3, 4];
const words = ["<s>", "a", " b", " c", " d"];
const piece = (id: number) => words[id] ?? `#${id}`;
const candidate = (token_id: number, place: number) => ({
  ...{ token_id, token: piece(token_id), probability: 2 ** -(1 + place) },
});
const listsOf = (ids: readonly number[], k = 3, from = 0) =>
  ids.map((id) => Array.from({ length: k }, (_, i) => candidate(from + id + i, i)));

test("token ids run exactly as given, without BOS; unknown and too many are refused", async () => {
  const own = inspected();
  await own.model.tokenize("a b c d", { special: true }); // the toy knows the words of what it has read
  const { found } = await run({ prompt: undefined, tokens: [3, 1, 3] }, own);
  assert.equal(
    own.asked.map(({ tokens }) => [...tokens]),
    [[3, 1], [3]],
  );
  assert.equal(
    [found.token_ids, found.tokens],
    [
      [3, 1, 3],
      [" c", "a", " c"],
    ],
  );
  const { nVocab } = own.model.info;
  assert.is(
    await refusal(() => run({ prompt: undefined, tokens: [1, nVocab] })),
    `tokens: id ${nVocab} does not exist; the model's vocabulary has ids 0 to ${nVocab - 1}.`,
  );
  assert.is(
    await refusal(() => run({ prompt: undefined, tokens: Array(10).fill(1) })),
    "tokens has 10 tokens; max_input_tokens allows 9.",
  );
});

test("inspect reads in passes: norms, candidates, target rank, rows to a file", async () => {
  const own = inspected({ sidePath: "A side path." });
  const { found, all, file, told, names } = await run({ target_token: " c" }, own);
  assert.equal(
    own.asked.map(({ tokens, ...rest }) => [[...tokens], rest]),
    [
      [[0, 1], { layers: [2, 0], points: ["block_out"], rows: "all" }],
      [[2, 3], { layers: [2, 0], points: ["block_out"], rows: "all" }],
      [[4], { layers: [2, 0], points: ["block_out"], rows: "all", nextTopK: 5 }],
    ].map(([sent, rest]) => [
      sent,
      { ...(rest as object), lensTopK: 3, lensTarget: 3, lensAnswer: false, signal },
    ]),
  );
  // Unselected layers are measured in the same passes; the result lists them with the selected layers, in order.
  assert.equal(own.measured, Array(3).fill({ layers: [1], lensFrom: 0, lensTopK: 3 }));
  assert.equal(all, {
    all_layers_from: 0,
    all_layers: [0, 1, 2].map((layer) => ({
      ...{ layer, norms: tokens.map((token) => normOf(token, layer)), predictions: listsOf(tokens) },
      target: tokens.map((token) => ({ probability: token / 16, rank: token + layer + 1 })),
    })),
  });
  assert.equal(own.contexts, [{ nCtx: 5 }]);
  const { note, ...rest } = found;
  assert.equal(rest, {
    ...{ tokens: words, token_ids: tokens },
    layers: [2, 0].map((layer) => ({
      ...{ layer, norms: tokens.map((token) => normOf(token, layer)), predictions: listsOf(tokens) },
      target: tokens.map((token) => ({ probability: token / 16, rank: token + layer + 1 })),
    })),
    ...{ target_token: " c", target_token_id: 3, next_tokens: listsOf([4], 5)[0] },
  });
  assert.match(note, /^Predictions at a block apply the model's final norm .* A side path\.$/);
  assert.not.match(note, /Entropy|attn_out/);
  const arrays = file("activations.npz");
  assert.equal([...arrays.keys()], ["layer_2", "layer_0"]);
  for (const layer of [2, 0]) {
    const { shape, data } = arrays.get(`layer_${layer}`)!;
    assert.equal([shape, [...data]], [[1, 5, 2], tokens.flatMap((token) => rowOf(token, layer))]);
  }
  assert.equal(told, [
    ...[0, 2, 4].map((done) => ({ stage: "capture", done, total: 5 })),
    { stage: "artifact", done: 5, total: 5 },
  ]);
  assert.equal([names, own.closed], [["activations.npz"], ["context"]]);
  assert.ok(own.asked.every(({ lensExtras }) => lensExtras === undefined));
});

test("the model's own answer is tracked after the last token alone, or not at all", async () => {
  const own = inspected();
  const { found } = await run({ follow_answer: true }, own);
  assert.equal(
    own.asked.map(({ lensTarget, lensAnswer }) => [lensTarget, lensAnswer]),
    [0, 1, 2].map(() => [undefined, true]),
  );
  assert.equal([found.target_token, found.target_token_id], [" d", 4]);
  assert.equal(
    found.layers.map(({ target }) => target),
    [2, 0].map((layer) => [{ probability: 4 / 16, rank: 5 + layer }]),
  );
  const plain = await run({});
  assert.equal(
    [plain.found.target_token, plain.found.target_token_id, plain.found.layers[0]!.target],
    [undefined, undefined, undefined],
  );
  const silent = await run({}, inspected({ lens: { supported: false, reason: "No lens here." } }));
  assert.equal(silent.found.layers, [
    { layer: 2, norms: tokens.map((token) => normOf(token, 2)), note: "No lens here." },
    { layer: 0, norms: tokens.map((token) => normOf(token, 0)), note: "No lens here." },
  ]);
  assert.is(silent.found.note, "No lens here.");
});

test("hook points inside blocks give rows, norms and, for the stream, candidates", async () => {
  const own = inspected();
  const { found, file } = await run({ points: ["attn_out", "mid"], layers: [1] }, own);
  assert.equal(own.asked[0]!.points, ["block_out", "attn_out", "mid"]);
  assert.equal(found.layers, [
    { layer: 1, norms: tokens.map((token) => normOf(token, 1)), predictions: listsOf(tokens) },
  ]);
  assert.equal(found.points, [
    { layer: 1, point: "attn_out", norms: tokens.map((token) => normOf(token, 1, "attn_out")) },
    {
      ...{ layer: 1, point: "mid", norms: tokens.map((token) => normOf(token, 1, "mid")) },
      predictions: listsOf(tokens),
    },
  ]);
  assert.match(found.note, / attn_out and ffn_out are what attention and MLP add /);
  const arrays = file("activations.npz");
  assert.equal([...arrays.keys()], ["layer_1", "layer_1_attn_out", "layer_1_mid"]);
  for (const point of ["attn_out", "mid"] as const) {
    assert.equal(
      [...arrays.get(`layer_1_${point}`)!.data],
      tokens.flatMap((token) => rowOf(token, 1, point)),
    );
  }
});

const lenses = new Lenses(folder);

/** A lens of some blocks that leaves every row as it is. */
async function keepLens(name: string, layers: number[]) {
  await lenses.keep(
    name,
    {
      ...{ layout: "tapline", kind: "regression", hidden: 2, residual: false, layers, modelLayers: 3 },
      ...{ model: undefined, texts: 1, notes: [] },
      read: async () => ({ matrix: Float32Array.of(1, 0, 0, 1), bias: Float32Array.of(0, 0) }),
    },
    { source: null },
  );
  return lenses.open(name);
}

test("a named lens is read next to the logit lens, both against the last block", async () => {
  const open = await keepLens("mine", [0, 1]);
  const own = inspected();
  const body = { layers: [1, 0], points: ["mid", "attn_out"], lens: "mine", target_token: " b" };
  const { found, file } = await run(body, own);
  assert.equal([...file("activations.npz").keys()].length, 6);
  const translators = [1, 0].map((layer) => ({ layer, ...open.translator(layer) }));
  assert.ok(translators[0]!.matrix !== undefined && translators[0]!.matrix !== translators[1]!.matrix);
  for (const request of own.asked) {
    // The model's output is compared with in the pass, and captured for it.
    assert.equal([request.layers, request.lensTopK, request.lensTarget], [[1, 0], 3, 2]);
    assert.equal(request.lensExtras, { translators, measures: true });
    assert.is(request.signal, signal);
  }
  // Places of a pass, in order: block 1 plain and translated, its mid, block 0 the same.
  const read = (place: number, from = 0) => ({
    predictions: listsOf(tokens, 3, from),
    target: tokens.map(() => ({ probability: (1 + place) / 16, rank: 1 + place })),
    entropies: tokens.map((token) => token + place / 8),
    divergences: tokens.map((token) => token - place / 8),
  });
  assert.equal(
    found.layers,
    [1, 0].map((layer, i) => ({
      ...{ layer, norms: tokens.map((token) => normOf(token, layer)) },
      ...{ ...read(3 * i), translated: read(3 * i + 1, 1) },
    })),
  );
  assert.equal(
    found.points!.map(({ layer, point, entropies }) => [layer, point, entropies]),
    [
      [1, "mid", read(2).entropies],
      [1, "attn_out", undefined],
      [0, "mid", read(5).entropies],
      [0, "attn_out", undefined],
    ],
  );
  assert.equal(found.lens, { name: "mine", kind: "regression", sha256: open.stored.sha256 });
  assert.match(found.note, / Entropy is that of the lens reading; divergence is KL/);
});

test("measures without a lens, a lens without measures, ranks, and the last block", async () => {
  await keepLens("deep", [0]);
  const own = inspected();
  const { found } = await run({ layers: [0, 2], measures: true, follow_answer: true }, own);
  assert.equal(
    own.asked.map(({ layers, lensExtras, lensAnswer }) => [layers, lensExtras, lensAnswer]),
    [0, 1, 2].map(() => [[0, 2], { measures: true }, true]),
  );
  assert.equal([found.target_token_id, found.lens], [4, undefined]);
  assert.equal(
    found.layers.map(({ target, translated, divergences }) => [target, translated, divergences]),
    [0, 1].map((place) => [
      [{ probability: (1 + place) / 16, rank: 1 + place }],
      undefined,
      tokens.map((token) => token - place / 8),
    ]),
  );
  // Of a text of one token a measure is one number.
  const short = inspected();
  const [only] = (await run({ layers: [0, 2], measures: true, prompt: "" }, short)).found.layers;
  assert.equal([only!.entropies, only!.divergences], [[0], [0]]);
  const plain = inspected();
  const quiet = await run(
    { layers: [1, 0], lens: "deep", measures: false, follow_answer: true, prompt: "a" },
    plain,
  );
  assert.equal(plain.asked[0]!.layers, [1, 0]);
  assert.equal(
    plain.asked.map(({ lensExtras, lensAnswer }) => [
      lensExtras!.measures,
      lensExtras!.translators!.map(({ layer }) => layer),
      lensAnswer,
    ]),
    [[false, [0], true]],
  );
  assert.equal(
    quiet.found.layers.map((one) => [Object.keys(one), one.target]),
    [
      [["layer", "norms", "predictions", "target"], [{ probability: 1 / 16, rank: 1 }]],
      [["layer", "norms", "predictions", "target", "translated"], [{ probability: 2 / 16, rank: 2 }]],
    ],
  );
});

test("routers, logit parts and attention combine in one inspection, each size-checked", async () => {
  const points = {
    router: { ...there, layers: [0, 2], widths: [2, 2], experts: [4, 4] },
    attention: { ...there, layers: [0, 1, 2], heads: [1, 1, 1] },
    head_out: { ...there, layers: [], heads: [] },
  };
  const own = inspected({ points });
  const { found, file, names } = await run({ routing: true, decompose: true, target_token: " b" }, own);
  assert.equal(
    own.asked.slice(0, 3).map(({ routing }) => routing),
    [0, 1, 2].map(() => [2, 0]),
  );
  const chosen = tokens.map((token) => [token % 4, 3]);
  assert.equal(
    found.routing,
    [2, 0].map((layer) => ({
      // Of ten choices 0 and 4 fell on expert 0, 3 on the last one besides the five.
      ...{ layer, experts: 4, used: 2, shares: [0.2, 0.1, 0.1, 0.6], chosen },
      weights: tokens.map((token) => [token / 8, layer]),
    })),
  );
  const arrays = file("routing.npz");
  assert.equal(
    [...arrays].map(([name, { shape }]) => [name, shape]),
    [2, 0].flatMap((layer) => [
      [`layer_${layer}_experts`, [5, 2]],
      [`layer_${layer}_weights`, [5, 2]],
      [`layer_${layer}_share`, [4]],
    ]),
  );
  assert.equal([...arrays.get("layer_0_experts")!.data], chosen.flat());
  assert.equal(
    [...arrays.get("layer_2_weights")!.data],
    tokens.flatMap((token) => [token / 8, 2]),
  );
  assert.equal([...arrays.get("layer_0_share")!.data], [...Float32Array.of(0.2, 0.1, 0.1, 0.6)]);
  assert.equal(names, ["activations.npz", "routing.npz"]);
  // Its own pass, from the beginning: along (1, 1) the last token's activations of every half, and what the norm adds.
  assert.equal(own.resets, [3]);
  assert.equal(
    own.asked.slice(3).map(({ layers }) => layers),
    [[], [], [0, 1, 2]],
    "rows are of the last token alone",
  );
  assert.ok(
    own.asked.every((request) => request.signal === signal),
    "also of the separate pass",
  );
  const of = (layer: number, point: Point) => rowOf(4, layer, point).reduce((a, b) => a + b);
  const blocks = [0, 1, 2].map((layer) => ({
    ...{ layer, attention: of(layer, "attn_out"), mlp: of(layer, "ffn_out") },
  }));
  const sum = blocks.reduce((all, { attention, mlp }) => all + attention + mlp, of(0, "block_in") + 0.5);
  assert.equal(found.decomposition, {
    ...{ target_token: " b", target_token_id: 2, logit: 2, sum, embedding: of(0, "block_in"), constant: 0.5 },
    blocks,
  });
  assert.match(found.note, / Contributions to a logit are direct:/);
  assert.equal(found.next_tokens, listsOf([4], 5)[0], "not that of the second pass");

  // Attention has a separate context, created first: excess sizes are known by then.
  const both = inspected({ points });
  await refusal(() => run({ attention: { heads: [1] } }, both)).then((sentence) =>
    assert.is(sentence, "attention.heads: 1 does not exist; block 2 has 1 heads, 0 to 0."),
  );
  assert.equal([both.contexts.length, both.contexts[0]!.keepAttention, both.asked.length], [1, true, 0]);
});

test("invalid inspections are refused before anything is computed", async () => {
  await keepLens("other", [0]);
  const says = async (body: object, own = inspected()) => {
    const input = inputIn<InspectConfig>(
      folder,
      { operation: "inspect", layers: [2, 0], prompt: "a b c d", max_input_tokens: 9, ...body },
      own.model,
    );
    const sentence = await refusal(() => inspect(input));
    assert.equal([own.asked.length, own.closed.length], [0, own.contexts.length], sentence);
    assert.not(existsSync(join(input.place, "activations.npz")));
    return sentence;
  };
  const without = (point: Point) =>
    inspected({ points: { [point]: { supported: false, reason: `No ${point}.` } } });
  assert.is(await says({ layers: [3] }), "layers: 3 does not exist; the model has 3 blocks, 0 to 2.");
  assert.is(await says({ max_input_tokens: 4 }), "prompt has 5 tokens; max_input_tokens allows 4.");
  assert.is(
    await says({ target_token: "a b" }),
    'target_token must encode to exactly one token; "a b" yields 2: "a" " b".',
  );
  assert.is(await says({ points: ["mid"] }, without("mid")), "No mid.");
  assert.is(await says({ decompose: true }, without("ffn_out")), "No ffn_out.");
  assert.is(await says({ routing: true }), "No router here.");
  const silent = () => inspected({ lens: { supported: false, reason: "No lens here." } });
  for (const body of [{ measures: true }, { lens: "other" }]) {
    assert.is(await says(body, silent()), "No lens here.");
  }
  assert.is(await says({ lens: "other", layers: [1, 2] }), "The lens other covers the blocks 0, not 1, 2.");
  assert.match(await says({ lens: "nowhere" }), /no lens named nowhere/);
  const decomposed = inspected({ points: { ffn_out: { supported: false, reason: "No ffn_out." } } });
  assert.is((await run({ decompose: false }, decomposed)).found.decomposition, undefined);
});

test("the router reader takes chunks in order and names blocks without one", async () => {
  const router = { ...there, layers: [1, 3], widths: [1, 2], experts: [2, 3] };
  const of = (layers: number[]) => new RoutingReader({ points: { router } } as never, layers, 3);
  const reader = of([3, 1]);
  const array = <T>(data: T, rows: number, used: number) => ({ shape: [rows, used], data });
  const chunk = (three: number[], one: number[]) =>
    [
      [3, three, 2],
      [1, one, 1],
    ].map(([layer, chosen, used]) => ({
      layer,
      chosen: array(
        Int32Array.from(chosen as number[]),
        (chosen as number[]).length / (used as number),
        used as number,
      ),
      weights: array(
        Float32Array.from(chosen as number[], (id) => id / 2),
        0,
        used as number,
      ),
    })) as never;
  reader.take(chunk([0, 1, 2, 1], [1, 1]));
  reader.take([] as never);
  reader.take(chunk([2, 0], [0]));
  assert.equal(reader.describe(), [
    {
      ...{ layer: 3, experts: 3, used: 2, shares: [1 / 3, 1 / 3, 1 / 3] },
      chosen: [
        [0, 1],
        [2, 1],
        [2, 0],
      ],
      weights: [
        [0, 0.5],
        [1, 0.5],
        [1, 0],
      ],
    },
    {
      ...{ layer: 1, experts: 2, used: 1, shares: [1 / 3, 2 / 3] },
      ...{ chosen: [[1], [1], [0]], weights: [[0.5], [0.5], [0]] },
    },
  ]);
  assert.is(
    await refusal(() => of([0, 1, 2])),
    "routing: blocks 0, 2 have no readable router; the model has one in blocks 1, 3.",
  );
  assert.is(
    await refusal(() => of([0])),
    "routing: block 0 has no readable router; the model has one in blocks 1, 3.",
  );
});

test.run();
