/** One capture at a time, each counted by its end, none of numbers that are not finite. On stand-ins. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CaptureRequest } from "../../src/contracts/index.js";
import type { HttpError } from "../../src/http/index.js";
import { Captures, captureWaitMs } from "../../src/inference/capture.js";
import { checkFinite } from "../../src/inference/finite.js";
import type { InferenceService } from "../../src/inference/service.js";
import { ServingStats } from "../../src/inference/stats.js";
import type { EngineInfo } from "../../src/native/engine.js";
import { NativeError } from "../../src/native/index.js";

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
  const broken = "This model cannot be served, because its weights are damaged or too large: ";
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

test("captures run one at a time, and each outcome is counted", async () => {
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
  assert.equal(await run(), [409, "A capture is already queued or running; retry when it is done."]);
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

test("an expired capture names the time limit; other refusals keep their sentence", async () => {
  assert.is(captureWaitMs, 60_000);
  const impatient = captures(
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new NativeError("CANCELLED", "x")));
      }),
    5,
  );
  assert.equal(await impatient.run(), [408, "The capture did not start within 0.005 seconds."]);
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

test.run();
