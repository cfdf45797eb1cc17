/** What lenses tell of rows, against sums in float64 over the logits themselves: a head of random numbers, and -inf. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { type Metadata, type TensorSpec, writeGguf } from "../../bench/models/gguf-writer.js";
import { type Context, Model, narrow } from "../../src/native/index.js";
import { filledTensor, randomMatrix, randomTensor, tensor } from "../inference/support/tiny-models.js";
import { TestRandom } from "../support/random.js";
import { rejects, scratch } from "./demo-model.js";

const hidden = 32;
/** 21 times 16 and 9 more, which are likely ones. */
const vocabulary = 345;
/** Tokens that are never said. */
const impossible = [3, 4, 5, 6, 200, 343];

const folder = scratch();

/** A model whose head is these numbers; what its block would do, nobody asks. */
async function opened(output: Float32Array, bias: Float32Array): Promise<[Model, Context]> {
  const path = join(folder, "head.gguf");
  const matrix = (name: string, inner: number, outer: number) => [
    tensor(`${name}.weight`, [inner, outer], randomMatrix(name, inner * outer)),
    tensor(`${name}.bias`, [outer], new Float32Array(outer)),
  ];
  const norm = (name: string) => [
    tensor(`${name}.weight`, [hidden], new Float32Array(hidden).fill(1)),
    tensor(`${name}.bias`, [hidden], new Float32Array(hidden)),
  ];
  const metadata = {
    "general.architecture": "phi2",
    "general.file_type": 0,
    "phi2.block_count": 1,
    "phi2.context_length": 512,
    "phi2.embedding_length": hidden,
    "phi2.feed_forward_length": hidden,
    "phi2.attention.head_count": 2,
    "phi2.attention.head_count_kv": 2,
    "phi2.attention.layer_norm_epsilon": { f32: 1e-5 },
    "phi2.rope.dimension_count": 16,
    ...byteTokenizer(vocabulary),
  };
  await writeGguf(path, metadata, [
    tensor("token_embd.weight", [hidden, vocabulary], randomMatrix("token_embd", hidden * vocabulary)),
    ...norm("output_norm"),
    tensor("output.weight", [hidden, vocabulary], output),
    tensor("output.bias", [vocabulary], bias),
    ...norm("blk.0.attn_norm"),
    ...["attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"].flatMap((name) =>
      matrix(`blk.0.${name}`, hidden, hidden),
    ),
  ]);
  const model = await Model.open(path, { gpuLayers: 0 });
  return [model, await model.createContext({ threads: 1, nCtx: 64 })];
}

let model: Model;
let context: Context;
test.before(async () => {
  const bias = Float32Array.from({ length: vocabulary }, (_, id) =>
    impossible.includes(id) ? Number.NEGATIVE_INFINITY : id >= 336 ? 2 : 0,
  );
  [model, context] = await opened(randomMatrix("output", hidden * vocabulary, 2), bias);
});
test.after(() => model.close());

/** The same logits, whatever the row. */
async function always(logits: (id: number) => number, use: (context: Context) => Promise<void>) {
  const bias = Float32Array.from({ length: vocabulary }, (_, id) => logits(id));
  const [model, context] = await opened(new Float32Array(hidden * vocabulary), bias);
  try {
    await use(context);
  } finally {
    await model.close();
  }
}

const count = 6;
const random = new TestRandom(8);
const states = (about?: Float32Array, far = 1) =>
  random.normals(count * hidden).map((value, i) => (about?.[i] ?? 0) + far * value);
const output = states();
/** Rows that have nothing to do with the output's, rows that are all but the same, and the same. */
const places = [states(), states(output, 0.003), output];

/** Of a row's logits, each token's natural logarithm of its probability. */
function logProbabilities(logits: Float32Array): number[] {
  const highest = Math.max(...logits);
  const sum = logits.reduce((all, logit) => all + Math.exp(logit - highest), 0);
  return Array.from(logits, (logit) => logit - highest - Math.log(sum));
}
const rowsOf = async (rows: Float32Array) => {
  const logits = await context.lensLogits(rows);
  return Array.from({ length: count }, (_, row) =>
    logProbabilities(logits.subarray(row * vocabulary, (row + 1) * vocabulary)),
  );
};
/** Sum of p log (p / q); what is never said counts nothing. */
const apart = (p: number[], q: number[]) =>
  p.reduce((sum, log, id) => sum + (Math.exp(log) === 0 ? 0 : Math.exp(log) * (log - q[id]!)), 0);
const close = (found: number, expected: number, what: string) =>
  assert.ok(
    Math.abs(found - expected) <= 2e-6 + 2e-6 * Math.abs(expected),
    `${what}: ${found}, not ${expected}`,
  );

test("probabilities, ranks, entropies and distances from the output are those of the logits", async () => {
  const targets = Int32Array.of(-1, 344, 5, 0, 100, 343);
  const said = await rowsOf(output);
  const readings = await context.readLens({
    places: places.map((rows) => ({ states: rows })),
    ...{ output, top: 4, targets, entropy: true },
  });
  let smallest = Number.POSITIVE_INFINITY;
  for (const [place, reading] of readings.entries()) {
    for (const [row, logs] of (await rowsOf(places[place]!)).entries()) {
      const what = `place ${place}, row ${row}`;
      const order = [...logs.keys()].sort((a, b) => logs[b]! - logs[a]! || a - b);
      if (logs[order[0]!] === logs[order[1]!]) throw new Error("ties are another test's");
      assert.equal([...reading.tokenIds.subarray(row * 4, row * 4 + 4)], order.slice(0, 4), what);
      for (let i = 0; i < 4; i++)
        close(reading.probabilities[row * 4 + i]!, Math.exp(logs[order[i]!]!), `${what}, token ${i}`);
      const target = targets[row]!;
      close(reading.targetProbabilities![row]!, target < 0 ? 0 : Math.exp(logs[target]!), `${what}, target`);
      assert.is(reading.targetRanks![row], target < 0 ? 0 : order.indexOf(target) + 1, what);
      close(reading.entropies![row]!, apart(logs, new Array(vocabulary).fill(0)) * -1, `${what}, entropy`);
      const expected = apart(said[row]!, logs);
      if (place === 2) assert.is(reading.divergences![row], 0, what);
      else close(reading.divergences![row]!, expected, `${what}, distance`);
      if (place === 1) smallest = Math.min(smallest, expected);
    }
  }
  assert.ok(smallest > 1e-6 && smallest < 1e-4, `the nearest is ${smallest} away`);
});

test("rows almost equal to the output have distance 0, never less", async () => {
  // Their true distances are some 1e-10, which is far below what adding up so many numbers rounds.
  const beside = states(output, 1e-5);
  const [reading] = await context.readLens({ places: [{ states: beside }], output, top: 1 });
  assert.equal([...reading!.divergences!], new Array(count).fill(0));
});

test("a translator is a matrix, with a bias or without, of either width, added to the row or in its place", async () => {
  const bias = random.normals(hidden);
  const weights = random.normals(hidden * hidden).map((value) => Math.fround(Math.round(value * 64) / 256));
  const halves = await narrow(weights, "f16");
  const path = join(folder, "translator");
  const parts = [new Uint8Array(16), weights, halves, bias];
  writeFileSync(
    path,
    Buffer.concat(parts.map((part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength))),
  );
  const places = { f32: 16, f16: 16 + weights.byteLength, bias: 16 + weights.byteLength + halves.byteLength };
  const rows = states();
  for (const half of [false, true]) {
    for (const biased of [false, true]) {
      for (const residual of [false, true]) {
        const by = Float32Array.from({ length: count * hidden }, (_, at) => {
          const [row, out] = [Math.floor(at / hidden) * hidden, at % hidden];
          let sum = (biased ? bias[out]! : 0) + (residual ? rows[at]! : 0);
          for (let k = 0; k < hidden; k++) sum += weights[out * hidden + k]! * rows[row + k]!;
          return sum;
        });
        const translator = {
          ...{ path, half, residual, matrix: half ? places.f16 : places.f32 },
          ...(biased ? { bias: places.bias } : { bias: 0 }),
        };
        const [found, expected] = await context.readLens({
          ...{ places: [{ states: rows, translator }, { states: by }], top: 3, entropy: true },
        });
        const what = JSON.stringify({ half, biased, residual });
        assert.equal([...found!.tokenIds], [...expected!.tokenIds], what);
        for (const [i, share] of expected!.probabilities.entries())
          assert.ok(Math.abs(found!.probabilities[i]! - share) < 1e-5, `${what}: ${i}`);
      }
    }
  }
});

test("input that a lens cannot read is refused with the numbers", async () => {
  const read = (more: object) => context.readLens({ places: [{ states: states() }], top: 1, ...more });
  const target = (id: number) => ({ targets: new Int32Array(count).fill(id) });
  assert.is((await read(target(vocabulary - 1))).length, 1);
  await rejects(read(target(vocabulary)), "INVALID_ARGUMENT", /target 345 is outside the vocabulary of 345/);
  for (const odd of [
    { targets: new Int32Array(count - 1) },
    { output: output.slice(hidden) },
    { places: [{ states: states() }, { states: states().slice(hidden) }] },
    { places: [{ states: states().slice(1) }] },
  ]) {
    await rejects(
      read(odd),
      "INVALID_ARGUMENT",
      /^A lens needs the same number of rows of 32 values at every place\.$/,
    );
  }
});

test("a row that is not finite is refused for every request", async () => {
  const spoilt = states();
  spoilt[hidden * 2] = Number.NaN;
  const sentence = /probabilities are not finite; the model file may be damaged\.$/;
  await rejects(context.readLens({ places: [{ states: spoilt }], top: 1 }), "COMPUTE", sentence);
  await rejects(
    context.readLens({ places: [{ states: spoilt }], top: 1, entropy: true, output }),
    "COMPUTE",
    sentence,
  );
});

test("one logit that is not a number invalidates its row", async () => {
  const read = (context: Context) => context.readLens({ places: [{ states: states() }], top: 1 });
  await always(
    (id) => (id === 7 ? Number.NaN : id / 100),
    (context) => rejects(read(context), "COMPUTE", /probabilities are not finite/),
  );
});

test("a likely token among many that are each a little less likely has its share to a millionth", async () => {
  // The last token of all; and ln 2 / 2 is where the exponential's polynomial ends.
  const less = Math.fround(0.34);
  await always(
    (id) => (id === vocabulary - 1 ? 0 : -less),
    async (context) => {
      const [reading] = await context.readLens({ places: [{ states: states() }], top: 1, entropy: true });
      const sum = 1 + (vocabulary - 1) * Math.exp(-less);
      assert.is(reading!.tokenIds[0], vocabulary - 1);
      assert.ok(Math.abs(reading!.probabilities[0]! * sum - 1) < 1e-6, `${reading!.probabilities[0]! * sum}`);
      const entropy = Math.log(sum) + ((sum - 1) / sum) * less;
      assert.ok(
        Math.abs(reading!.entropies![0]! - entropy) < 2e-6,
        `${reading!.entropies![0]} of ${entropy}`,
      );
    },
  );
});

test("rows of which not all logits fit at once are each read as they are alone", async () => {
  // Two places and the output: 16,777,216 logits are 16,209 rows of each.
  const rows = 17_000;
  const many = new Float32Array(rows * hidden);
  for (let row = 0; row < rows; row++) {
    const from = (row % 5) * hidden;
    many.set(output.subarray(from, from + hidden), row * hidden);
  }
  const targets = Int32Array.from({ length: rows }, (_, row) => row % 331);
  const last = (values: Float32Array) => values.subarray((rows - count) * hidden);
  const ask = (of: (values: Float32Array) => Float32Array, targets: Int32Array) =>
    context.readLens({
      places: [{ states: of(many) }, { states: of(many).map((value) => -value) }],
      ...{ output: of(many), top: 2, targets, entropy: true },
    });
  const all = await ask((values) => values, targets);
  const few = await ask(last, targets.slice(-count));
  for (const [place, reading] of all.entries()) {
    const alone = few[place]!;
    assert.is(reading.entropies!.length, rows);
    assert.equal([...reading.tokenIds.slice(-2 * count)], [...alone.tokenIds]);
    assert.equal([...reading.targetRanks!.slice(-count)], [...alone.targetRanks!]);
    for (const what of ["entropies", "divergences", "targetProbabilities"] as const) {
      for (const [row, value] of alone[what]!.entries())
        close(reading[what]![rows - count + row]!, value, `${what} ${row}`);
    }
    // Different rows say different things, so that one in another's place shows.
    assert.is(new Set(alone.entropies).size, 5);
    for (const row of [0, 1, 2]) {
      const same = reading.entropies![row + 5]!;
      close(reading.entropies![row]!, same, `entropy of row ${row}`);
    }
  }
});

/** Rows behind the last block, as in the model of the name; both have a head of the tokens' embeddings. */
const scaled: [string, Metadata, TensorSpec[], (row: number[]) => number[]][] = [
  [
    "command-r",
    { "attention.layer_norm_epsilon": { f32: 1e-5 }, logit_scale: { f32: 0.25 } },
    [],
    // A layer norm; a quarter of every logit.
    (row) => {
      const mean = row.reduce((sum, value) => sum + value, 0) / hidden;
      const centred = row.map((value) => value - mean);
      const variance = centred.reduce((sum, value) => sum + value * value, 0) / hidden;
      return centred.map((value) => (0.25 * value) / Math.sqrt(variance + 1e-5));
    },
  ],
  [
    "minicpm3",
    {
      ...{ "attention.layer_norm_rms_epsilon": { f32: 1e-5 }, "rope.dimension_count": 8 },
      ...{ "attention.q_lora_rank": 16, "attention.kv_lora_rank": 16 },
      ...{ "attention.key_length": 16, "attention.value_length": 16 },
    },
    [
      randomTensor("blk.0.attn_q_a.weight", [hidden, 16]),
      filledTensor("blk.0.attn_q_a_norm.weight", [16], 1),
      randomTensor("blk.0.attn_q_b.weight", [16, 2 * 16]),
      randomTensor("blk.0.attn_kv_a_mqa.weight", [hidden, 16 + 8]),
      filledTensor("blk.0.attn_kv_a_norm.weight", [16], 1),
      randomTensor("blk.0.attn_kv_b.weight", [16, 2 * (8 + 16)]),
      filledTensor("blk.0.ffn_norm.weight", [hidden], 1),
    ],
    // A root mean square norm; the row 256 / 32 times as long, before the head.
    (row) => {
      const square = row.reduce((sum, value) => sum + value * value, 0) / hidden;
      return row.map((value) => (8 * value) / Math.sqrt(square + 1e-5));
    },
  ],
];

for (const [architecture, more, tensors, headed] of scaled) {
  test(`where a model scales what its head reads or says, so do lens and direction: ${architecture}`, async () => {
    const path = join(folder, `${architecture}.gguf`);
    const common: Metadata = {
      ...{ block_count: 1, context_length: 512, embedding_length: hidden, feed_forward_length: hidden },
      ...{ "attention.head_count": 2, "attention.head_count_kv": 2, ...more },
    };
    const embeddings = randomMatrix("token_embd", hidden * vocabulary, 2);
    await writeGguf(
      path,
      {
        ...{ "general.architecture": architecture, "general.file_type": 0, ...byteTokenizer(vocabulary) },
        ...Object.fromEntries(
          Object.entries(common).map(([name, value]) => [`${architecture}.${name}`, value]),
        ),
      },
      [
        tensor("token_embd.weight", [hidden, vocabulary], embeddings),
        filledTensor("output_norm.weight", [hidden], 1),
        filledTensor("blk.0.attn_norm.weight", [hidden], 1),
        ...["ffn_gate", "ffn_up", "ffn_down"].map((name) =>
          randomTensor(`blk.0.${name}.weight`, [hidden, hidden]),
        ),
        ...(tensors.length > 0 ? ["attn_output"] : ["attn_q", "attn_k", "attn_v", "attn_output"]).map(
          (name) => randomTensor(`blk.0.${name}.weight`, [hidden, hidden]),
        ),
        ...tensors,
      ],
    );
    const model = await Model.open(path, { gpuLayers: 0 });
    try {
      const context = await model.createContext({ threads: 1, nCtx: 64 });
      const { layers, logits } = await context.advance({
        ...{ tokens: Int32Array.of(40, 41, 42), layers: [0], rows: "last", logits: true },
      });
      const state = layers[0]!.states!.data;
      const row = headed([...state]);
      const read = await context.lensLogits(state);
      for (const token of [0, 7, vocabulary - 1]) {
        const expected = row.reduce((sum, value, i) => sum + value * embeddings[token * hidden + i]!, 0);
        const { direction, constant } = await context.logitDirection(state, token);
        const said = direction.reduce((sum, value, i) => sum + value * state[i]!, constant);
        for (const [what, found] of Object.entries({ model: logits![token]!, lens: read[token]!, said }))
          assert.ok(Math.abs(found - expected) < 1e-3, `${token}, ${what}: ${found}, not ${expected}`);
      }
    } finally {
      await model.close();
    }
  });
}

test.run();
