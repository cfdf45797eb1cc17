/** Texts through a dictionary of two numbers per row: the requests to a model, and the results from its answers. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { FeaturesConfig } from "../../src/contracts/index.js";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { Dictionaries } from "../../src/library/index.js";
import type { AdvanceRequest } from "../../src/native/index.js";
import { features } from "../../src/operations/features/run.js";
import { refusal } from "../support/refusal.js";
import { readNpz } from "./npz-reader.js";
import { inputIn, ownHome, signal, there, toy } from "./toy.js";

const { folder, leave } = ownHome("features-requests");
test.after(leave);

const dictionaries = new Dictionaries(folder);

/** Four features: x, y, -x and -y where they are positive; the last one comes back half as long. */
async function keep(name: string, metadata: object = {}): Promise<void> {
  const place = mkdtempSync(join(folder, "sae-"));
  writeFileSync(
    join(place, "sae_weights.safetensors"),
    encodeSafetensors({
      W_enc: { shape: [2, 4], data: Float32Array.of(1, 0, -1, 0, 0, 1, 0, -1) },
      W_dec: { shape: [4, 2], data: Float32Array.of(1, 0, 0, 1, -1, 0, 0, -0.5) },
      ...{
        b_enc: { shape: [4], data: new Float32Array(4) },
        b_dec: { shape: [2], data: new Float32Array(2) },
      },
    }),
  );
  const said = { hook_name: "blocks.2.hook_resid_post", ...metadata };
  writeFileSync(join(place, "cfg.json"), JSON.stringify({ architecture: "standard", metadata: said }));
  await dictionaries.add(name, place);
}

/** For each token of the words `a b c d`: the block's output, its features, and the reconstruction. */
const rows = [
  [100, 0],
  [1, -2],
  [-3, 4],
  [2, -2],
  [-3, 0.5],
] as const;
const active = [
  [[0, 100]],
  [
    [0, 1],
    [3, 2],
  ],
  [
    [1, 4],
    [2, 3],
  ],
  [
    [0, 2],
    [3, 2],
  ],
  [
    [1, 0.5],
    [2, 3],
  ],
] as const;
const decoded = [
  [100, 0],
  [1, -1],
  [-3, 4],
  [2, -1],
  [-3, 0.5],
];

/** A model of three blocks whose passes take two tokens; each replaced row costs an eighth, zeros a half. */
function reading(info: object = {}, context: object = {}) {
  const asked: AdvanceRequest[] = [];
  const resets: number[] = [];
  const own = toy(
    {
      ...{ nBatch: 2, lens: { supported: false, reason: "No lens here." } },
      points: { block_out: there, ffn_out: { supported: false, reason: "No MLP here." } },
      reset: async () => void resets.push(asked.length),
      advance: async (request: AdvanceRequest) => {
        asked.push(request);
        const data = Float32Array.from([...request.tokens].flatMap((token) => rows[token]!));
        const cost = request.edits!.reduce(
          (sum, { vector }) => sum + (vector === undefined ? 0.5 : 0.125),
          0,
        );
        return {
          layers: [{ ...(request.keepStates && { states: { data } }) }],
          logProbabilities: Float64Array.from(request.scored!, (token) => (token < 0 ? 0 : -1 - cost)),
        };
      },
      ...context,
    },
    { nLayer: 3, ...info },
  );
  return { ...own, asked, resets };
}

async function run(body: object, own = reading()) {
  await own.model.tokenize("a b c d");
  const config = { operation: "features", model: "toy", dictionary: "four", top: 1, max_input_tokens: 100 };
  const input = inputIn<FeaturesConfig>(folder, { ...config, ...body }, own.model);
  const found = await features(input);
  return { found, told: input.told, arrays: readNpz(readFileSync(join(input.place, "features.npz"))) };
}

test.before(() => keep("four", { model_name: "toy" }));

test("a text is read three times: unchanged, with reconstructions, with zeros", async () => {
  const own = reading();
  await run({ prompt: "a b c d" }, own);
  assert.equal(own.resets, [0, 3, 6], "each from its beginning");
  const place = { layer: 2, point: "block_out" };
  const put = (token: number) => ({
    ...{ ...place, positions: [[token, token]], scale: 0 },
    ...{ vector: Float32Array.from(decoded[token]!), strength: 1 },
  });
  const zeros = (token: number) => ({ ...place, positions: [[token, token]], scale: 0 });
  const passes = [
    { keepStates: true, edits: [[], [], []] },
    // A BOS token's row stays.
    { keepStates: false, edits: [[put(1)], [put(2), put(3)], [put(4)]] },
    { keepStates: false, edits: [[zeros(1)], [zeros(2), zeros(3)], [zeros(4)]] },
  ];
  const chunks = [
    { tokens: [0, 1], scored: [1, 2] },
    { tokens: [2, 3], scored: [3, 4] },
    { tokens: [4], scored: [-1] },
  ];
  assert.equal(
    own.asked.map(({ tokens, scored, edits, ...rest }) => ({
      ...{ ...rest, tokens: [...tokens], scored: [...scored!] },
      edits: edits!.map(({ vector, ...edit }) => ({ ...edit, ...(vector && { vector: vector.slice() }) })),
    })),
    passes.flatMap(({ keepStates, edits }) =>
      chunks.map((chunk, i) => ({
        ...{ layers: [2], points: ["block_out"], rows: "all", signal, keepStates, ...chunk, edits: edits[i] },
      })),
    ),
  );
  assert.equal([own.contexts, own.closed], [[{ nCtx: 5 }], ["context"]]);
  const without = reading({ addBos: false });
  await run({ prompt: "a" }, without);
  assert.equal(
    without.asked.map(({ edits }) => edits!.length),
    [0, 2, 2],
    "a first token that is no BOS counts",
  );
});

test("each token's features come strongest first, with a description of the dictionary", async () => {
  const { found, told } = await run({ texts: ["a b c d", "a b"], top: 1 });
  const { fidelity, note, features: _, ...rest } = found;
  const { sha256, layout } = await dictionaries.get("four");
  const pieces = ["<s>", "a", " b", " c", " d"];
  const strongest = [
    { feature: 0, activation: 100 },
    { feature: 3, activation: 2 },
    { feature: 1, activation: 4 },
    { feature: 0, activation: 2 }, // as strong as the last one
    { feature: 2, activation: 3 },
  ];
  const text = (length: number) => ({
    ...{ tokens: pieces.slice(0, length), token_ids: [0, 1, 2, 3, 4].slice(0, length) },
    top: strongest.slice(0, length).map((one) => [one]),
  });
  assert.equal(rest, {
    dictionary: { name: "four", sha256, layout, activation: "relu", features: 4, trained_on: "toy" },
    ...{ layer: 2, texts: [text(5), text(3)] },
  });
  assert.is(note, "BOS tokens are excluded from all values and never replaced.");
  assert.equal(
    told,
    [0, 1].map((done) => ({ stage: "features", done, total: 2 })),
  );
  assert.is(fidelity.tokens, 6);
});

test("a feature's maximum, mean and share over all texts; strongest first, ties stable", async () => {
  // Twice the same words: what fires in the second text is as strong as in the first, which came first.
  const own = reading();
  const { found, arrays } = await run({ texts: ["a b c d", "a b"], top: 2 }, own);
  const ids = [0, 1, 2, 3, 4, 0, 1, 2];
  // The two BOS tokens, in which feature 0 is strongest, are not counted.
  const of = (feature: number) =>
    ids.flatMap((id) => active[id]!.filter(([one]) => one === feature).map(([, value]) => value));
  const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  assert.equal(
    [of(0), of(1), of(2), of(3)],
    [
      [100, 1, 2, 100, 1],
      [4, 0.5, 4],
      [3, 3, 3],
      [2, 2, 2],
    ],
  );
  assert.equal(found.features, [
    { feature: 1, max: 4, mean: mean([4, 0.5, 4]), frequency: 3 / 6, text: 0, token: 2 },
    { feature: 2, max: 3, mean: 3, frequency: 3 / 6, text: 0, token: 2 },
    { feature: 0, max: 2, mean: 4 / 3, frequency: 3 / 6, text: 0, token: 3 },
    { feature: 3, max: 2, mean: 2, frequency: 3 / 6, text: 0, token: 1 },
  ]);
  assert.equal(found.texts[1]!.top, [
    [{ feature: 0, activation: 100 }],
    [
      { feature: 3, activation: 2 },
      { feature: 0, activation: 1 },
    ],
    [
      { feature: 1, activation: 4 },
      { feature: 2, activation: 3 },
    ],
  ]);
  const fired = ids.flatMap((id) => active[id]! as readonly (readonly [number, number])[]);
  const numbers = (name: string) => [...arrays.get(name)!.data];
  assert.equal(numbers("pointers"), [0, 1, 3, 5, 7, 9, 10, 12, 14]);
  assert.equal(
    numbers("indices"),
    fired.map(([feature]) => feature),
  );
  assert.equal(
    numbers("values"),
    fired.map(([, value]) => value),
  );
  assert.equal(numbers("text_starts"), [0, 5, 8]);
  // Scores: of the first text four tokens, of the second two. A chunk's two tokens are scored with its own edits: those of
  // tokens 1, of 2 and 3, of 4; and of 1, of 2.
  const nats = (cost: number) => (4 + cost * (2 * 1 + 2 * 2) + 2 + cost * 2 * 1) / 6;
  const { cross_entropy: entropy, loss_recovered, ...rest } = found.fidelity;
  for (const [which, cost] of [
    ["clean", 0],
    ["reconstructed", 0.125],
    ["ablated", 0.5],
  ] as const) {
    assert.ok(Math.abs(entropy![which] - nats(cost)) < 1e-12, `${which}: ${entropy![which]}`);
  }
  assert.ok(Math.abs(loss_recovered! - 0.75) < 1e-12);
  assert.equal([rest.tokens, rest.l0], [6, 2]);
});

test("notes cover the BOS token, instruct dictionaries and texts with another beginning", async () => {
  const bos = "BOS tokens are excluded from all values and never replaced.";
  const mixed = (its: string, own: string) =>
    `The dictionary was trained on ${its}; the model is ${own}: base and instruct models differ.`;
  const cases: [
    own: string,
    its: string | undefined,
    addBos: boolean,
    prepended: boolean | undefined,
    string,
  ][] = [
    ["gemma-2-2b", "gemma-2-2b", true, true, bos],
    ["gemma-2-2b", undefined, true, undefined, bos],
    ["gemma-2-2b", "gemma-2-2b-it", true, true, `${bos} ${mixed("gemma-2-2b-it", "gemma-2-2b")}`],
    ["Qwen-Instruct-v2", "Qwen", false, false, mixed("Qwen", "Qwen-Instruct-v2")],
    ["a/b chat", "a_it", false, false, ""],
    ["edit", "chatter", false, false, ""],
    ["", "Qwen-instruct", false, false, ""],
    [
      ...(["m", "m", false, true] as const),
      "The dictionary was trained on texts that start with a BOS token; this model adds none.",
    ],
    [
      ...(["m", "m", true, false] as const),
      `${bos} The dictionary was trained on texts without a BOS token; this model adds one.`,
    ],
  ];
  for (const [own, its, addBos, prepended, note] of cases) {
    await keep("noted", { model_name: its, prepend_bos: prepended });
    const { found } = await run({ dictionary: "noted", prompt: "a" }, reading({ name: own, addBos }));
    assert.is(found.note, note, `${own} and ${its}`);
  }
});

test("feature pages use a file's labels and are reported as a separate stage", async () => {
  const labels = join(folder, "labels.jsonl");
  writeFileSync(labels, '{"index":2,"description":"less than nothing"}\n');
  const { found, told } = await run({ prompt: "a b c d", pages: [2, 0], labels });
  assert.equal(
    found.pages!.map(({ feature, label, active_tokens }) => [feature, label, active_tokens]),
    [
      [2, "less than nothing", 2],
      [0, undefined, 2],
    ],
  );
  assert.equal(told, [
    { stage: "features", done: 0, total: 1 },
    { stage: "pages", done: 0, total: 2 },
  ]);
  assert.is((await run({ prompt: "a", pages: [1] })).found.pages![0]!.label, undefined);
});

test("too many or too long texts, and dictionaries of another place, are refused", async () => {
  const says = async (body: object, own = reading()) => {
    const sentence = await refusal(() => run(body, own));
    assert.equal([own.asked.length, own.closed.length], [0, own.contexts.length], sentence);
    return sentence;
  };
  assert.is(
    await says({ prompt: "a b", max_input_tokens: 2 }),
    "prompt has 3 tokens; max_input_tokens allows 2.",
  );
  assert.is(
    await says({ texts: ["a", "a b"], max_input_tokens: 2 }),
    "texts[1] has 3 tokens; max_input_tokens allows 2.",
  );
  const words = (count: number) => new Array(count).fill("a").join(" ");
  const many = { texts: [words(8191), words(8192)], max_input_tokens: 1e6 };
  assert.is(await says(many), "The texts have 16385 tokens; the limit is 16384.");
  await keep("mlp", { hook_name: "blocks.1.hook_mlp_out" });
  assert.is(await says({ dictionary: "mlp", prompt: "a" }), "No MLP here.");
  assert.is(
    await says({ prompt: "a" }, reading({ nLayer: 2 })),
    "The dictionary four reads block 2; the model has blocks 0 to 1.",
  );
  assert.is(
    await says({ prompt: "a" }, reading({ nEmbd: 3 })),
    "The dictionary four reads activations of 2 values; the model's hidden size is 3.",
  );
});

test.run();
