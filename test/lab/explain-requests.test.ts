/** Requests of an explanation to two models, and how descriptions are assigned: models that compute nothing. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ExplainConfig } from "../../src/contracts/index.js";
import type { ExplainRequest, FeatureRequest, Model } from "../../src/native/index.js";
import { explain } from "../../src/operations/explain/run.js";
import { TestRandom } from "../support/random.js";
import { refusal } from "../support/refusal.js";
import { readNpz } from "./npz-reader.js";
import { inputIn, ownHome, signal, toy } from "./toy.js";

const { folder, leave } = ownHome("explain-requests");
test.after(leave);

const width = 8;
/** The row of a token, all of its numbers different. */
const rowOf = (token: number) => Array.from({ length: width }, (_, i) => (token === 0 ? 0 : token + i / 16));
const lengthOf = (row: readonly number[]) => Math.sqrt(row.reduce((sum, value) => sum + value * value, 0));

interface Toy {
  info?: object;
  input?: object;
}

/** A model that answers each prompt with its number and the sample's, and reads rows by a rule. */
function speaking({ info = {}, input = { supported: true, tokenScale: 2 } }: Toy = {}) {
  const asked: ExplainRequest[] = [];
  const read: FeatureRequest[] = [];
  const own = toy(
    {
      embeddingInput: async () => input,
      features: async (request: FeatureRequest) => {
        read.push(request);
        const data = Float32Array.from(request.sequences.flatMap((tokens) => [...tokens].flatMap(rowOf)));
        return new Map(request.layers.map((layer) => [layer, { data }]));
      },
      explain: async (request: ExplainRequest) => {
        asked.push(request);
        request.onProgress?.(3, 4);
        return request.fillings.map((_, filling) => ({
          answers: Array.from({ length: request.samples! }, (_, sample) => ({
            ...{ tokens: Int32Array.from({ length: 1 + sample }, () => filling), ended: sample === 0 },
          })),
        }));
      },
    },
    { nEmbd: width, nLayer: 4, ...info },
  );
  return { ...own, asked, read };
}

type Speaking = ReturnType<typeof speaking>;

const asking = {
  ...{
    operation: "explain",
    model: "toy",
    layer: 2,
    prompt: "a b c",
    positions: [-1, 1],
    max_input_tokens: 9,
  },
  ...{ template: "say X now", marker: " X", samples: 2, description_tokens: 3, temperature: 0, seed: 7 },
  controls: true,
};

async function run(body: object, own = speaking(), other?: Speaking) {
  const input = inputIn<ExplainConfig>(folder, { ...asking, ...body }, own.model, other?.model);
  const found = await explain(input);
  return { found, told: input.told, arrays: readNpz(readFileSync(join(input.place, "rows.npz"))) };
}

const rowsIn = (data: ArrayLike<number>) =>
  Array.from({ length: data.length / width }, (_, row) =>
    Array.from({ length: width }, (_, i) => data[row * width + i]!),
  );

test("rows go to the marker, then permuted rows, then the marker itself", async () => {
  const [own, other] = [speaking(), speaking({ info: { name: "other", quantization: "Q8_0", bytes: 5 } })];
  const { found, told, arrays } = await run({ verbaliser: "other" }, own, other);
  // Words get their numbers as they come. Of the prompt: a, b, c; of the verbaliser: X, the marker, then say and now.
  const rows = [rowOf(3), rowOf(1)];
  const [read] = own.read as [FeatureRequest];
  assert.equal(
    [read.layers, read.rows, read.sequences.map((tokens) => [...tokens])],
    [[2], "all", [[0, 1, 2, 3]]],
  );
  assert.equal([own.contexts, other.contexts], [[{ nCtx: 4, nBatch: 4 }], [{ nCtx: 7 }]]);
  assert.equal([own.asked.length, other.read.length], [0, 0], "each model does its own part");
  assert.ok([read, ...other.asked].every((request) => request.signal === signal));
  const [{ before, after, fillings, maxTokens, samples, draws, temperature }] = other.asked as [
    ExplainRequest,
  ];
  assert.equal([[...before], [...after], maxTokens, samples], [[0, 2], [3], 3, 2]);
  assert.equal([draws, temperature], [undefined, undefined], "at 0 nothing is drawn");
  assert.equal(fillings.length, 5);
  assert.equal(
    fillings.slice(0, 2).map(({ row }) => [...row!]),
    rows,
  );
  for (const [i, { row }] of fillings.slice(2, 4).entries()) {
    assert.equal([...row!].sort(), rows[i]!.toSorted());
    assert.not.equal([...row!], rows[i]);
  }
  assert.equal(fillings[4], { token: 1 });
  const says = (filling: number) =>
    [1, 2].map((tokens) => ({
      text: new Array(tokens).fill(filling).join("+"),
      tokens,
      ended: tokens === 1,
    }));
  const { note, explained, ...rest } = found;
  for (const [i, { norm }] of explained.entries()) assert.ok(Math.abs(norm - lengthOf(rows[i]!)) < 1e-12);
  assert.equal(
    { ...rest, explained: explained.map(({ norm: _, ...row }) => row) },
    {
      layer: 2,
      verbaliser: { name: "other", quantization: "Q8_0", bytes: 5, prompt_tokens: 4, token_scale: 2 },
      length: null,
      explained: [
        {
          position: 3,
          token: " c",
          token_id: 3,
          descriptions: says(0),
          shuffled: says(2),
        },
        {
          position: 1,
          token: "a",
          token_id: 1,
          descriptions: says(1),
          shuffled: says(3),
        },
      ],
      unfilled: says(4),
    },
  );
  assert.match(note, /^A description is the verbaliser's answer, not the activation's meaning\./);
  assert.equal(
    [arrays.get("positions")!.shape, [...arrays.get("positions")!.data], arrays.get("rows")!.shape],
    [[2], [3, 1], [2, width]],
  );
  assert.equal(rowsIn(arrays.get("rows")!.data), rows);
  assert.equal(
    rowsIn(arrays.get("shuffled")!.data),
    fillings.slice(2, 4).map(({ row }) => [...row!]),
  );
  assert.equal(told, [
    { stage: "reading activations", done: 0, total: 1 },
    // Five fillings of two samples of three tokens.
    { stage: "describing activations", done: 0, total: 30 },
    { stage: "describing activations", done: 3, total: 4 },
  ]);
  assert.equal([own.closed, other.closed], [["context"], ["context", "model"]]);
});

test("a model that is its own verbalizer is not closed; controls are optional", async () => {
  const own = speaking();
  const { found, arrays } = await run({ controls: false }, own);
  assert.equal(own.closed, ["context", "context"]);
  assert.is(own.asked[0]!.fillings.length, 2);
  assert.equal(
    [found.unfilled, found.explained.map((row) => "shuffled" in row), arrays.has("shuffled")],
    [undefined, [false, false], false],
  );
});

test("a row is scaled to the requested length and stored as read; a zero row cannot be", async () => {
  const own = speaking();
  const { found, arrays } = await run({ length: 20, positions: [2] }, own);
  const row = rowOf(2);
  const norm = lengthOf(row);
  const [{ fillings }] = own.asked as [ExplainRequest];
  assert.is(found.length, 20);
  assert.ok(Math.abs(found.explained[0]!.norm - norm) < 1e-12);
  assert.equal([...fillings[0]!.row!], [...Float32Array.from(row, (value) => (value * 20) / norm)]);
  assert.ok(Math.abs(lengthOf([...fillings[1]!.row!]) - 20) < 1e-5, "the control, too");
  assert.equal(rowsIn(arrays.get("rows")!.data), [row]);
  const zero = speaking();
  assert.is(
    await refusal(() => run({ length: 20, positions: [0] }, zero)),
    "The activation of token 0 is zero and cannot be scaled.",
  );
  assert.equal(zero.closed, ["context", "context"]);
  assert.is((await run({ positions: [0] })).found.explained[0]!.norm, 0);
});

/** Numbers between 0 and 1 of the seed's stream: mulberry32, in the middle of its steps. */
function stream(seed: number, number: number, count: number): number[] {
  const random = new TestRandom((seed + Math.imul(number + 1, 0x9e3779b1)) >>> 0);
  return Array.from({ length: count }, () => random.uniform() + 0.5 / 2 ** 32);
}

test("draws and permutations depend on the seed alone, each on its own stream", async () => {
  const own = speaking();
  await run({ temperature: 1.5, positions: [1, 1] }, own);
  const [{ draws, temperature, fillings }] = own.asked as [ExplainRequest];
  assert.equal([temperature, [...draws!]], [1.5, stream(7, 0, 6)]);
  for (const [i, { row }] of fillings.slice(2, 4).entries()) {
    // Fisher and Yates, from the last place on.
    const wanted = rowOf(1);
    const numbers = stream(7, 65_536 + i, width);
    for (let at = width - 1; at > 0; at--) {
      const with_ = Math.floor(numbers[width - 1 - at]! * (at + 1));
      [wanted[at], wanted[with_]] = [wanted[with_]!, wanted[at]!];
    }
    assert.equal([...row!], wanted, `row ${i}`);
  }
  assert.not.equal([...fillings[2]!.row!], [...fillings[3]!.row!], "equal rows in two orders");
  const next = speaking();
  await run({ temperature: 1.5, seed: 8 }, next);
  assert.equal([...next.asked[0]!.draws!], stream(8, 0, 6));
});

/** The same model, whose tokeniser knows a BOS token that is spelled as S. */
function spelling(tokens: Record<string, number[]>, info: object = {}) {
  const own = speaking({ info });
  const tokenize = own.model.tokenize.bind(own.model);
  own.model.tokenize = (async (text: string, options: object) =>
    text in tokens ? Int32Array.from(tokens[text]!) : tokenize(text, options)) as Model["tokenize"];
  return own;
}

test("a template starts with one BOS token, has the marker once and room for an answer", async () => {
  const placed = async (tokens: number[], info: object = {}) => {
    const own = spelling({ "say X now": tokens, " X": [9] }, info);
    const { found } = await run({}, own);
    const [{ before, after }] = own.asked as [ExplainRequest];
    return [[...before], [...after], found.verbaliser.prompt_tokens];
  };
  assert.equal(await placed([0, 9, 5]), [[0], [5], 3]);
  assert.equal(await placed([0, 0, 9, 5]), [[0], [5], 3], "spelled, and put before it");
  assert.equal(await placed([0, 0, 0, 9]), [[0, 0], [], 3]);
  assert.equal(await placed([0, 0, 9], { addBos: false }), [[0, 0], [], 3]);
  assert.equal(await placed([4, 4, 9]), [[4], [], 2]);
  assert.equal(await placed([9]), [[], [], 1]);

  const says = async (body: object, own = speaking(), other?: Speaking) => {
    const sentence = await refusal(() => run(body, own, other));
    assert.equal(
      [own.asked.length, own.read.length, own.closed.length],
      [0, 0, own.contexts.length],
      sentence,
    );
    assert.equal(other?.closed.at(-1), other && "model");
    return sentence;
  };
  const marker = (places: number) =>
    `The marker " X" occurs ${places} times in the template as a separate token, not once: the tokenizer may merge it with neighboring text.`;
  assert.is(await says({ template: "say it" }), marker(0));
  assert.is(await says({ template: "say X X" }), marker(2));
  assert.is(
    await says({ marker: " X now" }),
    'marker must be exactly one token of the verbaliser; " X now" gives 2: " X" " now".',
  );
  // 4 tokens and 3 of the description.
  const fits = speaking({ info: { nCtxTrain: 7 } });
  await run({}, fits);
  assert.is(
    await says({}, speaking({ info: { nCtxTrain: 6 } })),
    "The template has 4 tokens and a description up to 3; the model was trained on at most 6 positions.",
  );
  assert.is(
    await says({}, speaking({ input: { supported: false, reason: "No rows here." } })),
    "No rows here.",
  );
  const wide = speaking({ info: { name: "wide", nEmbd: 9 } });
  assert.is(
    await says({ verbaliser: "wide" }, speaking(), wide),
    "Activations of toy have 8 values, token embeddings of the verbaliser wide have 9; both must have the same size.",
  );
  const prompt = "the prompt has 4 tokens, 0 to 3.";
  assert.is(await says({ positions: [0, 4] }), `positions: 4 does not exist; ${prompt}`);
  assert.is(await says({ positions: [-5] }), `positions: -5 does not exist; ${prompt}`);
  assert.is(await says({ layer: 4 }), "layers: 4 does not exist; the model has 4 blocks, 0 to 3.");
  assert.equal(
    (await run({ positions: [-4, 3] })).found.explained.map(({ position }) => position),
    [0, 3],
  );
});

test.run();
