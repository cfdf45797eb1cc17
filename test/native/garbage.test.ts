import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { addonInUse, backendInfo, Model } from "../../src/native/index.js";
import { nothingIsLeft } from "../support/alive.js";
import { demo } from "./demo-model.js";

// The addon itself, without the TypeScript in front of it: whatever it is given, the process survives, and every
// promise settles.
backendInfo();
type Anything = Record<string, (...args: unknown[]) => unknown>;
const raw = createRequire(import.meta.url)(addonInUse().path) as Anything;

function detached(): Int32Array {
  const array = new Int32Array(8);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error("no such luck");
    },
  },
);

function garbage(): unknown[] {
  const token = raw.CancelToken as unknown as new () => object;
  return [
    undefined,
    null,
    true,
    0,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 31,
    2 ** 53,
    -(2 ** 40),
    "",
    "text",
    "\uD800",
    Symbol("s"),
    10n,
    [],
    [1, 2, 3],
    [null, [], {}, "x"],
    {},
    () => {},
    new Int32Array(3),
    new Int32Array(0),
    Int32Array.of(-1, 2 ** 31 - 1),
    new Float32Array(5),
    new Uint8Array(3),
    new BigInt64Array(2),
    new DataView(new ArrayBuffer(8)),
    new ArrayBuffer(16),
    new Int32Array(new SharedArrayBuffer(16)),
    detached(),
    new Date(),
    new Map(),
    hostile,
    Object.create(token.prototype),
    new token(),
  ];
}

/** Calls it; a synchronous throw is as good an answer as a rejection. */
async function survive(call: () => unknown): Promise<unknown> {
  try {
    const value = await call();
    return value;
  } catch (error) {
    assert.ok(error !== undefined);
    return undefined;
  }
}

interface Closable {
  close(): Promise<void>;
}

async function closeAny(value: unknown): Promise<void> {
  if (typeof (value as Closable | undefined)?.close === "function") await (value as Closable).close();
}

async function openModel(): Promise<Anything & Closable> {
  return (await raw.openModel!({ path: demo })) as Anything & Closable;
}

/** Takes its time to measure, whatever it is given. */
const slow = "productRate";
/** Is for the end of the process. */
const last = "endOperations";

test("every export takes any arguments", async () => {
  for (const name of Object.keys(raw).filter((each) => each !== last)) {
    for (const value of name === slow ? [undefined, hostile] : garbage()) {
      for (const args of [[value], [value, value], [{}, value], []]) {
        await survive(async () => closeAny(await raw[name]!(...args)));
        await survive(() => Reflect.construct(raw[name] as never, args));
      }
    }
  }
});

test("every field of every request takes anything", async () => {
  const model = await openModel();
  for (const value of garbage()) {
    for (const field of ["path", "gpuLayers", "mmap", "onProgress", "cancel"]) {
      await survive(async () => closeAny(await raw.openModel!({ path: demo, [field]: value })));
    }
    for (const field of ["nCtx", "nBatch", "maxSequences", "threads"]) {
      await survive(async () =>
        closeAny(await model.createContext!({ nCtx: 64, threads: 1, [field]: value })),
      );
    }
    for (const name of ["tokenize", "pieces", "detokenize"]) {
      await survive(() => model[name]!(value, value, value));
    }
  }
  const context = (await model.createContext!({ nCtx: 64, maxSequences: 4, threads: 1 })) as Anything &
    Closable;
  const edit = {
    layer: 1,
    kind: "clamp",
    scale: 1,
    strength: 1,
    unit: "unit",
    vector: new Float32Array(128),
    min: 0,
    max: 1,
    positions: { prompt: true, generated: true, ranges: Int32Array.of(0, 1) },
  };
  const advance = {
    tokens: Int32Array.of(1, 2, 3),
    layers: [0, 1],
    allRows: true,
    keepStates: true,
    lensTopK: 2,
    nextTopK: 2,
    logits: true,
    earlyExit: false,
    edits: [edit],
    cancel: undefined,
  };
  const features = {
    sequences: [Int32Array.of(1, 2)],
    layers: [1],
    rows: "all",
    starts: Int32Array.of(1),
    onProgress: undefined,
    cancel: undefined,
  };
  const sweep = {
    prompts: [Int32Array.of(1, 2)],
    plans: [[edit]],
    targets: Int32Array.of(3),
    maxTokens: 2,
    onProgress: undefined,
    cancel: undefined,
  };
  const patchSweep = {
    clean: Int32Array.of(1, 2),
    corrupted: Int32Array.of(1, 3),
    denoise: true,
    layers: [1],
    positions: [1],
    target: 4,
    foil: 5,
    controls: new Float32Array(128).fill(1),
    onProgress: undefined,
    cancel: undefined,
  };
  const lensLogits = { rows: new Float32Array(128) };
  const translator = { path: "none", half: true, matrix: 8, bias: 8, residual: true };
  const place = { states: new Float32Array(128), translator: undefined };
  const readLens = {
    places: [place],
    output: new Float32Array(128),
    top: 2,
    targets: Int32Array.of(3),
    entropy: true,
    cancel: undefined,
  };
  const explain = {
    before: Int32Array.of(1, 2),
    after: Int32Array.of(3),
    fillings: [{ row: new Float32Array(128) }, { token: 4 }, {}],
    maxTokens: 2,
    samples: 2,
    temperature: 1,
    draws: new Float64Array(4).fill(0.5),
    logits: true,
    onProgress: undefined,
    cancel: undefined,
  };
  for (const value of garbage()) {
    const requests = { advance, features, sweep, patchSweep, explain, lensLogits, readLens };
    for (const [name, request] of Object.entries(requests)) {
      await survive(() => context[name]!(value));
      for (const field of Object.keys(request)) {
        await survive(() => context.reset!());
        await survive(() => context[name]!({ ...request, [field]: value }));
        await survive(() => context[name]!({ ...request, [field]: [value] }));
      }
    }
    for (const field of ["row", "token"]) {
      await survive(() => context.explain!({ ...explain, fillings: [{ [field]: value }] }));
    }
    for (const field of Object.keys(place)) {
      await survive(() => context.readLens!({ ...readLens, places: [{ ...place, [field]: value }] }));
    }
    for (const field of Object.keys(translator)) {
      const odd = { ...place, translator: { ...translator, [field]: value } };
      await survive(() => context.readLens!({ ...readLens, places: [odd] }));
    }
    for (const field of Object.keys(edit)) {
      await survive(() => context.reset!());
      await survive(() => context.sweep!({ ...sweep, plans: [[{ ...edit, [field]: value }]] }));
      await survive(() => context.advance!({ ...advance, edits: [{ ...edit, [field]: value }] }));
    }
  }
  // It still works.
  await context.reset!();
  const { layers } = (await context.advance!(advance)) as { layers: unknown[] };
  assert.is(layers.length, 2);
  await context.close();
  await model.close();
});

test("every field of a probe's training takes anything", async () => {
  const training = {
    features: Float32Array.of(1, 2, 3, 4, 5, 6, 7, 9),
    hidden: 2,
    train: Uint8Array.of(1, 1, 0, 0),
    labels: Uint8Array.of(0, 1, 0, 1),
    groups: Int32Array.of(4, 3, 2, 1),
    ...{ seed: 1, c: 1, tolerance: 1e-8, control: true, permutations: 2, threads: 1 },
    ...{ onProgress: undefined, cancel: undefined },
  };
  assert.is(((await raw.trainProbe!(training)) as { trainSize: number }).trainSize, 2);
  for (const value of garbage()) {
    for (const field of Object.keys(training)) {
      await survive(() => raw.trainProbe!({ ...training, [field]: value }));
    }
  }
});

test("every field of a dictionary's training takes anything", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tapline-garbage-"));
  const path = join(folder, "rows");
  writeFileSync(
    path,
    new Float32Array(40).map((_, i) => Math.sin(i)),
  );
  const piece = { path, offset: 0, type: "f32", uses: Uint8Array.of(1, 1, 1, 1, 1, 1, 2, 2, 2, 2) };
  const training = {
    ...{
      pieces: [piece],
      architecture: "topk",
      hidden: 4,
      features: 6,
      k: 2,
      bandwidth: 0,
      steps: 3,
      batch: 2,
    },
    ...{ seed: 1, learningRate: 0.01, warmup: 0, decay: 0, sparsity: 0, sparsityWarmup: 0, epsilon: 1e-8 },
    ...{ initialNorm: 1, initialThreshold: 1, deadAfter: 1, auxK: 2, auxWeight: 1, heldOut: 4, threads: 1 },
    ...{ state: undefined, cancel: undefined },
  };
  const open = (options: object) => raw.openDictionaryTrainer!(options) as Promise<Anything & Closable>;
  const uses = async (options: object) => {
    const trainer = await open(options);
    await survive(() => trainer.run!({ steps: 3 }));
    await trainer.close();
  };
  const trainer = await open(training);
  const state = (await trainer.state!()) as object;
  for (const value of garbage()) {
    for (const field of Object.keys(training)) await survive(() => uses({ ...training, [field]: value }));
    for (const field of Object.keys(piece)) {
      await survive(() => uses({ ...training, pieces: [{ ...piece, [field]: value }] }));
    }
    for (const field of Object.keys(state)) {
      await survive(() => uses({ ...training, state: { ...state, [field]: value } }));
    }
    await survive(() => trainer.evaluate!(value));
    await survive(() => trainer.run!({ steps: value, onProgress: value, cancel: value }));
    await survive(() => trainer.strongest!({ features: value, count: value }));
    await survive(() => trainer.strongest!({ features: [value], count: 2 }));
  }
  assert.ok(await trainer.evaluate!({}));
  await trainer.close();
  rmSync(folder, { recursive: true, force: true });
});

test("methods refuse foreign objects, and only the addon makes objects", async () => {
  const model = await openModel();
  const context = (await model.createContext!({ nCtx: 32 })) as Anything & Closable;
  const token = new (raw.CancelToken as unknown as new () => Anything)();
  const objects = [model, context, token, ...garbage()];
  for (const owner of [model, context, token]) {
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(owner));
    for (const name of names) {
      if (typeof owner[name] !== "function") continue;
      for (const self of objects) {
        if (self === owner) continue;
        if (name === "constructor") {
          await survive(() => Reflect.construct(owner.constructor as never, [self]));
        } else {
          await survive(() => owner[name]!.call(self, {}));
        }
      }
    }
  }
  await context.close();
  await model.close();
});

test("the typed interface answers any arguments with a result or an Error", async () => {
  const model = await Model.open(demo);
  const context = await model.createContext({ nCtx: 64, threads: 1 });
  const tokens = Int32Array.of(1, 2, 3);
  const answers = async (call: () => Promise<unknown>) => {
    try {
      const value = await call();
      await closeAny(value);
    } catch (error) {
      // Exceptions of a hostile getter pass unchanged.
      assert.instance(error, Error);
      assert.ok((error as Error).message.length > 0);
    }
  };
  for (const value of garbage() as never[]) {
    const calls = [
      () => Model.open(value),
      () => Model.open(demo, value),
      () => model.tokenize(value, value),
      () => model.tokenize("x", { special: value, parseSpecial: value }),
      () => model.pieces(value),
      () => model.detokenize(value),
      () => model.createContext(value),
      () => context.advance(value),
      () => context.features(value),
      () => context.sweep(value),
      () => context.patchSweep(value),
      ...[
        "layers",
        "rows",
        "keepStates",
        "lensTopK",
        "lensTarget",
        "lensAnswer",
        "nextTopK",
        "logits",
        "earlyExit",
        "edits",
        "signal",
      ].map((field) => () => context.advance({ tokens, layers: [0], [field]: value })),
      () => context.features({ sequences: value, layers: [0] }),
      () => context.features({ sequences: [value], layers: value, onProgress: value }),
    ];
    for (const call of calls) await answers(call);
    await context.reset();
  }
  assert.is((await context.advance({ tokens, layers: [2] })).layers.length, 1);
  await model.close();
});

test("raw objects close twice, and refuse afterwards", async () => {
  const model = await openModel();
  const context = (await model.createContext!({ nCtx: 32 })) as Anything & Closable;
  await Promise.all([model.close(), model.close(), context.close(), context.close()]);
  for (const call of [
    () => model.tokenize!("x", true, true),
    () => model.createContext!({}),
    () => context.advance!({ tokens: Int32Array.of(1), layers: [0] }),
    () => context.reset!(),
  ]) {
    const code = await (call() as Promise<unknown>).then(
      () => "none",
      (error) => error.code,
    );
    assert.is(code, "CLOSED");
  }
});

// Whatever the arguments were: everything opened was closed above.
test.after(nothingIsLeft);

test.run();
