/** Small parts of the server by themselves, on stand-ins: places, captures, rows, scores, Prometheus' text. */
import { EventEmitter } from "node:events";
import type { Context } from "koa";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CaptureRequest } from "../../src/contracts/index.js";
import { decodeSafetensors } from "../../src/formats/safetensors.js";
import type { HttpError } from "../../src/http/index.js";
import { Admission } from "../../src/inference/admission.js";
import { Captures, captureWaitMs } from "../../src/inference/capture.js";
import { checkFinite } from "../../src/inference/finite.js";
import { makeProbe } from "../../src/inference/live/make-probe.js";
import { ProbeScores } from "../../src/inference/live/probe-scores.js";
import { captureNpz, captureSafetensors, RowStore } from "../../src/inference/live/row-store.js";
import { prometheusText } from "../../src/inference/prometheus.js";
import { sendStream, wholeBody } from "../../src/inference/reply.js";
import { endService, modelId } from "../../src/inference/server.js";
import type { InferenceService } from "../../src/inference/service.js";
import { ServingStats } from "../../src/inference/stats.js";
import type { ProbeNumbers, ProbeSaid } from "../../src/library/probes.js";
import type { EngineInfo, EngineMetrics } from "../../src/native/engine.js";
import { NativeError } from "../../src/native/index.js";
import type { KeptRows } from "../../src/native/live.js";
import { readNpz } from "../lab/npz-reader.js";

function refusal(run: () => unknown): [number, string, string | null, Record<string, string>] {
  try {
    run();
  } catch (error) {
    const { status, message, code, headers } = error as HttpError;
    return [status, message, code, headers];
  }
  return [200, "", null, {}];
}

test("as many are let in as there are slots and waiting places; each leaves once", () => {
  const admission = new Admission(2, 1);
  const leave = [admission.enter(), admission.enter(), admission.enter()];
  const busy = "The server is busy: 3 requests are running or waiting already.";
  assert.equal(
    refusal(() => admission.enter()),
    [503, busy, "overloaded", { "Retry-After": "1" }],
  );
  leave[0]?.();
  leave[0]?.();
  assert.is(admission.inside, 2);
  admission.enter();
  assert.is(refusal(() => admission.enter())[1], busy);
  leave[1]?.();
  admission.close();
  assert.equal(
    refusal(() => admission.enter()),
    [503, "The server is ending.", "overloaded", { "Retry-After": "5" }],
  );
  assert.is(admission.inside, 2);
  // 256 may wait unless told otherwise.
  const usual = new Admission(4);
  for (let count = 0; count < 260; count++) usual.enter();
  assert.is(refusal(() => usual.enter())[0], 503);
});

test("a service that ends lets nobody in, and waits a while for who is inside before it closes all", async () => {
  const ending = (graceMs: number) => {
    const admission = new Admission(2, 0);
    const done: string[] = [];
    const engine = { close: async () => void done.push(`engine, ${admission.inside} inside`) };
    const server = { closeAllConnections: () => done.push("connections") };
    const leave = admission.enter();
    const ended = endService({ admission, engine } as never, server as never, graceMs);
    return { admission, done, leave, ended };
  };
  const patient = ending(1e9);
  assert.is(refusal(() => patient.admission.enter())[1], "The server is ending.");
  assert.equal(patient.done, []);
  patient.leave();
  await patient.ended;
  assert.equal(patient.done, ["engine, 0 inside", "connections"]);
  const hasty = ending(0);
  await hasty.ended;
  assert.equal(hasty.done, ["engine, 1 inside", "connections"]);
});

test("a model whose numbers are not finite is not served, whether it has captures or not", async () => {
  const said = async (engine: object) => {
    const done: string[] = [];
    const close = async () => void done.push("closed");
    const error = await checkFinite({ close, ...engine } as never).then(
      () => "served",
      (fault: Error) => fault.message,
    );
    return [error, ...done];
  };
  const broken = "This model cannot be served, its weights are damaged or too large: ";
  const asked: object[] = [];
  const capturing = (capture: () => Promise<unknown>) => ({
    info: { captures: true, nLayer: 8 },
    capture: (request: object) => {
      asked.push(request);
      return capture();
    },
  });
  assert.equal(await said(capturing(async () => ({}))), ["served"]);
  assert.equal(asked, [{ prompt: "a", layers: [7], maxTokens: 16, nextTop: 1 }]);
  assert.equal(await said(capturing(() => Promise.reject(new NativeError("COMPUTE", "NaN.")))), [
    `${broken}NaN.`,
    "closed",
  ]);
  assert.equal(await said(capturing(() => Promise.reject(new NativeError("TOKEN_LIMIT", "Long.")))), [
    "served",
  ]);
  assert.equal(await said(capturing(() => Promise.reject(new Error("x")))), ["served"]);
  const answering = (status: number, choices: unknown) => ({
    info: { captures: false },
    request: async (
      route: string,
      body: { max_tokens: number; logprobs: number; cache_prompt: boolean; temperature: number },
    ) => {
      assert.equal(
        [route, body],
        ["completion", { prompt: "a", max_tokens: 1, temperature: 0, logprobs: 1, cache_prompt: false }],
      );
      return { status, body: JSON.stringify({ choices }) };
    },
  });
  const told = (logprob: number | null) => [{ logprobs: { content: [{ logprob }] } }];
  const silent = [`${broken}the probabilities of the next token are not finite.`, "closed"];
  assert.equal(await said(answering(200, told(null))), silent);
  for (const [status, choices] of [
    [200, told(-1)],
    [400, told(null)],
    [200, []],
    [200, [{ logprobs: null }]],
    [200, [{ logprobs: {} }]],
  ] as const) {
    assert.equal(await said(answering(status, choices)), ["served"]);
  }
});

test("a model is served under the hub's id, or its file's name without its ending and the numbers of its parts", () => {
  const named = (path: string, repository: string | null = null) => modelId("asked", { path, repository });
  assert.is(named("/m/x.gguf", "owner/name"), "asked");
  assert.is(named("/m/x.Q4.GGUF"), "x.Q4");
  assert.is(named("/m/large-00001-of-00003.gguf"), "large");
  assert.is(named("/m/large-1-of-3.gguf"), "large-1-of-3");
});

type Capture = (request: { signal: AbortSignal; maxTokens: number; nextTop: number }) => Promise<object>;

/** Captures of a stand-in for the engine. */
function captures(capture: Capture, waitMs = 1e6, info: Partial<EngineInfo> = { captures: true }) {
  const stats = new ServingStats();
  const engine = { info: { id: "m", architecture: "llama", ...info }, capture };
  const backend = { backend: "cpu", llamaCpp: "x", devices: [] };
  const resolved = { path: "/m.gguf", repository: null, commit: null, weights: [] };
  const all = new Captures({
    engine,
    stats,
    backend,
    resolved,
    requestedModel: "asked",
    requestedRevision: null,
    captureWaitMs: waitMs,
  } as unknown as InferenceService);
  const request: CaptureRequest = { model: "m", prompt: "p", layers: [3, 1], max_input_tokens: 7 };
  const run = (more: Partial<CaptureRequest> = {}) =>
    all.run({ ...request, ...more }).then(
      (answer) => [200, answer] as const,
      (error: HttpError) => [error.status, error.message] as const,
    );
  return { all, run, stats };
}

const captured = {
  pieces: ["a", "b"],
  tokenIds: Int32Array.of(5, 6),
  layers: [
    { layer: 3, norms: Float32Array.of(1, 2) },
    { layer: 1, norms: Float32Array.of(3, 4) },
  ],
  nextIds: Int32Array.of(9, 8),
  nextPieces: ["x", "y"],
  nextProbabilities: Float32Array.of(0.5, 0.25),
  waitedMs: 1500,
  forwardMs: 250,
};

test("captures: what is told, one at a time, and each counted by its end", async () => {
  let asked: Parameters<Capture>[0] | undefined;
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { all, run, stats } = captures(async (request) => {
    asked = request;
    await held;
    return captured;
  });
  assert.not(all.pending);
  const first = run();
  assert.ok(all.pending);
  assert.equal(await run(), [409, "A capture is already waiting or running; try again when it is done."]);
  assert.equal(await run({ model: "n".repeat(300) }), [
    409,
    `The resident model is m, not ${"n".repeat(200)}.`,
  ]);
  assert.equal(stats.captures, { served: 0, expired: 0, rejected: 2 });
  release();
  const [status, answer] = await first;
  if (typeof answer === "string") throw new Error(answer);
  assert.is(status, 200);
  assert.equal([asked?.maxTokens, asked?.nextTop], [7, 5]);
  const { provenance, note: _note, ...told } = answer;
  assert.equal(told, {
    tokens: ["a", "b"],
    token_ids: [5, 6],
    layers: [
      { layer: 3, norms: [1, 2] },
      { layer: 1, norms: [3, 4] },
    ],
    next_tokens: [
      { token_id: 9, token: "x", probability: 0.5 },
      { token_id: 8, token: "y", probability: 0.25 },
    ],
  });
  assert.equal(
    [provenance.layers, provenance.seed, provenance.seconds, provenance.requested_model],
    [[3, 1], 0, { queued: 1.5, forward: 0.25 }, "asked"],
  );
  assert.not(all.pending);
  assert.equal(stats.captures, { served: 1, expired: 0, rejected: 2 });
  assert.is((await run())[0], 200);
});

test("captures: who gets no turn in time is told the time, and what cannot be done is told as it is", async () => {
  assert.is(captureWaitMs, 60_000);
  const impatient = captures(
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new NativeError("CANCELLED", "x")));
      }),
    5,
  );
  assert.equal(await impatient.run(), [408, "The capture did not get its turn within 0.005 seconds."]);
  assert.equal(impatient.stats.captures, { served: 0, expired: 1, rejected: 0 });
  assert.not(impatient.all.pending);
  for (const [code, status, rejected] of [
    ["TOKEN_LIMIT", 400, 1],
    ["COMPUTE", 500, 1],
    ["OUT_OF_MEMORY", 500, 1],
    ["CLOSED", undefined, 0],
    ["INTERNAL", undefined, 0],
  ] as const) {
    const { all, run, stats } = captures(() => Promise.reject(new NativeError(code, "Why.")));
    assert.equal(await run(), [status, "Why."], code);
    assert.equal([all.pending, stats.captures.rejected], [false, rejected], code);
  }
  const broken = captures(() => Promise.reject(new TypeError("A fault.")));
  assert.equal(await broken.run(), [undefined, "A fault."]);
  assert.is(broken.stats.captures.rejected, 0);
  const none = captures(async () => captured, 1, { captures: false, noCaptureReason: "No." });
  assert.equal(await none.run(), [400, "No."]);
  assert.is(none.stats.captures.rejected, 1);
});

test("an engine's refusal is the answer, with whose fault it is", () => {
  const refused = (status: number, error: { message: string; type: string }) =>
    refusal(() => wholeBody({ status, body: JSON.stringify({ error }) })).slice(0, 3);
  assert.equal(refused(400, { message: "No.", type: "invalid_request_error" }), [400, "No.", null]);
  assert.equal(refused(501, { message: "Not here.", type: "not_supported_error" }), [400, "Not here.", null]);
  assert.equal(
    refused(500, { message: "Unexpected empty grammar stack after x", type: "server_error" })[0],
    400,
  );
  assert.equal(refused(500, { message: "It broke.", type: "server_error" }), [500, "It broke.", null]);
  assert.equal(refused(400, { message: "Long.", type: "exceed_context_size_error" }), [
    400,
    "Long.",
    "context_length_exceeded",
  ]);
  const unfit = refused(400, { message: "Failed to initialize samplers: std::exception", type: "x" })[1];
  assert.match(String(unfit), "does not fit the format");
  assert.is(wholeBody({ status: 399, body: "b" }), "b");
});

/** A response that takes what it is given, and fills up when it is told to. */
class Client extends EventEmitter {
  readonly written: string[] = [];
  readonly headers: Record<string, string> = {};
  full = false;
  destroyed = false;
  ended: string | undefined;
  setHeader(name: string, value: string) {
    this.headers[name] = value;
  }
  flushHeaders() {}
  write(text: string) {
    this.written.push(text);
    return !this.full;
  }
  end(text = "") {
    this.ended = text;
  }
}

/** A stream whose parts are given one by one, and how many were asked for. */
function source() {
  const waiting: ((part: IteratorResult<{ data: string; tokens: number[] }>) => void)[] = [];
  let asked = 0;
  const parts = {
    next: () => {
      asked++;
      return new Promise<IteratorResult<{ data: string; tokens: number[] }>>((resolve) =>
        waiting.push(resolve),
      );
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return {
    parts: parts as unknown as Parameters<typeof sendStream>[1],
    asked: () => asked,
    async give(data?: string) {
      waiting.shift()?.(
        data === undefined ? { done: true, value: undefined } : { done: false, value: { data, tokens: [1] } },
      );
      await turn();
    },
  };
}

test("a stream's next part is asked for when its client has taken the last; a silent one says that it works", async () => {
  const { setInterval: real, clearInterval: realClear } = globalThis;
  const silences: { ms: number; say: () => void; refreshed: number; cleared: boolean }[] = [];
  globalThis.setInterval = ((say: () => void, ms: number) => {
    const one = { ms, say, refreshed: 0, cleared: false, refresh: () => one.refreshed++ };
    silences.push(one);
    return one;
  }) as unknown as typeof setInterval;
  globalThis.clearInterval = ((one: (typeof silences)[0]) => {
    one.cleared = true;
  }) as unknown as typeof clearInterval;
  try {
    const res = new Client();
    const { parts, asked, give } = source();
    const sent: [string, number[]][] = [];
    const ctx = { res } as unknown as Context;
    const sending = sendStream(ctx, parts, undefined, (data, tokens) => sent.push([data, [...tokens]]));
    assert.equal(
      [ctx.respond, ctx.status, res.headers["Content-Type"]],
      [false, 200, "text/event-stream; charset=utf-8"],
    );
    await give("a");
    assert.equal([asked(), res.written], [2, ["a"]]);
    res.full = true;
    await give("b");
    assert.equal([asked(), res.written, sent.length], [2, ["a", "b"], 1]);
    res.full = false;
    res.emit("drain");
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(
      [asked(), sent],
      [
        3,
        [
          ["a", [1]],
          ["b", [1]],
        ],
      ],
    );
    assert.equal([res.listenerCount("drain"), res.listenerCount("close")], [0, 0]);
    // Who has gone drains no more: nothing waits for it.
    res.full = true;
    res.destroyed = true;
    await give("c");
    assert.is(asked(), 4);
    const [silence] = silences as [(typeof silences)[0]];
    assert.equal([silences.length, silence.ms, silence.refreshed, silence.cleared], [1, 15_000, 3, false]);
    silence.say();
    assert.is(res.written.at(-1), ": still working\n\n");
    await give();
    await sending;
    assert.equal([res.ended, silence.cleared], ["", true]);
  } finally {
    globalThis.setInterval = real;
    globalThis.clearInterval = realClear;
  }
});

test("a fault in the middle of a stream is its last event, in the form that was asked for", async () => {
  const fails = async (error: unknown, form?: Parameters<typeof sendStream>[2]) => {
    const res = new Client();
    const parts = (async function* () {
      yield { data: "a", tokens: [1] };
      throw error;
    })();
    const ctx = { res } as unknown as Context;
    const thrown = await sendStream(ctx, parts, form, () => {}).catch((fault: unknown) => fault);
    assert.is(thrown, error);
    return res.ended;
  };
  const body = (message: string) =>
    `data: ${JSON.stringify({ error: { message, type: "server_error", param: null, code: null } })}\n\n`;
  assert.is(await fails(new NativeError("CLOSED", "x")), body("The server is ending."));
  assert.is(
    await fails(new Error("secret")),
    body("The service failed on this request; its log says where."),
  );
  const form = {
    fault: (sentence: string) => `<${sentence}>`,
    event: () => "",
    end: () => "",
    whole: () => ({}),
  };
  assert.is(await fails(new NativeError("CLOSED", "x"), form), "<The server is ending.>");
});

/** Rows with so many values, of four bytes, and eight bytes for each row's index and token. */
function rows(id: string, count: number, values: number): KeptRows {
  return {
    id,
    rows: new Int32Array(count),
    tokens: new Int32Array(count),
    promptTokens: 1,
    layers: [{ layer: 0, values: new Float32Array(values) }],
  } as KeptRows;
}

test("kept rows: the oldest go where there is no more room, and are counted", () => {
  const store = new RowStore(100);
  const before = Date.now() / 1000;
  store.add(rows("a", 1, 8), "m"); // 40 bytes
  store.add(rows("b", 2, 11), "m"); // 60 bytes
  assert.equal([store.bytes, store.count, store.dropped], [100, 2, 0]);
  store.add(rows("c", 1, 1), "m"); // 12 bytes: the oldest goes
  assert.equal(
    [store.list().map(({ id, bytes }) => [id, bytes]), store.bytes, store.dropped],
    [
      [
        ["b", 60],
        ["c", 12],
      ],
      72,
      1,
    ],
  );
  assert.equal([store.get("a"), store.get("c")?.model], [undefined, "m"]);
  const created = store.get("c")?.created as number;
  assert.ok(created >= before - 1 && created <= Date.now() / 1000 + 1);
  assert.equal(
    [store.remove("b"), store.remove("b"), store.bytes, store.count, store.dropped],
    [true, false, 12, 1, 1],
  );
  store.add(rows("d", 1, 100), "m");
  assert.equal([store.bytes, store.count, store.dropped], [0, 0, 3]);
  assert.match(store.newId(), /^cap-[0-9a-f]{16}$/);
});

test("kept rows as files: a matrix for each layer, and none of a request that kept none", async () => {
  const store = new RowStore(1000);
  const [index, token] = [Int32Array.of(4, 9), Int32Array.of(70, 71)];
  const layers = [{ layer: 3, values: Float32Array.of(1, 2, 3, 4, 5, 6) }];
  store.add({ ...rows("a", 2, 0), rows: index, tokens: token, layers, promptTokens: 5 } as KeptRows, "m");
  store.add(rows("none", 0, 0), "m");
  const told = (id: string) => decodeSafetensors(captureSafetensors(store.get(id) as never));
  assert.equal(told("a").metadata, {
    tapline: "capture",
    model: "m",
    point: "block_out",
    prompt_tokens: "5",
  });
  assert.equal(
    [...told("a").tensors],
    [
      ["rows", { shape: [2], data: Float32Array.of(4, 9) }],
      ["token_ids", { shape: [2], data: Float32Array.of(70, 71) }],
      ["layer_3", { shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) }],
    ],
  );
  assert.equal(told("none").tensors.get("layer_0"), { shape: [0, 0], data: new Float32Array() });
  const npz = readNpz(await captureNpz(store.get("a") as never));
  assert.equal(
    [npz.get("prompt_tokens"), npz.get("layer_3")?.shape],
    [{ shape: [], data: Float64Array.of(5) }, [2, 3]],
  );
});

test("a probe is trained on all texts but every fifth of each side", async () => {
  const side = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`);
  const asked: unknown[] = [];
  const engine = {
    info: { nEmbd: 2 },
    states: async ({
      prompt,
      layers,
      rows,
      maxTokens,
    }: {
      prompt: string;
      layers: number[];
      rows: string;
      maxTokens: number;
    }) => {
      asked.push([prompt, layers, rows, maxTokens]);
      const [name, number] = prompt.split(" ");
      return [Float32Array.of(name === "good" ? 1 : -1, Number(number) % 3)];
    },
  };
  const put = async (...kept: unknown[]) => kept;
  const library = { model: { id: "m" }, probes: { put } };
  const request = { name: "p", positive: side("good", 9), negative: side("bad", 5), layer: 4 };
  const make = (more: object = {}) =>
    makeProbe(
      engine as never,
      library as never,
      { ...request, ...more } as never,
      new AbortController().signal,
    );
  const [name, layer, numbers, model, said] = (await make()) as unknown as [
    string,
    number,
    ProbeNumbers,
    object,
    ProbeSaid,
  ];
  assert.equal([name, layer, model], ["p", 4, { id: "m" }]);
  assert.equal(
    [asked.length, asked[0], asked[13]],
    [14, ["good 0", [4], "last", 256], ["bad 4", [4], "last", 256]],
  );
  assert.ok(numbers.weight[0]! > 0 && numbers.weight.length === 2);
  assert.is(
    said.note,
    "Logistic regression on 9 positive and 5 negative texts, last token, block outputs; 2 texts held out.",
  );
  assert.is(said.report?.separation, 1);
  assert.ok((said.report?.shuffled_separation ?? 1) < 1, `${said.report?.shuffled_separation}`);
  const mean = ((await make({ position: "mean" })) as unknown as [0, 0, 0, 0, ProbeSaid])[4];
  assert.match(mean.note, /, mean over tokens, block outputs;/);
  assert.equal(asked[14], ["good 0", [4], "mean", 256]);
});

test("watched probes: scores of tokens by name, in whole answers and in events, for a thousand names", () => {
  const scores = new ProbeScores();
  const answer = (...tokens: object[]) => JSON.stringify({ choices: [{ tapline: { tokens } }, {}] });
  scores.take(answer({ probes: { a: 0.25, b: null } }, { probes: { a: 1 } }, {}));
  scores.take(`data: ${answer({ probes: { a: 0.3 } })}\n\ndata: [DONE]\n\n: "probes"\n`);
  scores.take('data: {"choices":[]}\n\n');
  assert.equal(
    [...scores.entries()],
    [["a", { atMost: [0, 0, 2, 2, 2, 2, 2, 2, 2, 3], sum: 1.55, count: 3 }]],
  );
  for (let name = 0; name < 1001; name++) scores.take(answer({ probes: { [`p${name}`]: 0.5 } }));
  assert.is([...scores.entries()].length, 1000);
  scores.take(answer({ probes: { a: 0 } }));
  assert.is(new Map(scores.entries()).get("a")?.count, 4);
});

test("Prometheus' text: every number under its name", () => {
  const clock = { ms: 0 };
  const stats = new ServingStats(() => clock.ms);
  const request = stats.begin();
  clock.ms = 2000;
  request.sent([1]);
  clock.ms = 2400;
  request.sent([1]);
  clock.ms = 2500;
  request.ended("completed");
  stats.begin();
  Object.assign(stats.requests, { failed: 3, cancelled: 4, refused: 5 });
  Object.assign(stats.captures, { served: 6, expired: 7, rejected: 8 });
  stats.probes.take('{"choices":[{"tapline":{"tokens":[{"probes":{"calm":0.15}}]}}]}');
  const info = { id: 'a"b\\c\nd', architecture: "llama", slots: 4 } as EngineInfo;
  const metrics = {
    deferred: 9,
    busy_slots: 2,
    prompt_tokens: 10,
    cached_tokens: 11,
    prompt_us: 1_500_000,
    generated_tokens: 12,
    generated_us: 2_500_000,
    decodes: 13,
  } as EngineMetrics;
  const text = prometheusText(stats, info, metrics);
  assert.ok(text.endsWith("\n") && !text.endsWith("\n\n"));
  const lines = text.trimEnd().split("\n");
  for (const expected of [
    'tapline_model_info{model="a\\"b\\\\c\\nd",architecture="llama"} 1',
    "tapline_uptime_seconds 2.5",
    "# TYPE tapline_requests_total counter",
    'tapline_requests_total{outcome="completed"} 1',
    'tapline_requests_total{outcome="failed"} 3',
    'tapline_requests_total{outcome="cancelled"} 4',
    'tapline_requests_total{outcome="refused"} 5',
    "tapline_requests_active 1",
    "tapline_requests_deferred 9",
    'tapline_slots{state="total"} 4',
    'tapline_slots{state="busy"} 2',
    'tapline_prompt_tokens_total{source="computed"} 10',
    'tapline_prompt_tokens_total{source="cache"} 11',
    "tapline_prompt_seconds_total 1.5",
    "tapline_generated_tokens_total 12",
    "tapline_generated_seconds_total 2.5",
    "tapline_decodes_total 13",
    'tapline_captures_total{outcome="served"} 6',
    'tapline_captures_total{outcome="expired"} 7',
    'tapline_captures_total{outcome="rejected"} 8',
    "# TYPE tapline_time_to_first_token_seconds histogram",
    'tapline_time_to_first_token_seconds_bucket{le="1"} 0',
    'tapline_time_to_first_token_seconds_bucket{le="2.5"} 1',
    'tapline_time_to_first_token_seconds_bucket{le="60"} 1',
    'tapline_time_to_first_token_seconds_bucket{le="+Inf"} 1',
    "tapline_time_to_first_token_seconds_sum 2",
    'tapline_inter_token_seconds_bucket{le="0.25"} 0',
    'tapline_inter_token_seconds_bucket{le="0.5"} 1',
    "tapline_inter_token_seconds_count 1",
    'tapline_request_seconds_bucket{le="1"} 0',
    'tapline_request_seconds_bucket{le="5"} 1',
    'tapline_request_seconds_bucket{le="1800"} 1',
    "tapline_request_seconds_sum 2.5",
    'tapline_probe_score_bucket{probe="calm",le="0.1"} 0',
    'tapline_probe_score_bucket{probe="calm",le="0.2"} 1',
    'tapline_probe_score_bucket{probe="calm",le="+Inf"} 1',
    'tapline_probe_score_sum{probe="calm"} 0.15',
    'tapline_probe_score_count{probe="calm"} 1',
  ]) {
    assert.ok(lines.includes(expected), expected);
  }
  const bounds = (name: string) =>
    lines
      .flatMap((line) => /^tapline_(\w+)_bucket\{le="([\d.]+)"/.exec(line) ?? [])
      .filter((_, i, all) => all[i - 1] === name);
  assert.equal(
    bounds("time_to_first_token_seconds").map(Number),
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  );
  assert.equal(
    bounds("inter_token_seconds").map(Number),
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  );
  assert.equal(bounds("request_seconds").map(Number), [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800]);
  assert.not.match(prometheusText(new ServingStats(), info, metrics), "probe_score");
  const report = stats.report({ ...info, bytes: 77 }, { ...metrics, generated_steps: 6 }, new RowStore());
  assert.equal(report.throughput, {
    prompt_tokens_per_second: 10 / 1.5,
    generated_tokens_per_second: 6 / 2.5,
  });
  assert.equal(
    [report.tokens, report.slots],
    [
      { prompt: 10, cached: 11, generated: 12 },
      { total: 4, busy: 2 },
    ],
  );
  assert.equal(report.requests, { total: 2, active: 1, queued: 9, failed: 3, cancelled: 4 });
  const idle = stats.report(info, { ...metrics, prompt_us: 0 }, new RowStore());
  assert.is(idle.throughput.prompt_tokens_per_second, 0);
});

test.run();
