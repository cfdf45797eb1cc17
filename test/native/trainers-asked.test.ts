/** What trainers, dictionaries and the machine are asked, on an addon that computes nothing; and what never reaches it. */
import ndarray from "ndarray";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { DictionaryTrainer, type DictionaryTraining } from "../../src/native/dictionary-trainer.js";
import {
  connectRemotes,
  type DictionaryPlaces,
  decodeRows,
  encodeRows,
  estimateMemory,
  initialSaeWeights,
  narrow,
  quantise,
  release,
  type SaeTraining,
  strongestFeatures,
  trainProbe,
  trainSae,
} from "../../src/native/index.js";
import { productRate } from "../../src/native/train.js";
import { nativeRefusal as refused } from "../support/refusal.js";
import { type StandIn, StandInToken, takeStandIn } from "../support/stand-in-addon.js";

let asked: [name: string, given: unknown][] = [];
let answers: StandIn = {};
test.before.each(() => {
  asked = [];
  answers = {};
});

const note = (name: string) => async (given: unknown) => {
  asked.push([name, given]);
  return answers[name]?.(given);
};
const names =
  "trainProbe trainSae initialSaeWeights productRate encodeRows decodeRows narrow quantise connectRemotes estimateMemory";
const addon = takeStandIn(Object.fromEntries(names.split(" ").map((name) => [name, note(name)])));
addon.release = (buffer: ArrayBuffer) => void asked.push(["release", buffer]);

/** What the addon was asked since, without its token; a field that is there and undefined would be its default lost. */
function given(): [string, unknown][] {
  return asked.splice(0).map(([name, value]) => {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return [name, value];
    const { cancel, ...rest } = value as { cancel?: unknown };
    if (cancel !== undefined) assert.instance(cancel, StandInToken);
    return [name, rest];
  });
}

async function refuses(cases: readonly (readonly [() => unknown, string])[]): Promise<void> {
  for (const [run, sentence] of cases) assert.is(await refused(run), `INVALID_ARGUMENT: ${sentence}`);
  assert.equal(asked, []);
}

const train = Uint8Array.of(1, 1, 0);
const labels = Uint8Array.of(0, 1, 0);
const features = Float32Array.of(1, 2, 3, 4, 5, 6);
const set = { features, train };

test("a probe's training passes given options on and leaves defaults to the addon", async () => {
  await trainProbe({ ...set, labels });
  assert.equal(given(), [["trainProbe", { features, train, hidden: 2, labels }]]);
  const all = { seed: 0, threads: 1, c: 0.5, tolerance: 1e-3, control: false, permutations: 0 };
  const groups = Int32Array.of(1, 1, 2);
  const onProgress = () => {};
  await trainProbe({ ...set, labels, ...all, groups }, { onProgress });
  assert.equal(given(), [["trainProbe", { features, train, hidden: 2, labels, ...all, groups, onProgress }]]);
  assert.is(
    await refused(() => trainProbe({ ...set, labels }, { signal: AbortSignal.abort() })),
    "CANCELLED: The operation was cancelled.",
  );
  const probe = (more: object) => () => trainProbe({ ...set, labels, ...more } as never);
  const one = (value: number) =>
    `Both labels must occur among the training examples, but only ${value} does.`;
  const integer = (name: string, least: number, got: unknown) =>
    `${name} must be an integer from ${least} to 2147483647, got ${got}.`;
  await refuses([
    [probe({ labels: [0, 1, 0] }), "labels must be a Uint8Array of 0 and 1."],
    [probe({ labels: Uint8Array.of(0, 1) }), "labels has 2 entries for 3 examples."],
    [probe({ labels: Uint8Array.of(0, 1, 2) }), "labels must be 0 or 1, but entry 2 is 2."],
    // The held-out example's label is no training example's.
    [probe({ labels: Uint8Array.of(0, 0, 1) }), one(0)],
    [probe({ labels: Uint8Array.of(1, 1, 0) }), one(1)],
    [probe({ c: 0 }), "c must be a positive number, got 0."],
    [probe({ c: Number.POSITIVE_INFINITY }), "c must be a positive number, got Infinity."],
    [probe({ tolerance: -1 }), "tolerance must be a positive number, got -1."],
    [probe({ permutations: -1 }), integer("permutations", 0, -1)],
    [probe({ groups: [1, 1, 2] }), "groups must be an Int32Array with a number for each of 3 examples."],
    [
      probe({ groups: Int32Array.of(1, 2) }),
      "groups must be an Int32Array with a number for each of 3 examples.",
    ],
    [probe({ train: [1, 1, 0] }), "train must be a Uint8Array with 1 for each training example."],
    [probe({ train: Uint8Array.of(1, 2, 0) }), "train must be 0 or 1, but entry 1 is 2."],
    [
      probe({ train: Uint8Array.of(1, 1, 1) }),
      "Training and held-out examples are both needed, but all 3 are in one split.",
    ],
    [
      probe({ train: Uint8Array.of(0, 0, 0) }),
      "Training and held-out examples are both needed, but all 3 are in one split.",
    ],
    [probe({ threads: 0 }), integer("threads", 1, 0)],
    [probe({ seed: -1 }), integer("seed", 0, -1)],
    [probe({ features: new Float32Array(7) }), "7 activations cannot be 3 rows of equal length."],
    [probe({ features: new Float32Array(0) }), "0 activations cannot be 3 rows of equal length."],
    [
      probe({ features: [1, 2, 3] }),
      "features must be a Float32Array, or an ndarray of float32 with two dimensions.",
    ],
    [
      probe({ features: ndarray(features, [6]) }),
      "features must be a Float32Array, or an ndarray of float32 with two dimensions.",
    ],
    [
      probe({ features: ndarray([1, 2], [1, 2]) }),
      "features must be a Float32Array, or an ndarray of float32 with two dimensions.",
    ],
    [probe({ features: ndarray(features, [2, 3]) }), "train has 3 entries for 2 rows of features."],
    [
      probe({ features: ndarray(Float32Array.of(1, 2), [1, 2]) }),
      "train has 3 entries for 1 rows of features.",
    ],
    [probe({ features: ndarray(features, [3, 0]) }), "features must not be empty, but their shape is 3 x 0."],
    [probe({ features: ndarray(features, [0, 2]) }), "features must not be empty, but their shape is 0 x 2."],
  ]);
});

test("activations in any order of memory are the same rows", async () => {
  const rows = async (view: ReturnType<typeof ndarray<Float32Array>>) => {
    await trainProbe({ features: view, train, labels });
    const [[, asks]] = given() as [[string, { features: Float32Array; hidden: number }]];
    return [asks.hidden, asks.features];
  };
  const plain = [2, Float32Array.of(1, 2, 3, 4, 5, 6)];
  const padded = Float32Array.of(9, 1, 2, 3, 4, 5, 6, 9);
  assert.equal(await rows(ndarray(padded, [3, 2], [2, 1], 1)), plain);
  assert.equal(await rows(ndarray(Float32Array.of(1, 2, 3), [3, 1])), [1, Float32Array.of(1, 2, 3)]);
  // Column by column, with a column between, and backwards.
  assert.equal(await rows(ndarray(Float32Array.of(1, 3, 5, 2, 4, 6), [3, 2], [1, 3])), plain);
  const wide = Float32Array.of(0, 1, 2, 0, 3, 4, 0, 5, 6);
  assert.equal(await rows(ndarray(wide, [3, 2], [3, 1], 1)), plain);
  assert.equal(await rows(ndarray(Float32Array.of(6, 5, 4, 3, 2, 1), [3, 2], [-2, -1], 5)), plain);
  const spread = Float32Array.of(1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0);
  assert.equal(await rows(ndarray(spread, [3, 2], [4, 2])), plain);
});

test("an autoencoder's training, its sizes and the weights that it starts from", async () => {
  await trainSae(set);
  assert.equal(given(), [["trainSae", { features, train, hidden: 2 }]]);
  const init = (nFeatures: number, hidden: number) => ({
    encoderWeight: new Float32Array(nFeatures * hidden),
    encoderBias: new Float32Array(nFeatures),
    decoderWeight: new Float32Array(nFeatures * hidden),
    decoderBias: new Float32Array(hidden),
  });
  const all = {
    nFeatures: 1,
    steps: 0,
    l1: 0,
    learningRate: 0.1,
    epsilon: 1e-9,
    lossEvery: 1,
    foldDecoderNorms: false,
  };
  await trainSae({ ...set, ...all, init: init(1, 2), seed: 3 });
  assert.equal(given(), [["trainSae", { features, train, hidden: 2, seed: 3, ...all, init: init(1, 2) }]]);
  await trainSae({ ...set, init: init(64, 2) });
  given();
  const sae = (more: Partial<SaeTraining>) => () => trainSae({ ...set, ...more });
  const weights = (name: string, size: number) =>
    `init.${name} must be a Float32Array of ${size} numbers for 64 features and 2 dimensions.`;
  const integer = (name: string, least: number, got: unknown) =>
    `${name} must be an integer from ${least} to 2147483647, got ${got}.`;
  await refuses([
    [sae({ l1: -0.5 }), "l1 must be at least 0, got -0.5."],
    [sae({ l1: Number.POSITIVE_INFINITY }), "l1 must be at least 0, got Infinity."],
    [sae({ learningRate: 0 }), "learningRate must be a positive number, got 0."],
    [sae({ epsilon: Number.NaN }), "epsilon must be a positive number, got NaN."],
    [sae({ lossEvery: 0 }), integer("lossEvery", 1, 0)],
    [sae({ nFeatures: 0 }), integer("nFeatures", 1, 0)],
    [sae({ steps: -1 }), integer("steps", 0, -1)],
    [sae({ init: { ...init(64, 2), encoderWeight: new Float32Array(2) } }), weights("encoderWeight", 128)],
    [sae({ init: { ...init(64, 2), encoderBias: new Float32Array(2) } }), weights("encoderBias", 64)],
    [sae({ init: { ...init(64, 2), decoderWeight: [] as never } }), weights("decoderWeight", 128)],
    [sae({ init: { ...init(64, 2), decoderBias: new Float32Array(64) } }), weights("decoderBias", 2)],
    [sae({ init: null as never }), weights("encoderWeight", 128)],
    [() => initialSaeWeights({ hidden: 0 }), integer("hidden", 1, 0)],
    [() => initialSaeWeights({ hidden: 1, seed: -1 }), integer("seed", 0, -1)],
    [() => initialSaeWeights({ hidden: 1, nFeatures: 0 }), integer("nFeatures", 1, 0)],
  ]);
  await initialSaeWeights({ hidden: 1 });
  await initialSaeWeights({ hidden: 5, nFeatures: 7, seed: 0 });
  await productRate(3);
  assert.equal(given(), [
    ["initialSaeWeights", { hidden: 1 }],
    ["initialSaeWeights", { hidden: 5, nFeatures: 7, seed: 0 }],
    ["productRate", { threads: 3, seconds: 0.2 }],
  ]);
});

const places = { path: "d", hidden: 2, features: 3 } as DictionaryPlaces;

test("a dictionary in a file reads whole rows, with threads only if given", async () => {
  const rows = new Float32Array(4);
  const sparse = {
    pointers: Float64Array.of(0, 0, 0),
    indices: new Int32Array(),
    values: new Float32Array(),
  };
  answers.encodeRows = () => sparse;
  assert.is(await encodeRows(places, rows), sparse);
  await encodeRows(places, rows, { threads: 2 });
  await decodeRows(places, sparse, rows);
  await decodeRows(places, sparse, rows, { threads: 1 });
  assert.equal(given(), [
    ["encodeRows", { dictionary: places, rows }],
    ["encodeRows", { dictionary: places, rows, threads: 2 }],
    ["decodeRows", { dictionary: places, ...sparse, rows }],
    ["decodeRows", { dictionary: places, ...sparse, rows, threads: 1 }],
  ]);
  const three = new Float32Array(3);
  await refuses([
    [() => encodeRows(places, [1, 2] as never), "Rows must be a Float32Array."],
    [() => encodeRows(places, three), "3 values cannot form rows of 2."],
    [() => decodeRows(places, sparse, [1, 2] as never), "Rows must be a Float32Array."],
    [() => decodeRows(places, sparse, three), "3 values cannot form rows of 2."],
  ]);
  assert.is(
    await refused(() => encodeRows(places, rows, { signal: AbortSignal.abort() })),
    "CANCELLED: The operation was cancelled.",
  );
  const many = {
    pointers: Float64Array.of(0, 2, 5),
    indices: Int32Array.of(8, 9, 1, 4, 6),
    values: Float32Array.of(1, 2, 3, 5, 3),
  };
  const strongest = (row: number, top: number) =>
    strongestFeatures(many, row, top).map(({ feature, activation }) => [feature, activation]);
  const second = [
    [4, 5],
    [1, 3],
    [6, 3],
  ];
  assert.equal([strongest(1, 5), strongest(1, 2), strongest(0, 1)], [second, second.slice(0, 2), [[9, 2]]]);
});

test("a dictionary's trainer: checked, asked one thing after the other, closed once", async () => {
  const functions = ["run", "evaluate", "trainError", "strongest", "weights", "state", "close"].map(
    (name) => [name, note(name)],
  );
  addon.openDictionaryTrainer = async (options: object) => {
    await note("open")(options);
    return { ...Object.fromEntries(functions), info: { trainRows: 5, heldOutRows: 6 } };
  };
  const piece = { path: "r", offset: 0, type: "f32" as const, uses: Uint8Array.of(1) };
  const training = {
    pieces: [piece],
    hidden: 1,
    features: 1,
    batch: 1,
    heldOut: 1,
    k: 0,
  } as unknown as DictionaryTraining;
  const open = (more: object = {}) => DictionaryTrainer.open({ ...training, ...more } as DictionaryTraining);
  const integer = (name: string, least: number, got: unknown) =>
    `${name} must be an integer from ${least} to 2147483647, got ${got}.`;
  const sizes = ["hidden", "features", "batch", "heldOut"];
  await refuses([
    ...sizes.map((name) => [() => open({ [name]: 0 }), integer(name, 1, 0)] as const),
    ...sizes.map((name) => [() => open({ [name]: undefined }), integer(name, 1, null)] as const),
    [() => open({ k: -1 }), integer("k", 0, -1)],
    [() => open({ k: undefined }), integer("k", 0, null)],
    [() => open({ threads: 0 }), integer("threads", 1, 0)],
    [
      () => open({ pieces: [piece, { ...piece, uses: [1] }] }),
      "uses must be a Uint8Array with an entry for each row.",
    ],
  ]);
  const trainer = await open({ threads: 1 });
  assert.equal(given(), [["open", { ...training, threads: 1 }]]);
  assert.equal(trainer.rows, { train: 5, heldOut: 6 });
  answers.run = () => "figures";
  const onProgress = () => {};
  assert.is(await trainer.run(3, { onProgress }), "figures" as never);
  await trainer.evaluate();
  await trainer.trainError();
  await trainer.strongest([2, 1], 4);
  await trainer.weights();
  await trainer.state();
  await Promise.all([trainer.close(), trainer.close()]);
  assert.equal(given(), [
    ["run", { steps: 3, onProgress }],
    ["evaluate", {}],
    ["trainError", {}],
    ["strongest", { features: [2, 1], count: 4 }],
    ["weights", undefined],
    ["state", undefined],
    ["close", undefined],
  ]);
  assert.is(await refused(() => trainer.weights()), "CLOSED: The trainer is closed.");
  // What is asked while steps run waits for them, and for what was asked before it.
  const busy = await open();
  given();
  let end = () => {};
  answers.run = () =>
    new Promise<void>((resolve) => {
      end = resolve;
    });
  const all = [
    busy.run(1),
    busy.state(),
    busy.weights(),
    busy.strongest([1], 1),
    busy.evaluate(),
    busy.close(),
  ];
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  const called = () => given().map(([name]) => name);
  assert.equal(called(), ["run"]);
  end();
  await Promise.all(all);
  assert.equal(called(), ["state", "weights", "strongest", "evaluate", "close"]);
  const signal = AbortSignal.abort();
  const other = await open();
  given();
  for (const run of [
    () => other.run(1, { signal }),
    () => other.evaluate({ signal }),
    () => other.strongest([], 1, { signal }),
    () => DictionaryTrainer.open(training, { signal }),
  ]) {
    assert.is(await refused(run), "CANCELLED: The operation was cancelled.");
  }
  assert.equal(asked, []);
});

test("refusals about the machine have their code, and embeddings are optional", async () => {
  answers.estimateMemory = () => ["device"];
  assert.equal(await estimateMemory({ path: "m", ctxSize: 5 }), ["device"] as never);
  await estimateMemory({ path: "m", embeddings: true });
  await estimateMemory({ path: "m", embeddings: false });
  assert.equal(
    given().map(([, one]) => one),
    [
      { path: "m", ctxSize: 5, embeddings: -1 },
      { path: "m", embeddings: 1 },
      { path: "m", embeddings: 0 },
    ],
  );
  const values = Float32Array.of(1);
  await narrow(values, "bf16");
  await quantise({ from: "a", to: "b", form: "Q8_0" });
  await connectRemotes(["a:1"]);
  release(values);
  assert.equal(asked.splice(0), [
    ["narrow", { values, type: "bf16" }],
    ["quantise", { from: "a", to: "b", form: "Q8_0" }],
    ["connectRemotes", ["a:1"]],
    ["release", values.buffer],
  ]);
  const breaks = () => {
    throw Object.assign(new Error("No."), { code: "MODEL_LOAD" });
  };
  Object.assign(answers, { estimateMemory: breaks, quantise: breaks, connectRemotes: breaks });
  for (const run of [
    () => estimateMemory({ path: "m" }),
    () => quantise({ from: "a", to: "b", form: "Q8_0" }),
    () => connectRemotes([]),
  ]) {
    assert.is(await refused(run), "MODEL_LOAD: No.");
  }
});

test.run();
