/** What the embedded model cannot show: other widths, layer norms, shared values, sliding windows, damaged numbers. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import type { Metadata, TensorSpec } from "../../bench/models/gguf-writer.js";
import { writeGguf } from "../../bench/models/gguf-writer.js";
import {
  type Context,
  type DictionaryPlaces,
  decodeRows,
  type Edit,
  encodeRows,
  Model,
  narrow,
  patchCells,
} from "../../src/native/index.js";
import {
  ones,
  randomMatrix,
  randomTensor,
  tensor,
  writeTinyModel,
} from "../inference/support/tiny-models.js";
import { logitsOf, rejects, scratch } from "./demo-model.js";

const folder = scratch();
const [vocabulary, blocks, head, feedForward] = [320, 2, 16, 32];

const everyBlock = (of: (block: string) => TensorSpec[]) =>
  Array.from({ length: blocks }, (_, block) => of(`blk.${block}`)).flat();

/** A qwen3 of another width, or with more heads. */
async function writeQwen(
  path: string,
  { hidden = 32, heads = 1, shared = 1, tensors = [] as TensorSpec[] },
): Promise<void> {
  await writeTinyModel(path, {
    metadata: {
      "qwen3.embedding_length": hidden,
      "qwen3.attention.head_count": heads,
      "qwen3.attention.head_count_kv": shared,
    },
    tensors: [
      ...tensors,
      randomTensor("token_embd.weight", [hidden, vocabulary]),
      ones("output_norm.weight", hidden),
      ...everyBlock((blk) => [
        ones(`${blk}.attn_norm.weight`, hidden),
        ones(`${blk}.ffn_norm.weight`, hidden),
        randomTensor(`${blk}.attn_q.weight`, [hidden, heads * head]),
        randomTensor(`${blk}.attn_k.weight`, [hidden, shared * head]),
        randomTensor(`${blk}.attn_v.weight`, [hidden, shared * head]),
        randomTensor(`${blk}.attn_output.weight`, [heads * head, hidden]),
        randomTensor(`${blk}.ffn_gate.weight`, [hidden, feedForward]),
        randomTensor(`${blk}.ffn_up.weight`, [hidden, feedForward]),
        randomTensor(`${blk}.ffn_down.weight`, [feedForward, hidden]),
      ]),
    ].filter((one, at, all) => all.findIndex(({ name }) => name === one.name) === at),
  });
}

async function opened<T>(
  write: (path: string) => Promise<void>,
  options: Parameters<Model["createContext"]>[0],
  use: (context: Context) => Promise<T>,
): Promise<T> {
  const path = join(folder, "model.gguf");
  await write(path);
  const model = await Model.open(path);
  try {
    return await use(await model.createContext({ threads: 1, nCtx: 64, ...options }));
  } finally {
    await model.close();
  }
}

const length = (values: ArrayLike<number>) => Math.hypot(...Array.from(values));
const near = (found: number, expected: number, what: string, bound = 1e-5) =>
  assert.ok(Math.abs(found - expected) <= bound * Math.abs(expected), `${what}: ${found}, not ${expected}`);

test("norms include every value of a row whose width is not a multiple of 8", async () => {
  const hidden = 36;
  await opened(
    (path) => writeQwen(path, { hidden }),
    {},
    async (context) => {
      const tokens = Int32Array.of(40, 41, 42);
      const vector = new Float32Array(hidden);
      vector.set([1, 2, 2], hidden - 3);
      const { layers, effects } = await context.advance({
        ...{ tokens, layers: [0], edits: [{ layer: 0, vector, unit: "unit", strength: 5 }] },
      });
      const { states, norms } = layers[0]!;
      for (const [row, norm] of norms.entries()) {
        near(norm, length(states!.data.subarray(row * hidden, (row + 1) * hidden)), `row ${row}`);
      }
      near(effects![0]!.changeLength, 5, "change");
      near(effects![0]!.rowLength, norms[2] as number, "row");
    },
  );
});

test("with a layer norm and a head with bias, a logit's direction equals the head", async () => {
  const hidden = 32;
  const embeddings = randomMatrix("token_embd.weight", hidden * vocabulary).map((value) => value + 0.3);
  const both = (name: string) => [
    randomTensor(`${name}.weight`, [hidden], 2),
    randomTensor(`${name}.bias`, [hidden]),
  ];
  const linear = (name: string, inner: number, outer: number) => [
    randomTensor(`${name}.weight`, [inner, outer]),
    randomTensor(`${name}.bias`, [outer]),
  ];
  const metadata: Metadata = {
    "general.architecture": "phi2",
    "general.file_type": 0,
    "phi2.block_count": blocks,
    "phi2.context_length": 512,
    "phi2.embedding_length": hidden,
    "phi2.feed_forward_length": feedForward,
    "phi2.attention.head_count": 2,
    "phi2.attention.head_count_kv": 2,
    "phi2.attention.layer_norm_epsilon": { f32: 1e-5 },
    "phi2.rope.dimension_count": 16,
    ...byteTokenizer(vocabulary),
  };
  const tensors = [
    tensor("token_embd.weight", [hidden, vocabulary], embeddings),
    ...both("output_norm"),
    ...linear("output", hidden, vocabulary),
    ...everyBlock((blk) => [
      ...both(`${blk}.attn_norm`),
      ...["attn_q", "attn_k", "attn_v", "attn_output"].flatMap((name) =>
        linear(`${blk}.${name}`, hidden, hidden),
      ),
      ...linear(`${blk}.ffn_up`, hidden, feedForward),
      ...linear(`${blk}.ffn_down`, feedForward, hidden),
    ]),
  ];
  await opened(
    (path) => writeGguf(path, metadata, tensors),
    {},
    async (context) => {
      const { layers, logits } = await context.advance({
        ...{ tokens: Int32Array.of(40, 41, 42), layers: [1], rows: "last", logits: true },
      });
      const state = layers[0]!.states!.data;
      assert.ok(Math.abs(state.reduce((sum, value) => sum + value, 0)) > 1, "the state's mean is not 0");
      for (const token of [0, 7, 319]) {
        const { direction, constant } = await context.logitDirection(state, token);
        const own = direction.reduce((sum, value, i) => sum + value * state[i]!, constant);
        assert.ok(Math.abs(own - logits![token]!) < 1e-3, `${token}: ${own}, not ${logits![token]}`);
      }
    },
  );
});

test("a head that lies rearranged for the processor is refused, and one that does not says what the head says", async () => {
  const output: TensorSpec = {
    ...{ name: "output.weight", dimensions: [hidden, vocabulary], type: "q4_0" },
    // Blocks of a float16 near 0.1, and of 32 numbers of four bits.
    bytes: (size) =>
      Buffer.from(
        Array.from({ length: size }, (_, i) => (i % 18 === 0 ? 0x66 : i % 18 === 1 ? 0x2e : i * 37)),
      ),
  };
  await opened(
    (path) => writeTinyModel(path, { metadata: { "general.file_type": 2 }, tensors: [output] }),
    {},
    async (context) => {
      const { layers, logits } = await context.advance({
        ...{ tokens: Int32Array.of(40, 41, 42), layers: [1], rows: "last", logits: true },
      });
      const state = layers[0]!.states!.data;
      for (const token of [0, 7, 319]) {
        const found = await context.logitDirection(state, token).catch((error: Error) => error.message);
        if (typeof found === "string") {
          assert.match(found, /the rows of 'output.weight' are rearranged for this processor's products\.$/);
          continue;
        }
        const own = found.direction.reduce((sum, value, i) => sum + value * state[i]!, found.constant);
        // Products of quantised weights quantise the states, too.
        assert.ok(Math.abs(own - logits![token]!) < 0.05, `${token}: ${own}, not ${logits![token]}`);
      }
    },
  );
});

test("where two heads share values, attention is proven by the values that each of them reads", async () => {
  await opened(
    (path) => writeQwen(path, { heads: 4, shared: 2 }),
    { keepAttention: true },
    async (context) => {
      const found = await context.advance({
        ...{ tokens: Int32Array.of(40, 41, 42, 43), layers: [], attention: { layers: [0, 1], prove: true } },
      });
      for (const { layer, heads, apart } of found.attention!) {
        assert.equal([...heads], [0, 1, 2, 3]);
        // K and V are kept in F16.
        assert.ok(apart > 0 && apart < 1e-3, `block ${layer}: ${apart}`);
      }
    },
  );
});

/** A model to which one token is infinite. */
const [damaged, hidden] = [7, 32];
const writeDamaged = (path: string) => {
  const embeddings = randomMatrix("token_embd.weight", hidden * vocabulary);
  embeddings.fill(Number.POSITIVE_INFINITY, damaged * hidden, (damaged + 1) * hidden);
  return writeTinyModel(path, {
    tensors: [
      tensor("token_embd.weight", [hidden, vocabulary], embeddings),
      randomTensor("output.weight", [hidden, vocabulary]),
    ],
  });
};

test("values of a damaged token never reach a text after a reset", async () => {
  // Without flash attention, what is masked is multiplied with 0 all the same.
  await opened(writeDamaged, { keepAttention: true }, async (context) => {
    const tokens = Int32Array.of(40);
    const sound = await logitsOf(context, { tokens, layers: [] });
    assert.ok(sound.every(Number.isFinite));
    const spoiled = await logitsOf(context, { tokens: Int32Array.of(40, damaged, 41), layers: [] });
    assert.not.ok(spoiled.every(Number.isFinite));
    assert.equal(await logitsOf(context, { tokens, layers: [] }), sound);
  });
});

test("what fails in the middle of a text leaves nothing of it", async () => {
  await opened(writeDamaged, { keepAttention: true, maxSequences: 3 }, async (context) => {
    const tokens = Int32Array.of(40, 44);
    const sound = await logitsOf(context, { tokens, layers: [] });
    const spoilt = Int32Array.of(40, damaged, 41);
    const plain = Int32Array.of(40, 42, 41);
    const failing: [what: string, run: () => Promise<unknown>, says: RegExp][] = [
      [
        "attention",
        () => context.advance({ tokens: spoilt, layers: [], attention: { layers: [1] } }),
        /attention of block 1 at token \d is not finite;/,
      ],
      [
        "the unpatched runs",
        () => context.patchSweep({ clean: spoilt, corrupted: plain, layers: [0], positions: [2] }),
        /^The model's logits are not finite; the model file may be damaged\.$/,
      ],
      [
        "what a row is said to be",
        () =>
          context.explain({ before: tokens, after: tokens, fillings: [{ token: damaged }], maxTokens: 2 }),
        /^The logits are not finite: the row is too long, or the model file is damaged\.$/,
      ],
      [
        "rows of packed texts",
        () => context.features({ sequences: [tokens, spoilt, tokens], layers: [1] }),
        /^The output of block 1 is not finite at the last token of text 1;/,
      ],
    ];
    for (const [what, run, says] of failing) {
      await context.reset();
      await rejects(run(), "COMPUTE", says);
      // Not reset by hand: a text begins anew.
      const { logits } = await context.advance({ tokens, layers: [], logits: true });
      assert.equal(logits, sound, what);
    }
  });
});

test("rows that are not finite are named by their text and their place in it, whatever else is packed", async () => {
  await opened(writeDamaged, { keepAttention: true, maxSequences: 4 }, async (context) => {
    const sound = Int32Array.of(40, 41, 42);
    // What is masked is multiplied with 0, so that every row of such a text is spoilt, and its neighbours' while they
    // are packed beside it.
    const sequences = [sound, Int32Array.of(40, 41, damaged), sound];
    for (const [rows, starts, place] of [
      ["all", [0, 0, 0], "at token 0 of text 1"],
      ["all", [1, 2, 0], "at token 2 of text 1"],
      ["mean", [2, 1, 0], "in the mean of text 1"],
      ["last", [0, 0, 0], "at the last token of text 1"],
    ] as const) {
      const reading = context.features({
        ...{ sequences, layers: [0], rows },
        ...(rows !== "last" && { starts: Int32Array.from(starts) }),
      });
      await rejects(reading, "COMPUTE", new RegExp(`^The output of block 0 is not finite ${place};`));
    }
  });
});

test("a change that overflows spoils neither its neighbours nor what is swept next", async () => {
  const write = (path: string) => writeTinyModel(path);
  await opened(write, { keepAttention: true, maxSequences: 3 }, async (context) => {
    const prompts = [Int32Array.of(40, 41, 42), Int32Array.of(50, 51)];
    const half: Edit = { layer: 0, scale: 0.5 };
    const huge: Edit = { layer: 0, scale: 3e38 };
    const expected = await context.sweep({ prompts, plans: [[half]], maxTokens: 2 });
    const found = await context.sweep({ prompts, plans: [[huge], [half]], maxTokens: 2 });
    for (const [p, { target, baseline, rows }] of found.entries()) {
      const alone = expected[p]!;
      assert.equal([baseline.finite, rows[0]!.finite, rows[1]!.finite], [true, false, true]);
      assert.is(target, alone.target);
      near(baseline.probability, alone.baseline.probability, "baseline", 1e-4);
      near(rows[1]!.probability, alone.rows[0]!.probability, "its neighbour", 1e-4);
      assert.equal(rows[1]!.continuation, alone.rows[0]!.continuation);
      // Each row is counted once, however often it was computed.
      assert.is(rows[1]!.effects[0]!.rows, alone.rows[0]!.effects[0]!.rows);
    }
    assert.equal(await context.sweep({ prompts, plans: [[half]], maxTokens: 2 }), expected);
  });
});

test("a value that is not finite is reported at its index in the text", async () => {
  await opened(writeDamaged, {}, async (context) => {
    for (const [rows, tokens, place] of [
      ["all", [damaged, 44, 45], 4],
      ["last", [44, 45, damaged], 6],
    ] as const) {
      await context.reset();
      await context.advance({ tokens: Int32Array.of(40, 41, 42, 43), layers: [0] });
      const second = context.advance({ tokens: Int32Array.from(tokens), layers: [0], rows });
      await rejects(second, "COMPUTE", new RegExp(`not finite at token ${place};`));
    }
  });
});

test("where the unchanged model says nothing finite, a sweep has no target for the changed one", async () => {
  // The head's first two rows overflow for every state but 0.
  const output = randomMatrix("output.weight", hidden * vocabulary);
  output.fill(3e38, 0, hidden).fill(-3e38, hidden, 2 * hidden);
  const write = (path: string) =>
    writeTinyModel(path, { tensors: [tensor("output.weight", [hidden, vocabulary], output)] });
  await opened(write, { maxSequences: 4 }, async (context) => {
    const [trial] = await context.sweep({
      ...{ prompts: [Int32Array.of(40, 41)], plans: [[{ layer: 1, scale: 0 }]], maxTokens: 2 },
    });
    assert.is(trial!.baseline.finite, false);
    assert.is(trial!.rows[0]!.finite, true);
    assert.equal([...trial!.rows[0]!.continuation].length, 2);
    assert.is(trial!.target, -1);
    assert.ok(Number.isNaN(trial!.rows[0]!.probability), `${trial!.rows[0]!.probability}`);
  });
});

test("with a sliding window, every site equals a separate forward pass", async () => {
  const metadata: Metadata = {
    "general.architecture": "gemma3",
    "general.file_type": 0,
    "gemma3.block_count": blocks,
    "gemma3.context_length": 2048,
    "gemma3.embedding_length": hidden,
    "gemma3.feed_forward_length": feedForward,
    "gemma3.attention.head_count": 1,
    "gemma3.attention.head_count_kv": 1,
    "gemma3.attention.key_length": head,
    "gemma3.attention.value_length": head,
    "gemma3.attention.sliding_window": 4,
    // The second block reads everything, or nothing of the beginning would reach the answer.
    "gemma3.attention.sliding_window_pattern": 2,
    "gemma3.attention.layer_norm_rms_epsilon": { f32: 1e-6 },
    "gemma3.rope.freq_base": { f32: 10_000 },
    ...byteTokenizer(vocabulary),
  };
  const tensors = [
    randomTensor("token_embd.weight", [hidden, vocabulary]),
    ones("output_norm.weight", hidden),
    ...everyBlock((blk) => [
      ...["attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"].map((name) =>
        ones(`${blk}.${name}.weight`, hidden),
      ),
      ones(`${blk}.attn_q_norm.weight`, head),
      ones(`${blk}.attn_k_norm.weight`, head),
      ...["attn_q", "attn_k", "attn_v"].map((name) => randomTensor(`${blk}.${name}.weight`, [hidden, head])),
      randomTensor(`${blk}.attn_output.weight`, [head, hidden]),
      randomTensor(`${blk}.ffn_gate.weight`, [hidden, feedForward]),
      randomTensor(`${blk}.ffn_up.weight`, [hidden, feedForward]),
      randomTensor(`${blk}.ffn_down.weight`, [feedForward, hidden]),
    ]),
  ];
  // Sites at 5 and 62 fill a first batch; those behind begin where a window reaches back to what came before them.
  const clean = Int32Array.from({ length: 200 }, (_, i) => 33 + ((i * 7) % 90));
  const corrupted = clean.map((token, i) => ([3, 60, 68, 73, 192].includes(i) ? token + 1 : token));
  const [layers, positions] = [
    [0, 1],
    [5, 62, 70, 75, 196, 199],
  ];
  await opened(
    (path) => writeGguf(path, metadata, tensors),
    { nCtx: patchCells(200, 400), nBatch: 400, maxSequences: 3 },
    async (context) => {
      const request = { clean, corrupted, layers, positions, target: 40, foil: 50 };
      const sweep = await context.patchSweep(request);
      await context.reset();
      const donor = await context.advance({ tokens: clean, layers });
      for (const [index, layer] of layers.entries()) {
        for (const [column, position] of positions.entries()) {
          if (layer === 1 && position < 199) continue; // nobody reads the last block's earlier rows
          const states = donor.layers[index]!.states!.data;
          const vector = states.slice(position * hidden, (position + 1) * hidden);
          const edits: Edit[] = [{ layer, positions: [[position, position]], scale: 0, vector }];
          const logits = await logitsOf(context, { tokens: corrupted, layers: [layer], edits });
          const expected = (logits[40] as number) - (logits[50] as number);
          const found = sweep.patched[index * positions.length + column] as number;
          assert.ok(Math.abs(found - expected) < 1e-4, `block ${layer}, ${position}: ${found}, ${expected}`);
        }
      }
    },
  );
});

/** A dictionary in a file whose encoder and decoder rows are all alike. */
function dictionaryOf(
  { row, bias, threshold = [] }: { row: Float32Array; bias: number[]; threshold?: number[] },
  more: Pick<DictionaryPlaces, "activation"> & Partial<DictionaryPlaces>,
): DictionaryPlaces {
  const rows = Float32Array.from(bias.flatMap(() => [...row]));
  const parts = [
    rows,
    Float32Array.from(bias),
    rows,
    new Float32Array(row.length),
    Float32Array.from(threshold),
  ];
  const path = join(folder, `dictionary-${more.activation}-${more.rowScaling}`);
  writeFileSync(path, Buffer.concat(parts.map((part) => new Uint8Array(part.buffer))));
  const places = parts.map((_, i) => parts.slice(0, i).reduce((sum, part) => sum + part.byteLength, 0));
  const [encoder = 0, encoderBias = 0, decoder = 0, decoderBias = 0, at = 0] = places;
  return {
    ...{ path, rowScaling: "none", subtractBias: true, hidden: row.length, features: bias.length, k: 0 },
    ...{ encoder, encoderBias, decoder, decoderBias, threshold: at },
    ...more,
  };
}

test("a dictionary's feature fires above its threshold, and of equals the first ones are kept", async () => {
  const row = new Float32Array(hidden);
  const above = 0.5 + 2 ** -24;
  const jumps = dictionaryOf(
    { row, bias: [0.5, above, 0.25], threshold: [0.5, 0.5, 0.5] },
    { activation: "jumprelu" },
  );
  const found = await encodeRows(jumps, new Float32Array(hidden));
  assert.equal([[...found.indices], [...found.values]], [[1], [Math.fround(above)]]);
  const equal = dictionaryOf({ row, bias: new Array(9).fill(1) }, { activation: "topk", k: 4 });
  const kept = await encodeRows(equal, new Float32Array(2 * hidden));
  assert.equal([...kept.indices], [0, 1, 2, 3, 0, 1, 2, 3]);
});

test("rows are scaled each by its own numbers, and what is decoded is scaled back by them", async () => {
  // Decoder rows of 1 and 2 at feature 0 and 1, a bias of 0, and rows whose deviation is small beside SAELens' epsilon.
  const row = Float32Array.from({ length: hidden }, (_, i) => (i < 4 ? 1 : 0));
  const small = Float32Array.from({ length: hidden }, (_, i) => 1 + (i % 2 === 0 ? 1e-4 : -1e-4));
  const wide = Float32Array.from({ length: hidden }, (_, i) => -3 + (i % 2 === 0 ? 2 : -2));
  const rows = Float32Array.of(...small, ...wide);
  const sparse = {
    pointers: Float64Array.of(0, 1, 2),
    indices: Int32Array.of(0, 1),
    values: Float32Array.of(0.5, 2),
  };
  const root = (square: number) => Math.sqrt(square);
  const expected = {
    none: [0.5, 2].map((value) => [0, value]),
    constant_norm: [
      [0, 0.5 * root(1 + 1e-8)],
      [0, 2 * root(9 + 4)],
    ],
    layer_norm: [
      [1, 1 + 0.5 * 1e-4 * root(hidden / (hidden - 1))],
      [-3, -3 + 2 * 2 * root(hidden / (hidden - 1))],
    ],
  };
  for (const [rowScaling, values] of Object.entries(expected)) {
    const dictionary = dictionaryOf(
      { row, bias: [0, 0] },
      { activation: "relu", rowScaling: rowScaling as DictionaryPlaces["rowScaling"] },
    );
    const decoded = await decodeRows(dictionary, sparse, rows);
    for (const [at, [without = 0, within = 0]] of values.entries()) {
      for (let i = 0; i < hidden; i++) {
        const wanted = i < 4 ? within : without;
        const found = decoded[at * hidden + i]!;
        assert.ok(
          Math.abs(found - wanted) < 2e-7 * Math.max(1, Math.abs(wanted)),
          `${rowScaling} ${at} ${i}: ${found}`,
        );
      }
    }
  }
});

test("numbers beyond what 16 bits hold are refused, the largest are kept", async () => {
  assert.equal([...(await narrow(Float32Array.of(65504, -65504), "f16"))], [0x7bff, 0xfbff]);
  assert.equal([...(await narrow(Float32Array.of(1, -2), "bf16"))], [0x3f80, 0xc000]);
  const told = async (value: number, type: "f16" | "bf16") =>
    String(await narrow(Float32Array.of(1, value), type).catch((error: Error) => error.message));
  for (const value of [70_000, Number.POSITIVE_INFINITY, Number.NaN])
    assert.match(await told(value, "f16"), /is beyond the range of F16, 65504\.$/);
  for (const value of [3.4e38, Number.NEGATIVE_INFINITY])
    assert.match(await told(value, "bf16"), /is beyond the range of BF16\.$/);
});

test("input that a dictionary cannot read is refused in a sentence", async () => {
  const row = new Float32Array(hidden);
  const layout = dictionaryOf({ row, bias: [1, 1, 1, 1] }, { activation: "topk", k: 4 });
  const rows = new Float32Array(2 * hidden);
  assert.equal([...(await encodeRows(layout, rows)).pointers], [0, 4, 8]);
  for (const k of [0, 5])
    await rejects(
      encodeRows({ ...layout, k }, rows),
      "INVALID_ARGUMENT",
      new RegExp(`k must be 1 to \\d+, got ${k}\\.`),
    );
  for (const at of [0, 2 * hidden - 1]) {
    const spoilt = rows.with(at, Number.NaN);
    await rejects(encodeRows(layout, spoilt), "COMPUTE", /^A row to encode is not finite\.$/);
  }
  // The file ends with its last number, and numbers begin at multiples of their size.
  const size = 4 * (2 * 4 * hidden + 4 + hidden);
  const end = size - 4 * hidden;
  assert.is((await encodeRows({ ...layout, decoderBias: end }, rows)).pointers.length, 3);
  for (const decoderBias of [end + 4, end - 2, -4, size + 4])
    await rejects(
      encodeRows({ ...layout, decoderBias }, rows),
      "INVALID_ARGUMENT",
      /do not lie in a file of/,
    );
  const sparse = { pointers: Float64Array.of(0, 1), indices: Int32Array.of(3), values: Float32Array.of(1) };
  assert.is((await decodeRows(layout, sparse, rows.slice(hidden))).length, hidden);
  for (const odd of [
    { pointers: Float64Array.of(1, 1) },
    { pointers: Float64Array.of(0, 2) },
    { indices: Int32Array.of(4) },
    { indices: Int32Array.of(-1) },
    { values: Float32Array.of(1, 2) },
  ]) {
    const reading = decodeRows(layout, { ...sparse, ...odd }, rows.slice(hidden));
    await rejects(reading, "INVALID_ARGUMENT", /./);
  }
});

test("a hold reads a feature as its dictionary does: ties, and the length that one unit adds", async () => {
  const vector = randomMatrix("direction", hidden);
  const none = new Float32Array(hidden);
  const equal = dictionaryOf({ row: none, bias: [1, 1, 1, 1] }, { activation: "topk", k: 2 });
  const scaled = dictionaryOf(
    { row: vector, bias: [0.5] },
    { activation: "relu", rowScaling: "constant_norm" },
  );
  await opened(
    (path) => writeTinyModel(path),
    {},
    async (context) => {
      const held = async (dictionary: DictionaryPlaces, index: number) => {
        const edit: Edit = { layer: 0, kind: "hold", vector, feature: { dictionary, index }, min: 3, max: 3 };
        await context.reset();
        const { layers, effects } = await context.advance({
          ...{ tokens: Int32Array.of(40, 41), layers: [0], rows: "last", edits: [edit] },
        });
        return { row: layers[0]!.states!.data, moved: effects![0]!.changeLength };
      };
      // The first two are kept and say 1, the others say nothing.
      for (const [index, activation] of [1, 1, 0, 0].entries()) {
        near((await held(equal, index)).moved, (3 - activation) * length(vector), `feature ${index}`, 1e-4);
      }
      const { row, moved } = await held(scaled, 0);
      const unit = length(row) / Math.sqrt(hidden);
      const activation = Math.max(
        0,
        row.reduce((sum, value, i) => sum + (value / unit) * vector[i]!, 0.5),
      );
      near(moved, Math.abs(3 - activation) * length(vector) * unit, "scaled", 1e-4);
      assert.ok(Math.abs(unit - 1) > 0.1, `a unit of ${unit} shows nothing`);
    },
  );
});

test.run();
