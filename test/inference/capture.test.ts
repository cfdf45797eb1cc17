import { test } from "uvu";
import * as assert from "uvu/assert";
import { CaptureResult } from "../../src/contracts/index.js";
import { validate } from "../../src/contracts/validate.js";
import { backendInfo, Model } from "../../src/native/index.js";
import { startServer, type TestServer, user } from "./support/serving.js";

let server: TestServer;
const model = "tapline-demo";
const prompt = "The capital of France is";

test.before(async () => {
  server = await startServer();
});
test.after(() => server.close());

test("capabilities name the resident model", async () => {
  const { status, body } = await server.get("/lab/capabilities");
  assert.is(status, 200);
  assert.is(body.serving_activations, true);
  assert.is(body.model, model);
  assert.is(body.max_layers, 4);
  assert.is(body.max_input_tokens, 256);
  assert.is(body.backend, backendInfo().backend);
  assert.is(body.pending, false);
});

test("a capture follows its contract and equals an isolated pass of the file", async () => {
  const { status, body } = await server.post("/lab/activations", { model, prompt, layers: [5, 0] });
  assert.is(status, 200);
  validate(CaptureResult, body);
  assert.is(body.next_tokens.length, 5);
  assert.equal(
    body.layers.map(({ layer }: { layer: number }) => layer),
    [5, 0],
  );
  const own = await Model.open(body.provenance.resolved_model.path);
  const context = await own.createContext({ threads: 1, nCtx: 256 });
  try {
    const tokens = await own.tokenize(prompt, { special: true });
    assert.equal(body.token_ids, [...tokens]);
    const pass = await context.advance({ tokens, layers: [5, 0], nextTopK: 5 });
    for (const [index, { norms }] of pass.layers.entries()) {
      for (const [place, norm] of norms.entries()) {
        assert.ok(Math.abs(norm - body.layers[index].norms[place]) <= 1e-4 * norm);
      }
    }
    assert.equal(
      body.next_tokens.map(({ token_id: id }: { token_id: number }) => id),
      [...(pass.next?.tokenIds ?? [])],
    );
  } finally {
    await context.close();
    await own.close();
  }
});

test("defaults: layer 0, 128 tokens", async () => {
  const { body } = await server.post("/lab/activations", { model, prompt });
  assert.equal(body.provenance.layers, [0]);
  const long = await server.post("/lab/activations", { model, prompt: "word ".repeat(200) });
  assert.is(long.status, 400);
  assert.match(long.body.error, /has \d+ tokens; at most 128/);
});

test("refusals say what was wrong, with the numbers", async () => {
  const refused = async (status: number, sentence: RegExp, body: unknown) => {
    const answer = await server.post("/lab/activations", body);
    assert.is(answer.status, status);
    assert.match(answer.body.error, sentence);
  };
  await refused(400, /Layer 99 does not exist: the model has \d+ layers/, { model, prompt, layers: [99] });
  await refused(400, /unknown field "lens"/, { model, prompt, lens: true });
  await refused(400, /prompt is required/, { model });
  await refused(400, /at most 4/, { model, prompt, layers: [0, 1, 2, 3, 4] });
  await refused(400, /1 appears twice/, { model, prompt, layers: [1, 1] });
  await refused(400, /at most 256/, { model, prompt, max_input_tokens: 257 });
  await refused(400, /blank/, { model, prompt: " \n" });
  await refused(409, /resident model is tapline-demo/, { model: "other", prompt });
});

test("one at a time: another one meanwhile is 409", async () => {
  const { engine } = server.service;
  const ask = () => server.post("/lab/activations", { model, prompt, layers: [0, 1, 2, 3] });
  // The first one is held until the second was refused.
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const own = engine.capture.bind(engine);
  engine.capture = (request) => held.then(() => own(request));
  try {
    const first = ask();
    while (!(await server.get("/lab/capabilities")).body.pending);
    const second = await ask();
    assert.is(second.status, 409);
    assert.match(second.body.error, /already queued or running/);
    release();
    assert.is((await first).status, 200);
  } finally {
    release();
    engine.capture = own;
  }
  assert.is((await ask()).status, 200);
});

test("a concurrent answer is the same with and without captures", async () => {
  const ask = (stream: boolean) =>
    server.post("/v1/chat/completions", {
      messages: user("What is the capital of France?"),
      temperature: 0,
      max_tokens: 60,
      ignore_eos: true,
      logprobs: true,
      top_logprobs: 3,
      cache_prompt: false,
      id_slot: 0,
      stream,
    });
  const answer = async () => (await ask(false)).body.choices[0];
  const alone = await answer();
  let captures = 0;
  let done = false;
  const capturing = (async () => {
    while (!done) {
      const { status } = await server.post("/lab/activations", { model, prompt, layers: [0, 7] });
      assert.is(status, 200);
      captures++;
    }
  })();
  for (let round = 0; round < 5; round++) assert.equal(await answer(), alone);
  done = true;
  await capturing;
  assert.ok(captures > 0);
});

test("a capture that does not get its turn in time is 408, and the next one works", async () => {
  // No time at all: it expires before the running iteration can end.
  const impatient = await startServer({ captureWaitMs: 0, parallel: 1 });
  try {
    const statuses = new Set<number>();
    // Whether a capture meets a running iteration is chance; that none of hundreds does, is not.
    for (let round = 0; round < 20 && !statuses.has(408); round++) {
      const busy = impatient.post("/v1/completions", {
        prompt: "word ".repeat(90),
        max_tokens: 300,
        ignore_eos: true,
        cache_prompt: false,
      });
      for (let attempt = 0; attempt < 50 && !statuses.has(408); attempt++) {
        statuses.add(
          (await impatient.post("/lab/activations", { model, prompt: "word ".repeat(60) })).status,
        );
      }
      await busy;
    }
    assert.ok(statuses.has(408));
    assert.is(impatient.service.stats.captures.expired > 0, true);
    assert.is((await impatient.get("/lab/capabilities")).body.pending, false);
  } finally {
    await impatient.close();
  }
});

test("only programs on this machine may capture", async () => {
  const pages: Record<string, string>[] = [
    { Origin: "http://localhost" },
    { "Sec-Fetch-Site": "same-origin" },
    { Host: "example.com" },
  ];
  for (const headers of pages) {
    const answer = await server.post("/lab/activations", { model, prompt }, headers);
    assert.is(answer.status, 403);
    assert.type(answer.body.error, "string");
  }
});

test.run();
