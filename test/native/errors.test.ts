import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, Model, nativeErrorCodes } from "../../src/native/index.js";
import { demo, layersOf, rejects, scratch, someTokens } from "./demo-model.js";

const folder = scratch();
let model: Model;
let context: Context;
test.before(async () => {
  model = await Model.open(demo);
  context = await model.createContext({ threads: 1, nCtx: 64, maxSequences: 4 });
});
test.after(() => model.close());

function file(name: string, bytes: Buffer | string): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

test("a missing model, a folder and an empty path", async () => {
  await rejects(Model.open(join(folder, "nothing.gguf")), "MODEL_LOAD", /nothing\.gguf/);
  mkdirSync(join(folder, "folder.gguf"));
  await rejects(Model.open(join(folder, "folder.gguf")), "MODEL_LOAD", /folder\.gguf/);
  for (const path of ["", "a\0b", 7, undefined, {}]) {
    await rejects(Model.open(path as string), "INVALID_ARGUMENT", /path/);
  }
});

test("truncated and invalid GGUF files are refused", async () => {
  const whole = readFileSync(demo);
  const cuts = [0, 3, 4, 12, 100, 5000, whole.length >> 1, whole.length - 1];
  for (const length of cuts) {
    const name = `cut-${length}.gguf`;
    await rejects(Model.open(file(name, whole.subarray(0, length))), "MODEL_LOAD", new RegExp(name));
    await rejects(Model.open(join(folder, name), { mmap: false }), "MODEL_LOAD", new RegExp(name));
  }
  await rejects(Model.open(file("text.gguf", "not a model\n".repeat(400))), "MODEL_LOAD", /text\.gguf/);
  await rejects(Model.open(file("zeros.gguf", Buffer.alloc(1 << 16))), "MODEL_LOAD", /zeros\.gguf/);
  const version = Buffer.from(whole);
  version.writeUInt32LE(99, 4);
  await rejects(Model.open(file("version.gguf", version)), "MODEL_LOAD", /version\.gguf/);
  const counts = Buffer.from(whole);
  counts.writeBigUInt64LE(2n ** 60n, 8);
  await rejects(Model.open(file("counts.gguf", counts)), "MODEL_LOAD", /counts\.gguf/);
});

test("an unknown architecture", async () => {
  const whole = readFileSync(demo);
  const other = Buffer.from(whole);
  const at = other.indexOf("qwen3");
  other.write("qwenX", at);
  await rejects(Model.open(file("other.gguf", other)), "MODEL_LOAD", /other\.gguf.*qwenX/);
  // llama.cpp's name of the function is left out.
  const told = await Model.open(join(folder, "other.gguf")).catch(String);
  assert.not.match(String(told), /llama_\w+:/);
});

test("numbers that 32 bits or an index do not hold", async () => {
  const tokens = someTokens(3, model.info.nVocab);
  const wrong: Array<[layers: unknown[], says: RegExp]> = [
    [[1.5], /layer must be an integer .* got 1\.5/],
    [["0"], /layer must be an integer .* got "0"/],
    [[undefined], /layer must be an integer/],
    [[2 ** 32], /layer must be an integer .* got 4294967296/],
  ];
  for (const [layers, says] of wrong) {
    await rejects(context.advance({ tokens, layers: layers as number[] }), "INVALID_ARGUMENT", says);
    await rejects(
      context.features({ sequences: [tokens], layers: layers as number[] }),
      "INVALID_ARGUMENT",
      says,
    );
  }
  await rejects(
    context.sweep({ prompts: [tokens], plans: [], maxTokens: 1e12 }),
    "INVALID_ARGUMENT",
    /maxTokens must be an integer .* got 1000000000000/,
  );
  for (const gpuLayers of [1.5, -2, 1e10]) {
    await rejects(Model.open(demo, { gpuLayers }), "INVALID_ARGUMENT", /gpuLayers must be an integer/);
  }
});

test("a model opens from a path that is not ASCII", async () => {
  const path = join(folder, "модель 模型 ü.gguf");
  copyFileSync(demo, path);
  const copy = await Model.open(path);
  assert.is(copy.info.path, path);
  await copy.close();
});

test("layers that do not exist, or twice", async () => {
  const tokens = someTokens(3, model.info.nVocab);
  const last = model.info.nLayer - 1;
  for (const layer of [-1, last + 1, 2 ** 31 - 1]) {
    const says = new RegExp(`${layer}.* 0 to ${last}\\.`);
    await rejects(context.advance({ tokens, layers: [0, layer] }), "LAYER_OUT_OF_RANGE", says);
    await rejects(context.features({ sequences: [tokens], layers: [layer] }), "LAYER_OUT_OF_RANGE", says);
  }
  await rejects(context.advance({ tokens, layers: [1, 1] }), "INVALID_ARGUMENT", /twice/);
  await rejects(
    context.features({ sequences: [tokens], layers: [] }),
    "INVALID_ARGUMENT",
    /^At least one layer is needed\.$/,
  );
});

test("too many tokens, zero tokens, and ids outside the vocabulary", async () => {
  const { nVocab } = model.info;
  const { nBatch, nCtx } = context;
  const layers = [0];
  const tooMany = someTokens(nBatch + 1, nVocab);
  const counts = new RegExp(`${nBatch}.*${nBatch + 1}`);
  await rejects(context.advance({ tokens: tooMany, layers }), "TOKEN_LIMIT", counts);
  const sequences = [someTokens(2, nVocab), tooMany];
  await rejects(
    context.features({ sequences, layers }),
    "TOKEN_LIMIT",
    /^A sequence may have at most 64 tokens; sequence 1 has 65\.$/,
  );
  await rejects(
    context.advance({ tokens: new Int32Array(), layers }),
    "INVALID_ARGUMENT",
    /^At least one token is needed\.$/,
  );
  await rejects(context.advance({ tokens: Int32Array.of(nVocab), layers }), "INVALID_ARGUMENT", /vocabulary/);
  await rejects(context.advance({ tokens: [1] as never, layers }), "INVALID_ARGUMENT", /Int32Array/);

  await context.reset();
  let past = 0;
  for (let left = nCtx - 3; left > 0; left -= nBatch) {
    const tokens = someTokens(Math.min(left, nBatch), nVocab);
    await context.advance({ tokens, layers });
    past += tokens.length;
  }
  const full = new RegExp(`${nCtx} tokens; it has ${past}, and 4 more`);
  await rejects(context.advance({ tokens: someTokens(4, nVocab), layers }), "TOKEN_LIMIT", full);
  await context.advance({ tokens: someTokens(3, nVocab), layers });
  await context.reset();
});

test("edits that fit nothing", async () => {
  const tokens = someTokens(3, model.info.nVocab);
  const layers = [1];
  const edit = (fields: object) => context.advance({ tokens, layers, edits: [fields as never] });
  await rejects(edit({ layer: model.info.nLayer }), "LAYER_OUT_OF_RANGE", /does not exist|has layers/);
  const vector = new Float32Array(model.info.nEmbd - 1);
  const widths = new RegExp(`has ${model.info.nEmbd - 1} values; the hidden size is ${model.info.nEmbd}\\.`);
  await rejects(edit({ layer: 1, vector }), "INVALID_ARGUMENT", widths);
  for (const [fields, words] of [
    [{ layer: 1, position: 0 }, /no field "position"/],
    [{ layer: 1.5 }, /layer must be an index, got 1\.5/],
    [{ layer: "1" }, /layer must be an index, got "1"/],
    [{ layer: 1, vector: [1, 2] }, /must be a Float32Array/],
    [{ layer: 1, kind: "erase" }, /kind must be affine, project_out, clamp, hold, got "erase"/],
    [{ layer: 1, unit: "metre" }, /unit must be unit, vector, row_norm, got "metre"/],
    [{ layer: 1, strength: Number.NaN }, /strength must be a finite number/],
    [{ layer: 1, scale: 1e39 }, /scale must be a finite number/],
    [{ layer: 1, kind: "clamp", max: 1 }, /clamp needs a vector/],
    [{ layer: 1, kind: "project_out" }, /project_out needs a vector/],
    [{ layer: 1, min: 2, max: 1 }, /min must not exceed its max, got 2 and 1/],
    [{ layer: 1, positions: "first" }, /positions must be last, all, prompt, generated or ranges/],
    [{ layer: 1, positions: [] }, /positions must be/],
    [{ layer: 1, positions: [[0]] }, /a first and a last token index/],
    [{ layer: 1, positions: [[0, 1.5]] }, /a first and a last token index/],
  ] as const) {
    await rejects(edit(fields), "INVALID_ARGUMENT", words);
  }
  await rejects(context.advance({ tokens, layers, edits: {} as never }), "INVALID_ARGUMENT", /an array/);
});

test("contexts of impossible sizes", async () => {
  for (const options of [{ nCtx: 0 }, { nCtx: 1.5 }, { nCtx: Number.NaN }, { nCtx: 2 ** 21 }, { nCtx: -1 }]) {
    await rejects(model.createContext(options), "INVALID_ARGUMENT", /nCtx/);
  }
  await rejects(model.createContext({ threads: 0 }), "INVALID_ARGUMENT", /threads/);
  await rejects(model.createContext({ maxSequences: 1000 }), "INVALID_ARGUMENT", /maxSequences/);
  await rejects(model.createContext({ nBatch: -3 }), "INVALID_ARGUMENT", /nBatch/);
});

test("a deeper request after an early exit is refused until reset", async () => {
  const tokens = someTokens(6, model.info.nVocab);
  const last = model.info.nLayer - 1;
  await context.reset();
  await context.advance({ tokens, layers: [0, 2], earlyExit: true });
  await rejects(context.advance({ tokens, layers: [3] }), "INVALID_ARGUMENT", /up to block 2;/);
  await rejects(context.advance({ tokens, layers: [0], logits: true }), "INVALID_ARGUMENT", /reset/);
  const [first] = (await context.advance({ tokens, layers: [2], earlyExit: true })).layers;
  assert.is(first?.layer, 2);
  await context.reset();
  await context.advance({ tokens, layers: layersOf(model), logits: true });
  await context.advance({ tokens, layers: [last], logits: true });
});

test("cancelling before, and in the middle", async () => {
  const { nVocab } = model.info;
  const gone = AbortSignal.abort();
  await rejects(Model.open(demo, { signal: gone }), "CANCELLED");
  await rejects(context.advance({ tokens: someTokens(3, nVocab), layers: [0], signal: gone }), "CANCELLED");

  const sequences = Array.from({ length: 20_000 }, (_, i) => someTokens(16, nVocab, i + 1));
  const abort = new AbortController();
  let reported = 0;
  const running = context.features({
    sequences,
    layers: [0],
    signal: abort.signal,
    onProgress: (done, total) => {
      reported = done;
      assert.is(total, sequences.length);
      abort.abort();
    },
  });
  await rejects(running, "CANCELLED");
  assert.ok(reported > 0 && reported < sequences.length, `${reported} were done`);
  // The context works on normally.
  const sequence = sequences.slice(0, 3);
  assert.is((await context.features({ sequences: sequence, layers: [1] })).get(1)?.shape[0], 3);
});

test("everything is refused once closed", async () => {
  const other = await Model.open(demo);
  const own = await other.createContext({ threads: 1, nCtx: 32 });
  const tokens = someTokens(3, other.info.nVocab);
  await own.close();
  for (const call of [
    () => own.advance({ tokens, layers: [0] }),
    () => own.features({ sequences: [tokens], layers: [0] }),
    () => own.reset(),
  ]) {
    await rejects(call(), "CLOSED", /context/);
  }
  await other.close();
  for (const call of [
    () => other.tokenize("x"),
    () => other.pieces(tokens),
    () => other.detokenize(tokens),
    () => other.createContext(),
  ]) {
    await rejects(call(), "CLOSED", /model/);
  }
  assert.is(new Set(nativeErrorCodes).size, 10);
});

test.run();
