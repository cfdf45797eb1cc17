/** Requests to the serving engine and the handling of its answers, on an addon that computes nothing. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine, type EngineReply, type StreamPart } from "../../src/native/engine.js";
import type { CapturedRows, LivePlan } from "../../src/native/live.js";
import { nativeRefusal as refused } from "../support/refusal.js";
import { type StandIn, takeStandIn } from "../support/stand-in-addon.js";

const addon = takeStandIn();
let asked: unknown[][] = [];
/** What `read` gives, one after the other; a function is called for it. */
let events: (object | (() => unknown))[] = [];
let answers: StandIn = {};
test.before.each(() => {
  asked = [];
  events = [];
  answers = {};
});

const whole = (more: object = {}) => ({ data: "", tokens: [], times: [], done: true, ...more });

addon.openEngine = async (options: object) => {
  asked.push(["openEngine", options]);
  answers.openEngine?.();
  const answer = (name: string) => (given: object) => {
    asked.push([name, given]);
    return answers[name]?.(given);
  };
  return {
    info: JSON.stringify({ id: "m", captures: true, nLayer: 4, nEmbd: 2, noCaptureReason: "No captures." }),
    open(...given: unknown[]) {
      asked.push(["open", ...given]);
      return "open" in answers ? answers.open?.() : 7;
    },
    async read(id: number) {
      asked.push(["read", id]);
      const event = events.shift();
      return typeof event === "function" ? event() : event;
    },
    cancel: (id: number) => void asked.push(["cancel", id]),
    capture: async (given: object) => answer("capture")(given),
    score: async (given: object) => answer("score")(given),
    twin: () => "a twin",
    close: () => {
      asked.push(["close"]);
      return answers.close === undefined ? Promise.resolve() : answers.close();
    },
  };
};

async function opened(): Promise<Engine> {
  const engine = await Engine.open({ path: "m.gguf", id: "m" });
  asked = [];
  return engine;
}

const coded = (code: string, message: string) => () => {
  throw Object.assign(new Error(message), { code });
};

test("an engine opens with the given options, and the addon chooses the rest", async () => {
  const engine = await Engine.open({ path: "m.gguf", id: "m", threads: 2, mmap: false });
  assert.equal(asked.splice(0), [
    ["openEngine", { path: "m.gguf", id: "m", threads: 2, mmap: false, embeddings: -1, thinking: -1 }],
  ]);
  assert.equal([engine.info.id, engine.info.nLayer, engine.twin()], ["m", 4, "a twin"]);
  await Engine.open({ path: "m.gguf", id: "m", embeddings: true, thinking: false });
  assert.equal(asked.splice(0), [["openEngine", { path: "m.gguf", id: "m", embeddings: 1, thinking: 0 }]]);
  const zero = ["ctxSize", "parallel", "threads", "batch", "cacheRamMiB", "captureTokens"];
  for (const [name, least] of [["gpuLayers", -1], ...zero.map((name) => [name, 0])] as [string, number][]) {
    await Engine.open({ path: "m.gguf", id: "m", [name]: least });
    await Engine.open({ path: "m.gguf", id: "m", [name]: 2_147_483_647 });
    asked = [];
    for (const value of [least - 1, 2_147_483_648, 0.5]) {
      assert.is(
        await refused(() => Engine.open({ path: "m.gguf", id: "m", [name]: value })),
        `INVALID_ARGUMENT: ${name} must be an integer from ${least} to 2147483647, got ${value}.`,
      );
    }
    assert.equal(asked, []);
  }
  answers.openEngine = coded("MODEL_LOAD", "No such file.");
  assert.is(await refused(() => Engine.open({ path: "m.gguf", id: "m" })), "MODEL_LOAD: No such file.");
});

test("a whole answer: its head, its body, and the time of each of its answers", async () => {
  const engine = await opened();
  const times = [
    { promptMs: 1, generatedMs: 2 },
    { promptMs: 3, generatedMs: 4 },
  ];
  events = [whole({ status: 201, contentType: "text/x", data: "body", tokens: [5], times })];
  const signal = new AbortController().signal;
  assert.equal(await engine.request("chat", { messages: ["ä"] }, signal), {
    ...{ status: 201, contentType: "text/x", body: "body", parts: null },
    times: [
      { promptMs: 1, generatedMs: 2, tokens: 5 },
      { promptMs: 3, generatedMs: 4, tokens: 0 },
    ],
  });
  assert.equal(asked, [
    ["open", "chat", '{"messages":["ä"]}', undefined],
    ["read", 7],
  ]);
  events = [whole({ data: "x" })];
  const { status, contentType } = await engine.request("tokenize", {});
  assert.equal([status, contentType], [500, "application/json"], "an answer without a head is a fault");
  events = [whole({ data: '{"decodes":4}' })];
  asked = [];
  assert.equal(await engine.metrics(), { decodes: 4 });
  assert.equal(asked[0], ["open", "metrics", "{}", undefined]);
});

/** How many listeners a signal has for its end. */
function counted(): { stop: AbortController; listeners: () => number } {
  const stop = new AbortController();
  const { signal } = stop;
  let listeners = 0;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    listeners++;
    add(...given);
  };
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    listeners--;
    remove(...given);
  };
  return { stop, listeners: () => listeners };
}

test("a signal ends its request before, during and after the answer", async () => {
  const engine = await opened();
  assert.is(
    await refused(() => engine.request("chat", {}, AbortSignal.abort())),
    "CANCELLED: The request was cancelled.",
  );
  assert.equal(asked, []);
  const waiting = counted();
  events = [
    () => {
      assert.is(waiting.listeners(), 1);
      waiting.stop.abort();
      return coded("CANCELLED", "Cancelled.")();
    },
  ];
  assert.is(await refused(() => engine.request("chat", {}, waiting.stop.signal)), "CANCELLED: Cancelled.");
  assert.equal(asked.at(-1), ["cancel", 7]);
  assert.is(waiting.listeners(), 0);
  // Who was answered is not cancelled any more: its number may be somebody else's.
  const answered = counted();
  events = [whole()];
  await engine.request("chat", {}, answered.stop.signal);
  asked = [];
  answered.stop.abort();
  assert.equal([asked, answered.listeners()], [[], 0]);
});

test("immediate refusals have their code, and an unknown route is an invalid argument", async () => {
  const engine = await opened();
  answers.open = coded("INVALID_ARGUMENT", "No such body.");
  assert.is(await refused(() => engine.request("chat", {})), "INVALID_ARGUMENT: No such body.");
  answers.open = () => undefined;
  assert.is(
    await refused(() => engine.request("nowhere" as never, {})),
    "INVALID_ARGUMENT: The engine has no route nowhere.",
  );
});

const part = (data: string, tokens: number[], done = false) => ({ data, tokens, times: [], done });
const head = (more: object) => ({
  status: 200,
  contentType: "text/event-stream",
  stream: true,
  times: [],
  ...more,
});

async function streamed(engine: Engine, signal?: AbortSignal): Promise<NonNullable<EngineReply["parts"]>> {
  const { parts, ...rest } = await engine.request("chat", {}, signal);
  assert.equal(rest, { status: 200, contentType: "text/event-stream", body: "", times: [] });
  asked = [];
  return parts!;
}

test("stream parts are read on demand; empty parts are skipped", async () => {
  const engine = await opened();
  events = [
    head(part("a", [1])),
    part("", [0, 0]),
    part("", [0, 2]),
    part("b", []),
    part("", [], true),
    part("never", [1]),
  ];
  const { stop, listeners } = counted();
  const parts = await streamed(engine, stop.signal);
  assert.equal(await parts.next(), { done: false, value: { data: "a", tokens: [1] } });
  assert.equal(asked, [], "the first part came with the head");
  const seen: StreamPart[] = [];
  for await (const one of parts) seen.push(one);
  assert.equal(seen, [
    { data: "", tokens: [0, 2] },
    { data: "b", tokens: [] },
  ]);
  assert.equal(asked, Array(4).fill(["read", 7]));
  assert.equal([listeners(), events.length], [0, 1]);
  assert.equal(await parts.next(), { done: true, value: undefined });
  await parts.return?.();
  assert.equal(asked.length, 4, "who has ended is not cancelled");
  // The last part may hold text.
  events = [head(part("all", [3], true))];
  const short = await streamed(engine);
  assert.equal(await short.next(), { done: false, value: { data: "all", tokens: [3] } });
  assert.equal(await short.next(), { done: true, value: undefined });
  assert.equal(asked, []);
});

test("simultaneously requested parts arrive one after the other", async () => {
  const engine = await opened();
  events = [head(part("a", [1])), part("b", [1]), part("c", [1], true)];
  const parts = await streamed(engine);
  const all = await Promise.all([parts.next(), parts.next(), parts.next(), parts.next()]);
  assert.equal(
    all.map(({ value }) => (value as StreamPart | undefined)?.data),
    ["a", "b", "c", undefined],
  );
});

test("an abandoned, cancelled or failed stream frees its slot once", async () => {
  const engine = await opened();
  const left = counted();
  events = [head(part("a", [1])), part("b", [1])];
  const one = await streamed(engine, left.stop.signal);
  for await (const _ of one) break;
  await one.return?.();
  left.stop.abort();
  assert.equal([asked, left.listeners()], [[["cancel", 7]], 0]);
  assert.equal(await one.next(), { done: true, value: undefined });

  const cancelled = counted();
  events = [head(part("a", [1]))];
  await streamed(engine, cancelled.stop.signal);
  assert.is(cancelled.listeners(), 1);
  cancelled.stop.abort();
  assert.equal(asked, [["cancel", 7]]);

  const failing = counted();
  events = [head(part("a", [1])), coded("COMPUTE", "It broke.")];
  const other = await streamed(engine, failing.stop.signal);
  await other.next();
  assert.is(await refused(() => other.next()), "COMPUTE: It broke.");
  assert.equal(
    [asked, failing.listeners()],
    [
      [
        ["read", 7],
        ["cancel", 7],
      ],
      0,
    ],
  );
  assert.equal(await other.next(), { done: true, value: undefined });
});

test("a live request passes on its plan and delivers saved rows as they arrive", async () => {
  const engine = await opened();
  const kept: CapturedRows[] = [];
  const states = { id: "cap", bytes: 9, keep: (rows: CapturedRows) => void kept.push(rows) };
  const live: LivePlan = { watch: { layers: [1], positions: "all", states } };
  const rows = (id: string) => [{ id } as CapturedRows];
  events = [head({ ...part("a", [1]), states: rows("x") }), { ...part("b", [1], true), states: rows("y") }];
  const { parts } = await engine.request("chat", {}, undefined, live);
  for await (const _ of parts!);
  assert.equal(
    kept.map(({ id }) => id),
    ["x", "y"],
  );
  const plan = asked[0]![3] as { watch: { states: object }; stop: number };
  assert.equal([plan.watch.states, plan.stop], [{ id: "cap", bytes: 9 }, -1]);
  assert.match(
    await refused(() => engine.request("chat", {}, undefined, { watch: { layers: [4], positions: "all" } })),
    "LAYER_OUT_OF_RANGE: Layer 4 does not exist: the model has layers 0 to 3.",
  );
  (engine.info as { captures: boolean }).captures = false;
  assert.is(
    await refused(() => engine.request("chat", {}, undefined, live)),
    "UNSUPPORTED_ARCHITECTURE: No captures.",
  );
});

test("captures, states and scores pass their request on and return the result", async () => {
  const engine = await opened();
  answers.capture = () => ({ layers: [{ state: Float32Array.of(1) }, { state: Float32Array.of(2) }] });
  const asks = { prompt: "p", layers: [2, 0], maxTokens: 1, nextTop: 0 };
  const { signal } = new AbortController();
  await engine.capture({ ...asks, signal });
  const untold = () =>
    asked.splice(0).map(([name, given]) => {
      const { cancel, ...rest } = given as { cancel: unknown };
      assert.ok(cancel);
      return [name, rest];
    });
  assert.equal(untold(), [["capture", asks]]);
  assert.equal(await engine.states({ prompt: "p", layers: [2, 0], rows: "mean", maxTokens: 5, signal }), [
    { state: Float32Array.of(1), excluded: { bos: 0, outliers: 0 } },
    { state: Float32Array.of(2), excluded: { bos: 0, outliers: 0 } },
  ]);
  assert.equal(untold(), [
    ["capture", { prompt: "p", layers: [2, 0], maxTokens: 5, state: "mean", nextTop: 0 }],
  ]);
  const tokens = Int32Array.of(1, 2);
  const bytes = Uint8Array.of(65);
  answers.score = () => ({ ids: Int32Array.of(9, 8), pieces: [bytes, Uint8Array.of(66)], top: 0 });
  assert.equal(await engine.score({ tokens, top: 0, signal }), {
    top: 0,
    pieces: new Map([
      [9, bytes],
      [8, Uint8Array.of(66)],
    ]),
  });
  assert.equal(untold(), [["score", { tokens, top: 0, edits: [] }]]);
  const integer = (name: string, least: number, got: unknown) =>
    `INVALID_ARGUMENT: ${name} must be an integer from ${least} to 2147483647, got ${got}.`;
  const capture = (more: object) => engine.capture({ ...asks, ...more } as never);
  const score = (more: object) => engine.score({ tokens, top: 1, ...more } as never);
  for (const [run, sentence] of [
    [() => capture({ layers: 1 }), "INVALID_ARGUMENT: Layers must be an array of block indices."],
    [() => capture({ maxTokens: 0 }), integer("maxTokens", 1, 0)],
    [() => capture({ maxTokens: undefined }), integer("maxTokens", 1, null)],
    [() => capture({ nextTop: -1 }), integer("nextTop", 0, -1)],
    [() => capture({ nextTop: undefined }), integer("nextTop", 0, null)],
    [() => capture({ signal: AbortSignal.abort() }), "CANCELLED: The operation was cancelled."],
    [() => score({ tokens: [1] }), "INVALID_ARGUMENT: Token ids must be an Int32Array."],
    [() => score({ top: -1 }), integer("top", 0, -1)],
    [() => score({ top: undefined }), integer("top", 0, null)],
    [() => score({ signal: AbortSignal.abort() }), "CANCELLED: The operation was cancelled."],
  ] as const) {
    assert.is(await refused(run), sentence);
  }
  assert.equal(asked, []);
});

test("closing waits for running passes, happens once, and refuses later calls", async () => {
  const engine = await opened();
  const finish: ((value: object) => void)[] = [];
  const held = () => new Promise((resolve) => finish.push(resolve));
  Object.assign(answers, { capture: held, score: held });
  const capture = engine.capture({ prompt: "p", layers: [], maxTokens: 1, nextTop: 0 });
  const score = engine.score({ tokens: Int32Array.of(1), top: 0 });
  asked = [];
  let closed = 0;
  const closing = [engine.close(), engine.close()].map((one) => one.then(() => closed++));
  assert.equal(asked, [["close"]]);
  for (const run of [
    () => engine.request("chat", {}),
    () => engine.capture({ prompt: "p", layers: [], maxTokens: 1, nextTop: 0 }),
    () => engine.score({ tokens: Int32Array.of(1), top: 0 }),
    () => engine.states({ prompt: "p", layers: [], maxTokens: 1, rows: "last" }),
  ]) {
    assert.is(await refused(run), "CLOSED: The engine is closed.");
  }
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  assert.is(closed, 0);
  finish[0]!({ layers: [] });
  await turn();
  assert.is(closed, 0);
  finish[1]!({ ids: new Int32Array(), pieces: [] });
  await Promise.all(closing);
  await Promise.all([capture, score]);
  // Where it could not be closed, it is open still, and can be closed again.
  const stuck = await opened();
  answers = { close: coded("OUT_OF_MEMORY", "No thread.") };
  assert.is(await refused(() => stuck.close()), "OUT_OF_MEMORY: No thread.");
  events = [whole({ status: 200 })];
  assert.is((await stuck.request("chat", {})).status, 200);
  answers = {};
  await stuck.close();
});

test.run();
