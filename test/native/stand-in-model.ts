/** Models and contexts on an addon that computes nothing: what they ask of it is noted, what it answers is a test's. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, Model } from "../../src/native/index.js";
import { type StandIn, StandInToken, takeStandIn } from "../support/stand-in-addon.js";

const addon = takeStandIn();
/** The calls of the addon since, in order. */
export let asked: [name: string, ...given: unknown[]][] = [];
/** How large the models are that it opens. */
export const size = { bytes: 40_000_000 };
/** A function's return value, by its name. */
export let answers: StandIn = {};

/** Starts each test of a file with a large model and an addon without calls. */
export function aroundModels(): void {
  test.before.each(() => {
    asked = [];
    answers = {};
    size.bytes = 40_000_000;
  });
}

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
  const model = object({ nEmbd: 3, bytes: size.bytes }, ["tokenize", "pieces", "detokenize", "close"]);
  model.createContext = async (given: object) => {
    asked.push(["createContext", given]);
    await answers.createContext?.(given);
    return object(contextInfo, ofContext);
  };
  return model;
};

/** The one call since the last, without its token. */
export function last(): unknown[] {
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

/** A model and a context, with what was asked for them forgotten. */
export async function opened(): Promise<{ model: Model; context: Context }> {
  const model = await Model.open("m.gguf");
  const context = await model.createContext();
  asked = [];
  return { model, context };
}
