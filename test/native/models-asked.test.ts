/** What models ask of the addon, from their opening to their end, and what they tell of their contexts, on an addon that computes nothing. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, type ContextOptions, Model } from "../../src/native/index.js";
import { nativeRefusal as refused } from "../support/refusal.js";
import { until } from "../support/until.js";
import { answers, aroundModels, asked, last, opened, size } from "./stand-in-model.js";

aroundModels();

test("a model is opened as it is asked for, and numbers beyond its limits are not handed on", async () => {
  await Model.open("m.gguf", { gpuLayers: -1, mmap: false, fitTokens: 1, devices: ["a"] });
  assert.equal(last(), [
    "openModel",
    { path: "m.gguf", gpuLayers: -1, mmap: false, fitTokens: 1, devices: ["a"] },
  ]);
  await Model.open("m.gguf", { fitTokens: 1_048_576, gpuLayers: 2_147_483_647 });
  asked.length = 0;
  const integer = (name: string, from: number, to: number, got: unknown) =>
    `INVALID_ARGUMENT: ${name} must be an integer from ${from} to ${to}, got ${got}.`;
  for (const [options, sentence] of [
    [{ gpuLayers: -2 }, integer("gpuLayers", -1, 2_147_483_647, -2)],
    [{ gpuLayers: 2 ** 31 }, integer("gpuLayers", -1, 2_147_483_647, 2_147_483_648)],
    [{ gpuLayers: "3" as never }, integer("gpuLayers", -1, 2_147_483_647, '"3"')],
    [{ fitTokens: 0 }, integer("fitTokens", 1, 1_048_576, 0)],
    [{ fitTokens: 1_048_577 }, integer("fitTokens", 1, 1_048_576, 1_048_577)],
    [{ fitTokens: 1.5 }, integer("fitTokens", 1, 1_048_576, 1.5)],
    [{ devices: ["a", 1] as never }, "INVALID_ARGUMENT: Devices must be names."],
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

test("a context's sizes are checked and passed on, and its properties returned", async () => {
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
    size.bytes = bytes;
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

test.run();
