import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { type Context, Model } from "../../src/native/index.js";
import { randomMatrix, tensor, writeTinyModel } from "../inference/support/tiny-models.js";
import { apart, demo, layersOf, logitsOf, rejects, someTokens } from "./demo-model.js";

let model: Model;
let context: Context;
let tokens: Int32Array;
let layers: number[];
let width: number;
test.before(async () => {
  model = await Model.open(demo);
  context = await model.createContext({ threads: 1, nCtx: 256, maxSequences: 16 });
  tokens = await model.tokenize("The capital of France is Paris, and the capital of Japan is");
  layers = layersOf(model);
  width = model.info.nEmbd;
});
test.after(() => model.close());

async function states(ids: Int32Array, wanted: number[] = layers): Promise<Float32Array[]> {
  await context.reset();
  const result = await context.advance({ tokens: ids, layers: wanted });
  return result.layers.map((layer) => layer.states!.data);
}

test("shapes, order and norms", async () => {
  await context.reset();
  const result = await context.advance({
    tokens,
    layers: [3, 0, 5],
    lensTopK: 4,
    nextTopK: 7,
    logits: true,
  });
  assert.equal(
    result.layers.map(({ layer }) => layer),
    [3, 0, 5],
  );
  for (const { layer, states: matrix, norms, lens } of result.layers) {
    assert.equal(matrix!.shape, [tokens.length, width]);
    const [alone] = await states(tokens, [layer]);
    assert.equal(matrix!.data, alone);
    assert.is(norms.length, tokens.length);
    assert.is(lens!.k, 4);
    assert.is(lens!.tokenIds.length, tokens.length * 4);
    for (let row = 0; row < tokens.length; ++row) {
      const values = matrix!.data.subarray(row * width, (row + 1) * width);
      assert.ok(Math.abs(Math.hypot(...values) / norms[row]! - 1) < 1e-5);
      const probabilities = lens!.probabilities.subarray(row * 4, row * 4 + 4);
      assert.equal(
        Array.from(probabilities),
        Array.from(probabilities).sort((a, b) => b - a),
      );
    }
  }
  assert.is(result.next!.tokenIds.length, 7);
  assert.is(result.logits!.length, model.info.nVocab);
  const best = result.logits!.indexOf(Math.max(...result.logits!));
  assert.is(result.next!.tokenIds[0], best);
});

test("a token's rank in the lens counts the whole vocabulary", async () => {
  const last = model.info.nLayer - 1;
  const targets = [0, 7, 300, model.info.nVocab - 1];
  for (const lensTarget of targets) {
    await context.reset();
    const { layers, logits } = await context.advance({
      tokens,
      layers: [1, last],
      lensTopK: 2,
      lensTarget,
      nextTopK: 1,
      logits: true,
    });
    // The lens of the last block's last row is the model's own prediction, whose logits are counted here.
    const all = Array.from(logits!);
    const own = all[lensTarget]!;
    const rank = 1 + all.filter((logit, id) => logit > own || (logit === own && id < lensTarget)).length;
    const highest = Math.max(...all);
    const share = Math.exp(own - highest) / all.reduce((sum, logit) => sum + Math.exp(logit - highest), 0);
    const { targetRanks, targetProbabilities } = layers[1]!.lens!;
    assert.is(targetRanks!.length, tokens.length);
    assert.is(targetRanks!.at(-1), rank, `token ${lensTarget}`);
    assert.ok(Math.abs(targetProbabilities!.at(-1)! / share - 1) < 1e-4, `token ${lensTarget}`);
    // In every cell the place agrees with the candidates that are listed.
    for (const { lens } of layers) {
      for (const [row, place] of lens!.targetRanks!.entries()) {
        const listed = lens!.tokenIds.subarray(row * 2, row * 2 + 2).indexOf(lensTarget);
        assert.ok(listed < 0 ? place > 2 : place === listed + 1);
      }
    }
  }
  await context.reset();
  const answer = await context.advance({
    tokens,
    layers: [last],
    lensTopK: 1,
    lensAnswer: true,
    nextTopK: 1,
  });
  assert.equal([...answer.layers[0]!.lens!.targetRanks!], [...new Array(tokens.length - 1).fill(0), 1]);
  assert.is(
    answer.layers[0]!.lens!.targetProbabilities!.at(-1),
    answer.layers[0]!.lens!.probabilities.at(-1),
  );
  await context.reset();
  const without = await context.advance({ tokens, layers: [last], lensTopK: 1, nextTopK: 1 });
  assert.is(without.layers[0]!.lens!.targetRanks, undefined);
  await context.reset();
  try {
    await context.advance({ tokens, layers: [0], lensTopK: 1, lensTarget: model.info.nVocab });
    assert.unreachable();
  } catch (error) {
    assert.match(
      (error as Error).message,
      `target ${model.info.nVocab} is outside the vocabulary of ${model.info.nVocab} tokens`,
    );
  }
});

test("the lens of many rows over a large vocabulary is that of each row", async () => {
  // 100,000 tokens: 64 MiB of logits are those of 167 rows.
  const [hidden, vocabulary, rows] = [32, 100_000, 170];
  const folder = mkdtempSync(join(tmpdir(), "tapline-lens-"));
  const path = join(folder, "large.gguf");
  const embeddings = randomMatrix("token_embd.weight", hidden * vocabulary);
  await writeTinyModel(path, {
    metadata: byteTokenizer(vocabulary),
    tensors: [tensor("token_embd.weight", [hidden, vocabulary], embeddings)],
  });
  const large = await Model.open(path);
  const own = await large.createContext({ nCtx: 512, threads: 1 });
  const text = Int32Array.from({ length: rows }, (_, place) => (place * 7919) % vocabulary);
  const options = { tokens: text, layers: [1], lensTopK: 1, nextTopK: 1, lensAnswer: true } as const;
  const { layers, next } = await own.advance({ ...options, rows: "all" });
  const { lens } = layers[0]!;
  // The lens of the last block's last row is the model's own answer.
  assert.is(lens!.tokenIds.at(-1), next!.tokenIds[0]);
  assert.equal([...lens!.targetRanks!], [...new Array(rows - 1).fill(0), 1]);
  assert.ok(Math.abs(lens!.targetProbabilities!.at(-1)! - next!.probabilities[0]!) < 1e-6);
  for (const place of [166, 167, 168]) {
    await own.reset();
    const alone = await own.advance({ ...options, tokens: text.subarray(0, place + 1), rows: "last" });
    assert.is(lens!.tokenIds[place], alone.layers[0]!.lens!.tokenIds[0], `row ${place}`);
  }
  await large.close();
  rmSync(folder, { recursive: true, force: true });
});

test("logits are the same bits with capture on and off", async () => {
  const plain = await logitsOf(context, { tokens, layers: [] });
  assert.equal(await logitsOf(context, { tokens, layers, rows: "last" }), plain);
  assert.equal(await logitsOf(context, { tokens, layers: [2], keepStates: false, lensTopK: 3 }), plain);
});

test("logits are the same bits with every row of every block captured, in whatever chunk", async () => {
  const last = layers.at(-1)!;
  for (let seed = 1; seed <= 20; ++seed) {
    const text = someTokens(2 + (seed % 30), model.info.nVocab, seed);
    const plain = await logitsOf(context, { tokens: text, layers: [] });
    assert.equal(await logitsOf(context, { tokens: text, layers }), plain, `prompt ${seed}`);
    assert.equal(await logitsOf(context, { tokens: text, layers: [last], lensTopK: 3 }), plain);
    // The second of three chunks, and what is said behind the third.
    const chunked = async (captured: number[]) => {
      await context.reset();
      await context.advance({ tokens: tokens.slice(0, 3), layers: [] });
      const second = await context.advance({ tokens: text, layers: captured, logits: true });
      const third = await context.advance({ tokens: tokens.slice(3), layers: [], logits: true });
      return [second.logits, third.logits];
    };
    assert.equal(await chunked(layers), await chunked([]), `chunk ${seed}`);
  }
});

test("the rows of the last block are its last rows where the text ends there", async () => {
  await context.reset();
  const last = layers.at(-1)!;
  const edits = [{ layer: 0, positions: [[2, 2]] as const, scale: 0.5 }];
  const all = await context.advance({ tokens, layers: [0, last], edits, nextTopK: 1 });
  for (let end = 3; end <= tokens.length; ++end) {
    await context.reset();
    const request = { tokens: tokens.slice(0, end), layers: [0, last], rows: "last" as const, edits };
    const { layers: captured } = await context.advance(request);
    const row = all.layers[1]!.states!.data.subarray((end - 1) * width, end * width);
    assert.ok(apart(captured[1]!.states!.data, row) < 5e-3, `token ${end - 1}`);
    assert.ok(Math.abs(captured[1]!.norms[0]! / all.layers[1]!.norms[end - 1]! - 1) < 5e-3);
  }
});

test("a second pass for the last block's other rows leaves the answering row's bits, and counts no edit twice", async () => {
  const last = layers.at(-1)!;
  for (let seed = 1; seed <= 30; ++seed) {
    const ids = someTokens(12, model.info.nVocab, seed);
    const edits = [{ layer: 0, positions: "all" as const, scale: 0.9 }];
    const run = async (rows: "all" | "last") => {
      await context.reset();
      return context.advance({ tokens: ids, layers: [0, last], rows, edits, logits: true });
    };
    const [all, alone] = [await run("all"), await run("last")];
    const row = all.layers[1]!.states!.data.slice(-width);
    assert.ok(
      Buffer.from(row.buffer).equals(Buffer.from(alone.layers[1]!.states!.data.slice().buffer)),
      `${seed}`,
    );
    assert.equal([all.effects![0]!.rows, alone.effects![0]!.rows], [12, 12]);
  }
});

test("the last row alone is the last of all rows", async () => {
  const all = await states(tokens);
  await context.reset();
  const last = await context.advance({ tokens, layers, rows: "last" });
  last.layers.forEach(({ states: matrix, norms }, i) => {
    assert.equal(matrix!.shape, [1, width]);
    assert.is(norms.length, 1);
    assert.ok(apart(matrix!.data, all[i]!.subarray(-width)) < 1e-5);
  });
});

test("without states there are norms and lens only", async () => {
  await context.reset();
  const { layers: captured } = await context.advance({ tokens, layers: [1], keepStates: false, lensTopK: 2 });
  assert.is(captured[0]?.states, undefined);
  assert.is(captured[0]?.norms.length, tokens.length);
  assert.is(captured[0]?.lens?.k, 2);
});

test("chunks give what one pass gives", async () => {
  const whole = await states(tokens);
  const plain = await logitsOf(context, { tokens, layers: [] });
  for (const sizes of [[1, 2, 3], [7], Array(tokens.length - 1).fill(1) as number[]]) {
    await context.reset();
    let first = 0;
    for (const size of [...sizes, tokens.length - sizes.reduce((a, b) => a + b, 0)]) {
      const last = first + size === tokens.length;
      const part = await context.advance({ tokens: tokens.slice(first, first + size), layers, logits: last });
      part.layers.forEach(({ states: matrix, norms }, i) => {
        const expected = whole[i]!.subarray(first * width, (first + size) * width);
        assert.ok(apart(matrix!.data, expected) < 5e-3, `block ${i}, token ${first}`);
        assert.is(norms.length, size);
        norms.forEach((norm, row) => {
          const length = Math.hypot(...matrix!.data.subarray(row * width, (row + 1) * width));
          assert.ok(Math.abs(norm / length - 1) < 1e-5, `block ${i}, token ${first + row}`);
        });
      });
      if (part.logits) assert.ok(apart(part.logits, plain) < 5e-3);
      first += size;
    }
  }
});

test("early exit captures the same", async () => {
  const whole = await states(tokens);
  await context.reset();
  const { layers: captured } = await context.advance({ tokens, layers: [0, 3], earlyExit: true });
  assert.equal(captured[0]!.states!.data, whole[0]);
  assert.equal(captured[1]!.states!.data, whole[3]);
  // What is behind block 3 was computed for none of these tokens.
  await context.advance({ tokens: Int32Array.of(300), layers: [3], earlyExit: true });
  for (const deeper of [{ layers: [4], earlyExit: true }, { layers: [] }]) {
    const further = context.advance({ tokens: Int32Array.of(300), ...deeper });
    await rejects(further, "INVALID_ARGUMENT", /up to block 3; reset before going deeper/);
  }
  await context.reset();
  assert.is((await context.advance({ tokens, layers: [4], earlyExit: true })).layers.length, 1);
});

test("an edit is h' = scale * h + vector", async () => {
  const whole = await states(tokens);
  const position = tokens.length - 1;
  const positions = [[position, position]] as const;
  const vector = Float32Array.from({ length: width }, (_, i) => Math.cos(i));
  const last = layers.at(-1)!;
  for (const layer of layers) {
    const row = whole[layer]!.subarray(position * width, (position + 1) * width);
    const wanted = row.map((value, i) => Math.fround(0.3 * value) + vector[i]!);
    // The same row reached in two ways: as an affine change, and by putting it in the row's place.
    const changed = await logitsOf(context, {
      tokens,
      layers: [layer],
      rows: "last",
      edits: [{ layer, positions, scale: 0.3, vector }],
    });
    const replaced = await logitsOf(context, {
      tokens,
      layers: [layer],
      rows: "last",
      edits: [{ layer, positions, scale: 0, vector: wanted }],
    });
    assert.ok(apart(changed, replaced) < 5e-3, `block ${layer}`);
    const everyRow = await logitsOf(context, {
      tokens,
      layers: [...new Set([layer, last])],
      edits: [{ layer, positions, scale: 0.3, vector }],
    });
    assert.ok(apart(changed, everyRow) < 5e-3, `block ${layer}, all rows captured`);
    const plain = await logitsOf(context, { tokens, layers: [] });
    assert.ok(apart(changed, plain) > 1e-2, `block ${layer} has no effect`);
  }
});

test("several edits of one row apply in order, and capture shows the row before them", async () => {
  const whole = await states(tokens);
  const position = 4;
  const positions = [[position, position]] as const;
  const vector = new Float32Array(width).fill(0.5);
  await context.reset();
  const { layers: captured } = await context.advance({
    tokens,
    layers: [1, 2],
    edits: [
      { layer: 1, positions, vector },
      { layer: 1, positions, scale: 0 },
    ],
  });
  assert.equal(captured[0]!.states!.data, whole[1]);
  const after = await logitsOf(context, { tokens, layers: [1], edits: [{ layer: 1, positions, scale: 0 }] });
  const ordered = await logitsOf(context, {
    tokens,
    layers: [1],
    edits: [
      { layer: 1, positions, vector },
      { layer: 1, positions, scale: 0 },
    ],
  });
  assert.equal(ordered, after);
  // Rows of earlier tokens do not see the edit.
  assert.equal(
    captured[1]!.states!.data.subarray(0, position * width),
    whole[2]!.subarray(0, position * width),
  );
});

test("writing the same values back changes no bit", async () => {
  const plain = await logitsOf(context, { tokens, layers: [] });
  for (const layer of layers) {
    const edits = [{ layer, scale: 1 }];
    assert.equal(await logitsOf(context, { tokens, layers: [layer], rows: "last", edits }), plain);
  }
});

test("packed features are those of each sequence alone", async () => {
  const { nVocab } = model.info;
  const sequences = [9, 1, 30, 4, 4, 17, 2].flatMap((n, i) => [
    someTokens(n, nVocab, i + 1),
    someTokens(n + 3, nVocab, i + 50),
  ]);
  const features = await context.features({ sequences, layers: [5, 0] });
  assert.equal([...features.keys()], [5, 0]);
  for (const layer of [0, 5]) {
    const matrix = features.get(layer)!;
    assert.equal(matrix.shape, [sequences.length, width]);
    for (const [i, sequence] of sequences.entries()) {
      const alone = (await states(sequence, [layer]))[0]!.subarray(-width);
      assert.ok(apart(matrix.data.subarray(i * width, (i + 1) * width), alone) < 5e-3);
    }
  }
});

test("rows of all tokens start at each text's given token", async () => {
  const sequences = [2, 3, 7].map((length) => someTokens(length, model.info.nVocab));
  const starts = Int32Array.of(0, 2, 5);
  const request = { sequences, layers: [3], rows: "all", starts } as const;
  const rows = (await context.features(request)).get(3)!;
  assert.equal(rows.shape, [2 + 1 + 2, width]);
  let first = 0;
  for (const [i, sequence] of sequences.entries()) {
    const alone = (await states(sequence, [3]))[0]!.subarray(starts[i]! * width);
    assert.ok(apart(rows.data.subarray(first, first + alone.length), alone) < 5e-3, `text ${i}`);
    first += alone.length;
  }
  await rejects(
    context.features({ ...request, starts: Int32Array.of(0, 3, 0) }),
    "INVALID_ARGUMENT",
    /The start of sequence 1 must be 0 to 2, got 3/,
  );
});

test("a mean starts at each text's given token", async () => {
  const sequences = [2, 3, 7].map((length) => someTokens(length, model.info.nVocab));
  const features = await context.features({
    sequences,
    layers: [3],
    rows: "mean",
    starts: Int32Array.of(0, 2, 5),
  });
  const means = features.get(3)!.data;
  for (const [i, sequence] of sequences.entries()) {
    const [rows] = await states(sequence, [3]);
    const from = [0, 2, 5][i]!;
    const mean = Float32Array.from({ length: width }, (_, k) => {
      let sum = 0;
      for (let row = from; row < sequence.length; row++) sum += rows![row * width + k]!;
      return sum / (sequence.length - from);
    });
    assert.ok(apart(means.subarray(i * width, (i + 1) * width), mean) < 5e-3, `${sequence.length} tokens`);
  }
  const wrong = (starts: Int32Array) => context.features({ sequences, layers: [3], rows: "mean", starts });
  await rejects(
    wrong(Int32Array.of(0, 3, 0)),
    "INVALID_ARGUMENT",
    /^The start of sequence 1 must be 0 to 2, got 3\.$/,
  );
  await rejects(
    wrong(Int32Array.of(0, 0)),
    "INVALID_ARGUMENT",
    /starts must have 3 entries, one per sequence, got 2/,
  );
});

test("results are copies: a later pass does not change them", async () => {
  const [first] = await states(tokens, [2]);
  const kept = first!.slice();
  await states(someTokens(20, model.info.nVocab), [2]);
  assert.equal(first, kept);
  first!.fill(0);
  assert.equal((await states(tokens, [2]))[0], kept);
});

test("token ids are copied before the call returns", async () => {
  const ids = tokens.slice();
  const expected = await states(tokens, [3]);
  await context.reset();
  const running = context.advance({ tokens: ids, layers: [3] });
  await Promise.resolve();
  await Promise.resolve();
  ids.fill(1);
  assert.equal((await running).layers[0]!.states!.data, expected[0]);
});

test("two contexts of one model do not see each other", async () => {
  const other = await model.createContext({ threads: 1, nCtx: 64 });
  const alone = await logitsOf(context, { tokens, layers: [] });
  await context.reset();
  await context.advance({ tokens: tokens.slice(0, 5), layers: [] });
  await Promise.all([
    other.advance({ tokens: someTokens(40, model.info.nVocab), layers: [0] }),
    context.advance({ tokens: tokens.slice(5, 8), layers: [] }),
  ]);
  const { logits } = await context.advance({ tokens: tokens.slice(8), layers: [], logits: true });
  assert.ok(apart(logits!, alone) < 5e-3);
  await other.close();
});

test.run();
