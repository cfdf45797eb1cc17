/** What models and contexts ask of the addon and what becomes of its answers, on an addon that computes nothing. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type Context,
  type ContextOptions,
  Model,
  patchCells,
  patchPlaces,
  sweepCells,
} from "../../src/native/index.js";
import { nativeRefusal as refused } from "../support/refusal.js";
import { type StandIn, StandInToken, takeStandIn } from "../support/stand-in-addon.js";
import { until } from "../support/until.js";

const addon = takeStandIn();
let asked: [name: string, ...given: unknown[]][] = [];
let modelBytes = 40_000_000;
/** What a function answers in place of its name. */
let answers: StandIn = {};
test.before.each(() => {
  asked = [];
  answers = {};
  modelBytes = 40_000_000;
});

/** An object of the addon's: its functions note what they are given. */
function object(info: object, names: readonly string[]): StandIn {
  const functions = names.map((name) => [
    name,
    async (...given: unknown[]) => {
      asked.push([name, ...given]);
      return answers[name]?.(...given);
    },
  ]);
  return Object.assign(Object.fromEntries(functions), { info });
}

const contextInfo = {
  ...{
    nCtx: 64,
    nBatch: 16,
    causal: true,
    supported: true,
    reason: "",
    sidePath: "a side",
    tensorNames: ["l_out-0"],
  },
  ...{ lensSupported: false, lensReason: "No head.", parallel: true, normed: false, scaled: true },
  points: [
    {
      ...{ point: "block_out", supported: true, reason: "", layers: Int32Array.of(0, 2) },
      ...{ widths: Int32Array.of(3, 3), heads: Int32Array.of(0, 0), experts: Int32Array.of(1, 4) },
    },
    {
      ...{ point: "router", supported: false, reason: "No experts.", layers: new Int32Array() },
      ...{ widths: new Int32Array(), heads: new Int32Array(), experts: new Int32Array() },
    },
  ],
};
const ofContext =
  "advance features sweep patchSweep embeddingInput explain lensLogits readLens logitDirection reset close".split(
    " ",
  );

addon.openModel = async (options: object) => {
  asked.push(["openModel", options]);
  answers.openModel?.(options);
  const model = object({ nEmbd: 3, bytes: modelBytes }, ["tokenize", "pieces", "detokenize", "close"]);
  model.createContext = async (given: object) => {
    asked.push(["createContext", given]);
    await answers.createContext?.(given);
    return object(contextInfo, ofContext);
  };
  return model;
};

/** The one call since the last, without its token. */
function last(): unknown[] {
  assert.is(asked.length, 1, JSON.stringify(asked.map(([name]) => name)));
  const [name, ...given] = asked.splice(0)[0] as [string, ...unknown[]];
  return [name, ...given.map((one) => (one !== null && typeof one === "object" ? withoutToken(one) : one))];
}

function withoutToken(request: object): object {
  if (ArrayBuffer.isView(request)) return request;
  const { cancel, ...rest } = request as { cancel?: unknown };
  if ("cancel" in request) assert.instance(cancel, StandInToken);
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
}

async function opened(): Promise<{ model: Model; context: Context }> {
  const model = await Model.open("m.gguf");
  const context = await model.createContext();
  asked = [];
  return { model, context };
}

test("a model is opened as it is asked for, and numbers beyond its limits are not handed on", async () => {
  await Model.open("m.gguf", { gpuLayers: -1, mmap: false, fitTokens: 1, devices: ["a"] });
  assert.equal(last(), [
    "openModel",
    { path: "m.gguf", gpuLayers: -1, mmap: false, fitTokens: 1, devices: ["a"] },
  ]);
  await Model.open("m.gguf", { fitTokens: 1_048_576, gpuLayers: 2_147_483_647 });
  asked = [];
  const integer = (name: string, from: number, to: number, got: unknown) =>
    `INVALID_ARGUMENT: ${name} must be an integer from ${from} to ${to}, got ${got}.`;
  for (const [options, sentence] of [
    [{ gpuLayers: -2 }, integer("gpuLayers", -1, 2_147_483_647, -2)],
    [{ gpuLayers: 2 ** 31 }, integer("gpuLayers", -1, 2_147_483_647, 2_147_483_648)],
    [{ gpuLayers: "3" as never }, integer("gpuLayers", -1, 2_147_483_647, '"3"')],
    [{ fitTokens: 0 }, integer("fitTokens", 1, 1_048_576, 0)],
    [{ fitTokens: 1_048_577 }, integer("fitTokens", 1, 1_048_576, 1_048_577)],
    [{ fitTokens: 1.5 }, integer("fitTokens", 1, 1_048_576, 1.5)],
    [{ devices: ["a", 1] as never }, "INVALID_ARGUMENT: Devices are names."],
  ] as const) {
    assert.is(await refused(() => Model.open("m.gguf", options)), sentence);
  }
  for (const path of ["", "a\0b", 7]) {
    assert.is(
      await refused(() => Model.open(path as string)),
      "INVALID_ARGUMENT: The path of a model must be a non-empty string.",
    );
  }
  assert.equal(asked, []);
  answers.openModel = () => {
    throw Object.assign(new Error("No such file."), { code: "MODEL_LOAD" });
  };
  assert.is(await refused(() => Model.open("m.gguf")), "MODEL_LOAD: No such file.");
});

test("a context's sizes are handed on within their limits, and what the addon knows of it is told", async () => {
  const { model, context } = await opened();
  const most: ContextOptions = { nCtx: 1_048_576, nBatch: 1_048_576, maxSequences: 256, threads: 512 };
  for (const options of [most, { nCtx: 1, nBatch: 1, maxSequences: 1, threads: 1, keepAttention: true }]) {
    await model.createContext(options);
    assert.equal(last(), ["createContext", options]);
  }
  for (const [name, limit] of Object.entries(most)) {
    for (const value of [0, (limit as number) + 1, 1.5, null]) {
      assert.is(
        await refused(() => model.createContext({ [name]: value })),
        `INVALID_ARGUMENT: ${name} must be an integer from 1 to ${limit}, got ${value}.`,
      );
    }
  }
  assert.equal([context.nCtx, context.nBatch, context.causal], [64, 16, true]);
  assert.equal(context.blockOutputs, {
    ...{ supported: true, reason: "", sidePath: "a side", tensorNames: ["l_out-0"] },
  });
  assert.equal(context.lens, { supported: false, reason: "No head." });
  assert.equal(context.form, { parallel: true, normed: false, scaled: true });
  assert.equal(context.points, {
    block_out: {
      supported: true,
      reason: "",
      layers: [0, 2],
      widths: [3, 3],
      heads: [0, 0],
      experts: [1, 4],
    },
    router: { supported: false, reason: "No experts.", layers: [], widths: [], heads: [], experts: [] },
  });
});

test("a tiny model is computed with one thread unless another number is asked for, a larger one with the addon's choice", async () => {
  for (const [bytes, threads] of [
    [39_999_999, 1],
    [40_000_000, undefined],
  ] as const) {
    modelBytes = bytes;
    const { model } = await opened();
    await model.createContext({ nCtx: 8 });
    assert.equal(last(), ["createContext", { nCtx: 8, ...(threads && { threads }) }]);
    await model.createContext({ threads: 2 });
    assert.equal(last(), ["createContext", { threads: 2 }]);
  }
});

test("a text's tokens: with the special ones unless told otherwise, control tokens as plain text unless asked for", async () => {
  const { model } = await opened();
  answers.tokenize = () => Int32Array.of(4, 5);
  assert.equal(await model.tokenize("a"), Int32Array.of(4, 5));
  assert.equal(last(), ["tokenize", "a", true, false]);
  await model.tokenize("a", { special: false, parseSpecial: true });
  assert.equal(last(), ["tokenize", "a", false, true]);
  const tokens = Int32Array.of(7);
  await model.pieces(tokens);
  assert.equal(last(), ["pieces", tokens]);
  await model.detokenize(tokens);
  assert.equal(last(), ["detokenize", tokens]);
  const ids = "INVALID_ARGUMENT: Token ids must be an Int32Array.";
  assert.equal(
    [await refused(() => model.pieces([7] as never)), await refused(() => model.detokenize([7] as never))],
    [ids, ids],
  );
  assert.is(
    await refused(() => model.tokenize(7 as never)),
    "INVALID_ARGUMENT: The text to tokenise must be a string.",
  );
  answers.tokenize = () => {
    throw Object.assign(new Error("Too long."), { code: "TOKEN_LIMIT" });
  };
  assert.is(await refused(() => model.tokenize("a")), "TOKEN_LIMIT: Too long.");
});

test("a model that is closed waits for what runs, closes the contexts that are left, and then itself", async () => {
  const { model, context } = await opened();
  await model.createContext();
  await context.close();
  await context.close();
  assert.equal(
    asked.splice(0).map(([name]) => name),
    ["createContext", "close"],
  );
  let finish = () => {};
  const held = new Promise<void>((resolve) => {
    finish = resolve;
  });
  answers.tokenize = () => held.then(() => Int32Array.of(1));
  // One that is being made when the model is closed is closed with it.
  answers.createContext = () => held;
  const text = model.tokenize("a");
  const making = model.createContext();
  const closing = [model.close(), model.close()];
  assert.is(closing[0], closing[1]);
  assert.is(await refused(() => model.detokenize(Int32Array.of(1))), "CLOSED: The model is closed.");
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(
    asked.map(([name]) => name),
    ["tokenize", "createContext"],
  );
  finish();
  assert.equal(await text, Int32Array.of(1));
  const late = await making;
  await closing[0];
  assert.equal(
    asked.map(([name]) => name),
    ["tokenize", "createContext", "close", "close", "close"],
  );
  assert.is(await refused(() => late.reset()), "CLOSED: The context is closed.");
});

test("a context that was closed is forgotten by its model", async () => {
  const { model } = await opened();
  let context: WeakRef<Context> | undefined;
  await (async () => {
    const one = await model.createContext();
    context = new WeakRef(one);
    await one.close();
  })();
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  await until(() => {
    collect();
    return context?.deref() === undefined;
  }, "it is collected");
  await model.close();
});

test("a pass: every row unless the last alone is wanted, edits in the addon's form, rows with their shapes", async () => {
  const { context } = await opened();
  const states = Float32Array.of(1, 2, 3, 4, 5, 6);
  answers.advance = () => ({
    layers: [
      { layer: 2, point: "block_out", rows: 2, width: 3, norms: Float32Array.of(8, 9), states },
      { layer: 0, point: "mid", rows: 2, width: 3, norms: Float32Array.of(6, 7) },
    ],
    attention: [{ layer: 0, heads: Int32Array.of(1), weights: new Float32Array(4), apart: 0.5 }],
    routing: [
      { layer: 0, experts: 8, used: 3, chosen: new Int32Array(6), weights: new Float32Array(6).fill(2) },
    ],
    logits: Float32Array.of(1),
  });
  const tokens = Int32Array.of(5, 6);
  const request = {
    lensTopK: 2,
    lensTarget: 0,
    nextTopK: 0,
    logits: true,
    earlyExit: true,
    keepStates: true,
  };
  const { layers, attention, routing, ...rest } = await context.advance({
    ...{ tokens, layers: [2, 0], points: ["block_out", "mid"], routing: [0], ...request },
    ...{ attention: { layers: [0], heads: [1], prove: true }, scored: Int32Array.of(-1, 3) },
    edits: [{ layer: 2, scale: 0.5 }],
  });
  assert.equal(rest, { logits: Float32Array.of(1) });
  const [first, second] = layers;
  assert.equal([first!.layer, first!.point, first!.norms], [2, "block_out", Float32Array.of(8, 9)]);
  assert.equal([first!.states!.shape, first!.states!.get(1, 0), first!.states!.data], [[2, 3], 4, states]);
  assert.equal(second, { layer: 0, point: "mid", norms: Float32Array.of(6, 7) });
  assert.equal(
    [attention![0]!.weights.shape, attention![0]!.heads, attention![0]!.apart, attention![0]!.layer],
    [[1, 2, 2], Int32Array.of(1), 0.5, 0],
  );
  const [routed] = routing!;
  assert.equal(
    [routed!.chosen.shape, routed!.weights.shape, routed!.experts, routed!.weights.get(1, 2)],
    [[2, 3], [2, 3], 8, 2],
  );
  assert.not("used" in routed!);
  const edit = { layer: 2, point: "block_out", kind: "affine", unit: "vector", scale: 0.5, strength: 1 };
  assert.equal(last(), [
    "advance",
    {
      ...{ tokens, layers: [2, 0], points: ["block_out", "mid"], routing: [0], ...request, allRows: true },
      ...{ attention: { layers: [0], heads: [1], prove: true }, scored: Int32Array.of(-1, 3) },
      edits: [
        {
          ...edit,
          ...{ head: undefined, vector: undefined, feature: undefined },
          ...{ min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY },
          positions: { prompt: true, generated: true, ranges: Int32Array.of(-1, 2_147_483_647) },
        },
      ],
    },
  ]);
  answers.advance = () => ({ layers: [] });
  assert.equal(await context.advance({ tokens, layers: [], rows: "last" }), { layers: [] });
  assert.equal(last(), ["advance", { tokens, layers: [], allRows: false, edits: [] }]);
  await context.advance({ tokens, layers: [], rows: "all" });
  assert.is((last()[1] as { allRows: boolean }).allRows, true);
});

test("what a pass cannot take is refused before the addon hears of it", async () => {
  const { context } = await opened();
  const tokens = Int32Array.of(1);
  const good = { tokens, layers: [0] };
  for (const [more, sentence] of [
    [{ layers: 0 }, "Layers must be an array of block indices."],
    [{ layers: [null] }, "A layer must be an integer from -2147483647 to 2147483647, got null."],
    [
      { points: ["nowhere"] },
      'A point must be block_in, attention, head_out, attn_out, mid, router, ffn_out, block_out, got "nowhere".',
    ],
    [
      { points: [undefined] },
      "A point must be block_in, attention, head_out, attn_out, mid, router, ffn_out, block_out, got nothing.",
    ],
    [{ points: ["mid", "mid"] }, "The point mid is listed twice."],
    [
      { points: "mid" },
      "Points must be an array of block_in, attention, head_out, attn_out, mid, router, ffn_out, block_out.",
    ],
    [{ lensTopK: -1 }, "lensTopK must be an integer from 0 to 2147483647, got -1."],
    [{ lensTarget: -1 }, "lensTarget must be an integer from 0 to 2147483647, got -1."],
    [{ nextTopK: -1 }, "nextTopK must be an integer from 0 to 2147483647, got -1."],
    [{ scored: [1] }, "Token ids must be an Int32Array."],
    [{ tokens: [1] }, "Token ids must be an Int32Array."],
    [{ attention: { layers: [0.5] } }, "A layer must be an integer from -2147483647 to 2147483647, got 0.5."],
    [
      { attention: { layers: [0], heads: [-1] } },
      "One of the heads must be an integer from 0 to 2147483647, got -1.",
    ],
    [{ attention: { layers: [0], heads: 1 } }, "Heads must be an array of indices."],
    [{ routing: 1 }, "Layers must be an array of block indices."],
    [
      { edits: [{ layer: 0, vector: new Float32Array(2) }] },
      "An edit's vector has 2 values; the hidden size is 3.",
    ],
  ] as const) {
    assert.is(
      await refused(() => context.advance({ ...good, ...more } as never)),
      `INVALID_ARGUMENT: ${sentence}`,
      JSON.stringify(more),
    );
  }
  assert.equal(asked, []);
});

test("texts' states: a matrix a layer, as wide as the model", async () => {
  const { context } = await opened();
  answers.features = () => [
    { layer: 4, states: new Float32Array(6) },
    { layer: 1, states: Float32Array.of(1, 2, 3) },
  ];
  const sequences = [Int32Array.of(1), Int32Array.of(2, 3)];
  const starts = Int32Array.of(0, 1);
  const onProgress = () => {};
  const found = await context.features({
    sequences,
    layers: [4, 1],
    point: "mid",
    rows: "mean",
    starts,
    onProgress,
  });
  assert.equal(
    [...found].map(([layer, { shape }]) => [layer, shape]),
    [
      [4, [2, 3]],
      [1, [1, 3]],
    ],
  );
  assert.is(found.get(1)?.get(0, 2), 3);
  assert.equal(last(), [
    "features",
    { sequences, layers: [4, 1], point: "mid", rows: "mean", starts, onProgress },
  ]);
  for (const more of [{ point: "x" }, { starts: [0] }, { sequences: [[1]] }, { layers: ["0"] }]) {
    assert.match(
      await refused(() => context.features({ sequences, layers: [0], ...more } as never)),
      /^INVALID_ARGUMENT: /,
      JSON.stringify(more),
    );
  }
  assert.equal(asked, []);
});

test("sweeps: each plan's edits in the addon's form, as many tokens as are asked for", async () => {
  const { context } = await opened();
  const prompts = [Int32Array.of(1)];
  const targets = Int32Array.of(-1);
  answers.sweep = () => ["trial"];
  const plans = [
    [
      { layer: 1, scale: 2 },
      { layer: 2, strength: 3, vector: Float32Array.of(1, 0, 0) },
    ],
    [],
  ];
  assert.equal(await context.sweep({ prompts, plans, targets, maxTokens: 0 }), ["trial"]);
  const [name, { plans: given, ...rest }] = last() as [
    string,
    { plans: { scale: number; strength: number }[][] },
  ];
  assert.equal([name, rest], ["sweep", { prompts, targets, maxTokens: 0 }]);
  assert.equal(
    given.map((plan) => plan.map(({ scale, strength }) => [scale, strength])),
    [
      [
        [2, 1],
        [1, 3],
      ],
      [],
    ],
  );
  const most = "maxTokens must be an integer from 0 to 2147483647";
  for (const [more, sentence] of [
    [{ maxTokens: -1 }, `${most}, got -1.`],
    [{ maxTokens: undefined }, `${most}, got null.`],
    [{ targets: [1] }, "Token ids must be an Int32Array."],
    [{ prompts: [[1]] }, "Token ids must be an Int32Array."],
    [
      { plans: [[{ layer: 0, vector: new Float32Array(4) }]] },
      "An edit's vector has 4 values; the hidden size is 3.",
    ],
  ] as const) {
    assert.is(
      await refused(() => context.sweep({ prompts, plans, maxTokens: 1, ...more } as never)),
      `INVALID_ARGUMENT: ${sentence}`,
    );
  }
  // The prompt, again for each plan that edits earlier than its last row, and every row's continuation.
  const last1 = [{ layer: 0 }];
  const lastToo = [{ layer: 0, positions: "last" as const }];
  const all = [{ layer: 0 }, { layer: 1, positions: "all" as const }];
  assert.is(sweepCells(10, [], 4), 10 + 4);
  assert.is(sweepCells(10, [last1, lastToo, []], 4), 10 + 4 * 4);
  assert.is(sweepCells(10, [last1, all, all], 5), 30 + 4 * 5);
});

test("patch sweeps: places layer by layer, positions of both prompts, prompts of one length unless they say otherwise", async () => {
  const { context } = await opened();
  const [clean, corrupted] = [Int32Array.of(1, 2), Int32Array.of(1, 3)];
  const good = { clean, corrupted, layers: [3, 1], positions: [0, 1] };
  answers.patchSweep = () => "swept";
  assert.is(
    await context.patchSweep({ ...good, denoise: false, target: 0, foil: 4 } as never),
    "swept" as never,
  );
  assert.equal(last(), [
    "patchSweep",
    {
      ...{ clean, corrupted, denoise: false, target: 0, foil: 4 },
      places: [
        { layer: 3, point: "block_out" },
        { layer: 1, point: "block_out" },
      ],
      ...{ cleanPositions: [0, 1], corruptedPositions: [0, 1] },
    },
  ]);
  const longer = Int32Array.of(1, 2, 3);
  await context.patchSweep({ ...good, corrupted: longer, corruptedPositions: [1, 2], points: ["mid"] });
  const other = last()[1] as { places: object[]; cleanPositions: number[]; corruptedPositions: number[] };
  assert.equal(
    [other.places[0], other.cleanPositions, other.corruptedPositions],
    [{ layer: 3, point: "mid" }, [0, 1], [1, 2]],
  );
  for (const [more, sentence] of [
    [
      { corrupted: longer },
      "The clean prompt has 2 tokens and the corrupted one 3; positions need as many in both.",
    ],
    [{ layers: 1 }, "Layers must be an array of block indices."],
    [{ points: ["x"] }, /A point must be .* got "x"\./],
    [{ positions: [-1] }, "One of the positions must be an integer from 0 to 2147483647, got -1."],
    [{ positions: undefined }, "Positions must be an array of indices."],
    [{ heads: [0.5] }, "One of the heads must be an integer from 0 to 2147483647, got 0.5."],
    [
      { corruptedPositions: [undefined] },
      "One of the positions must be an integer from 0 to 2147483647, got null.",
    ],
    [{ target: -1 }, "target must be an integer from 0 to 2147483647, got -1."],
    [{ foil: -1 }, "foil must be an integer from 0 to 2147483647, got -1."],
    [{ clean: [1, 2] }, "Token ids must be an Int32Array."],
    [{ corrupted: [1, 2] }, "Token ids must be an Int32Array."],
    [{ points: ["head_out"] }, "Patching head_out needs heads."],
  ] as const) {
    const said = await refused(() => context.patchSweep({ ...good, ...more } as never));
    if (typeof sentence === "string") assert.is(said, `INVALID_ARGUMENT: ${sentence}`);
    else assert.match(said, sentence);
  }
  assert.equal(asked, []);
  assert.equal(patchPlaces({ layers: [2, 0], points: ["mid", "head_out"], heads: [5, 4] }), [
    { layer: 2, point: "mid" },
    { layer: 2, point: "head_out", head: 5 },
    { layer: 2, point: "head_out", head: 4 },
    { layer: 0, point: "mid" },
    { layer: 0, point: "head_out", head: 5 },
    { layer: 0, point: "head_out", head: 4 },
  ]);
  assert.is(
    await refused(() => patchPlaces({ layers: [0], points: ["head_out"], heads: [] })),
    "INVALID_ARGUMENT: Patching head_out needs heads.",
  );
  // The prompt itself, and a batch that holds it at least once.
  assert.equal([patchCells(10, 4), patchCells(10, 32)], [20, 42]);
});

test("rows in a token's place, lenses and logits are handed on with what they need", async () => {
  const { context } = await opened();
  const [before, after] = [Int32Array.of(1), Int32Array.of(2)];
  const fillings = [{ token: 3 }];
  await context.explain({
    before,
    after,
    fillings,
    maxTokens: 1,
    samples: 1,
    temperature: 0.5,
    logits: true,
  });
  assert.equal(last(), [
    "explain",
    { before, after, fillings, maxTokens: 1, samples: 1, temperature: 0.5, logits: true },
  ]);
  await context.embeddingInput();
  assert.equal(last(), ["embeddingInput", {}]);
  const rows = Float32Array.of(1, 2, 3);
  answers.lensLogits = () => rows;
  assert.is(await context.lensLogits(rows), rows);
  assert.equal(last(), ["lensLogits", { rows }]);
  await context.logitDirection(rows, 0);
  assert.equal(last(), ["logitDirection", { state: rows, token: 0 }]);
  const places = [{ states: rows }];
  const targets = Int32Array.of(-1);
  await context.readLens({ places, top: 1, output: rows, targets, entropy: true });
  assert.equal(last(), ["readLens", { places, top: 1, output: rows, targets, entropy: true }]);
  await context.reset();
  assert.equal(last(), ["reset"]);
  const from = (name: string, least: number, got: unknown) =>
    `INVALID_ARGUMENT: ${name} must be an integer from ${least} to 2147483647, got ${got}.`;
  const ids = "INVALID_ARGUMENT: Token ids must be an Int32Array.";
  const explain = (more: object) =>
    context.explain({ before, after, fillings, maxTokens: 1, ...more } as never);
  const read = (more: object) => context.readLens({ places, top: 1, ...more } as never);
  for (const [run, sentence] of [
    [() => explain({ maxTokens: 0 }), from("maxTokens", 1, 0)],
    [() => explain({ maxTokens: undefined }), from("maxTokens", 1, null)],
    [() => explain({ samples: 0 }), from("samples", 1, 0)],
    [() => explain({ before: [1] }), ids],
    [() => explain({ after: [1] }), ids],
    [() => context.logitDirection(rows, -1), from("token", 0, -1)],
    [() => context.logitDirection(rows, undefined as never), from("token", 0, null)],
    [() => read({ top: 0 }), from("top", 1, 0)],
    [() => read({ top: undefined }), from("top", 1, null)],
    [() => read({ targets: [1] }), ids],
  ] as const) {
    assert.is(await refused(run), sentence);
  }
  assert.equal(asked, []);
});

test("operations of one context run one after the other, and a signal reaches the one that it was given to", async () => {
  const { context } = await opened();
  let finish = (_: unknown) => {};
  answers.reset = () =>
    new Promise((resolve) => {
      finish = resolve;
    });
  const stop = new AbortController();
  let token: StandInToken | undefined;
  answers.advance = ({ cancel }: { cancel: StandInToken }) => {
    token = cancel;
    stop.abort();
    assert.ok(cancel.cancelled);
    throw Object.assign(new Error("Cancelled."), { code: "CANCELLED" });
  };
  const first = context.reset();
  const second = refused(() =>
    context.advance({ tokens: Int32Array.of(1), layers: [], signal: stop.signal }),
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(
    asked.map(([name]) => name),
    ["reset"],
  );
  finish(undefined);
  await first;
  assert.is(await second, "CANCELLED: Cancelled.");
  assert.instance(token, StandInToken);
  assert.not("signal" in (asked[1]![1] as object));
  asked = [];
  assert.is(
    await refused(() => context.advance({ tokens: Int32Array.of(1), layers: [], signal: stop.signal })),
    "CANCELLED: The operation was cancelled.",
  );
  assert.equal(asked, []);
  // What is no fault of the addon's own comes as it is.
  answers.advance = () => {
    throw Object.assign(new TypeError("A fault."), { code: "OTHER" });
  };
  const fault = await context
    .advance({ tokens: Int32Array.of(1), layers: [] })
    .catch((error: unknown) => error);
  assert.equal([fault instanceof TypeError, (fault as Error).message], [true, "A fault."]);
});

test.run();
