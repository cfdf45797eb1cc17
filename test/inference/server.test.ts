import { once } from "node:events";
import { request } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Stats } from "../../src/contracts/stats.js";
import { validate } from "../../src/contracts/validate.js";
import { Histogram } from "../../src/executions/index.js";
import type { HttpError } from "../../src/http/index.js";
import { wholeBody } from "../../src/inference/reply.js";
import { fc } from "../support/fc.js";
import { attempt } from "./support/bodies.js";
import { startServer, streamEvents, type TestServer, untilIdle, user } from "./support/serving.js";

let server: TestServer;
const messages = user("What is the capital of France?");

test.before(async () => {
  server = await startServer({ parallel: 2, waiting: 2, apiKey: "secret" });
});
test.after(() => server.close());
const key = { Authorization: "Bearer secret" };
const endless = { prompt: "The", max_tokens: 450, ignore_eos: true, stream: true };

/** Starts a stream and resolves once its first bytes have come. */
async function openStream(): Promise<{ abort(): void }> {
  const outgoing = request(`${server.url}/v1/completions`, { method: "POST", headers: key, agent: false });
  outgoing.on("error", () => {});
  outgoing.end(JSON.stringify(endless));
  const [incoming] = await once(outgoing, "response");
  incoming.on("error", () => {});
  await once(incoming, "data");
  return { abort: () => outgoing.destroy() };
}

test("an API key guards everything but health, the inside too", async () => {
  for (const headers of [{}, { Authorization: "Bearer wrong" }] as Record<string, string>[]) {
    const { status, body } = await server.post("/v1/chat/completions", { messages }, headers);
    assert.is(status, 401);
    assert.is(body.error.code, "invalid_api_key");
  }
  assert.is((await server.post("/tokenize", { content: "a" })).status, 401);
  const guarded = ["/metrics", "/stats", "/props", "/slots", "/v1/models", "/openapi.json"];
  for (const path of [...guarded, "/lab/capabilities", "/executions"]) {
    assert.is((await server.get(path)).status, 401, path);
    assert.is.not((await server.get(path, key)).status, 401, path);
  }
  assert.is((await server.get("/health")).status, 200);
  assert.is((await server.get("/v1/models", key)).status, 200);
});

test("text to tokens and back, and the template", async () => {
  const { body: tokens } = await server.post("/tokenize", { content: "The capital of France" }, key);
  const { body: text } = await server.post("/detokenize", tokens, key);
  assert.is(text.content, "The capital of France");
  const { body: prompt } = await server.post("/apply-template", { messages }, key);
  assert.match(prompt.prompt, "capital of France");
  const beyond = await server.post("/detokenize", { tokens: [10_000_000] }, key);
  assert.is(beyond.status, 400);
  assert.match(beyond.body.error.message, "10000000");
});

test("statistics follow their contract and count", async () => {
  await server.post("/v1/chat/completions", { messages, max_tokens: 5, ignore_eos: true }, key);
  await server.post("/v1/chat/completions", { messages, max_tokens: 5, ignore_eos: true, stream: true }, key);
  const { body } = await server.get("/stats", key);
  validate(Stats, body);
  assert.is(body.requests.total, 2);
  assert.is(body.requests.active, 0);
  assert.is(body.tokens.generated, 10);
  assert.ok(body.latency_ms.time_to_first_token.p50 > 0);
  const text = (await server.get("/metrics", key)).bytes.toString();
  assert.match(text, /^tapline_generated_tokens_total 10$/m);
  assert.match(text, /^tapline_time_to_first_token_seconds_count 2$/m);
  assert.match(text, /^tapline_inter_token_seconds_bucket\{le="\+Inf"\} 8$/m);
});

test("answers side by side have the latencies of one, and one usage of all", async () => {
  const ask = { prompt: ["The capital of France", "Tom"], max_tokens: 60, ignore_eos: true };
  const options = { stream: true, stream_options: { include_usage: true } };
  const { interToken, timeToFirstToken } = server.service.stats;
  const sums: number[] = [];
  const seconds: number[] = [];
  for (const body of [ask, { ...ask, ...options }]) {
    const [count, sum, firsts] = [interToken.count, interToken.sum, timeToFirstToken.count];
    const begin = performance.now();
    await server.post("/v1/completions", body, key);
    seconds.push((performance.now() - begin) / 1000);
    assert.is(interToken.count - count, 2 * 59);
    assert.is(timeToFirstToken.count - firsts, 1);
    sums.push(interToken.sum - sum);
  }
  // Two answers within the time of the request; how they share it is told by a clock of the test's own, in stats.test.ts.
  for (const [i, sum] of sums.entries()) {
    assert.ok(sum > 0 && sum < 2 * seconds[i]!, `${sum} s of latencies in ${seconds[i]} s`);
  }
});

test("usage counts the tokens of every prompt, cached ones too, once", async () => {
  const prompts = ["Anna gave the book to Tom and", "The language spoken in Germany is"];
  const ask = { prompt: prompts, max_tokens: 3, ignore_eos: true, temperature: 0 };
  const counts = await Promise.all(
    prompts.map(async (content) => {
      const { body } = await server.post("/tokenize", { content, add_special: true }, key);
      return body.tokens.length as number;
    }),
  );
  const all = counts[0]! + counts[1]!;
  await server.post("/v1/completions", ask, key);
  for (const n of [1, 2]) {
    const { body } = await server.post("/v1/completions", { ...ask, n }, key);
    const { usage } = body;
    assert.equal([usage.prompt_tokens, usage.completion_tokens], [all, 6 * n]);
    const streamed = await server.post(
      "/v1/completions",
      { ...ask, n, stream: true, stream_options: { include_usage: true } },
      key,
    );
    const told = streamEvents(streamed.bytes.toString()).flatMap(({ usage }) => usage ?? []);
    assert.is(told.length, 1);
    const [whole] = told as [typeof usage];
    assert.equal([whole.prompt_tokens, whole.completion_tokens], [all, 6 * n]);
    // Two slots hold the two prompts; all but each one's last token is there, which is computed anew.
    if (n === 1) {
      for (const each of [usage, whole]) assert.is(each.prompt_tokens_details.cached_tokens, all - 2);
    }
  }
});

test("who comes when all places are taken is told to come back", async () => {
  const attempt = async () => {
    const streams = await Promise.all([openStream(), openStream()]);
    const three = Array.from({ length: 3 }, () =>
      server.post("/v1/completions", { prompt: "The", max_tokens: 1 }, key),
    );
    const refusals = three.map(async (one) => {
      const answer = await one;
      if (answer.status === 200) throw new Error("there was room");
      return answer;
    });
    const refused = await Promise.any(refusals).catch(() => undefined);
    for (const stream of streams) stream.abort();
    const answers = await Promise.all(three);
    await untilIdle(server.service);
    return { refused, statuses: answers.map(({ status }) => status).sort() };
  };
  let seen = await attempt();
  // A stream ends by itself: where one did before the three came, there was room for all.
  for (let again = 0; seen.refused === undefined && again < 20; again++) seen = await attempt();
  assert.equal(seen.statuses, [200, 200, 503]);
  assert.is(seen.refused?.headers["retry-after"], "1");
});

test("clients that go away at any moment leave no busy slot and no fault", async () => {
  const long = "word ".repeat(80);
  const asked: [path: string, body: object][] = [
    ["/v1/completions", endless],
    ["/v1/completions", { ...endless, stream: false }],
    ["/v1/embeddings", { input: Array(20).fill(long) }],
    ["/tokenize", { content: long.repeat(1000) }],
  ];
  for (let i = 0; i < 60; i++) {
    const [path, body] = asked[i % asked.length] as [string, object];
    const outgoing = request(`${server.url}${path}`, { method: "POST", headers: key, agent: false });
    outgoing.on("error", () => {});
    outgoing.on("response", (incoming) => incoming.on("error", () => {}).resume());
    outgoing.end(JSON.stringify(body));
    await new Promise((resolve) => setTimeout(resolve, i % 11));
    outgoing.destroy();
  }
  await untilIdle(server.service);
  assert.equal(server.faults, []);
});

test("a reader that stops reading holds only its own stream back", async () => {
  const outgoing = request(`${server.url}/v1/completions`, { method: "POST", headers: key, agent: false });
  outgoing.end(JSON.stringify({ ...endless, logprobs: 20 }));
  const [incoming] = await once(outgoing, "response");
  incoming.pause();
  const { status } = await server.post("/v1/completions", { prompt: "The", max_tokens: 20 }, key);
  assert.is(status, 200);
  const chunks: Buffer[] = [];
  incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
  incoming.resume();
  await once(incoming, "end");
  const text = Buffer.concat(chunks).toString();
  assert.ok(text.endsWith("data: [DONE]\n\n"));
  assert.ok(streamEvents(text).length >= 450);
});

test("generated bodies never give a 5xx", async () => {
  await fc.assert(
    fc.asyncProperty(attempt, async ({ path, body }) => {
      const { status, bytes } = await server.post(path, body, key);
      assert.ok(status < 500, `${path} answered ${status}: ${bytes.toString().slice(0, 500)}`);
    }),
    { numRuns: 150 },
  );
  await untilIdle(server.service);
  assert.equal(server.faults, []);
});

test("a refused request is counted once", async () => {
  const { requests } = server.service.stats;
  const { failed, refused } = requests;
  assert.is((await server.post("/v1/completions", { prompt: "word ".repeat(2000) }, key)).status, 400);
  assert.is((await server.post("/v1/completions", { prompt: 7 }, key)).status, 400);
  assert.equal([requests.failed, requests.refused], [failed + 1, refused + 1]);
});

test("unknown routes, wrong methods, no JSON", async () => {
  assert.is((await server.get("/v1/nothing", key)).body.error.type, "not_found_error");
  assert.is((await server.get("/v1/chat/completions", key)).status, 405);
  const broken = await server.post("/v1/chat/completions", "{", key);
  assert.is(broken.status, 400);
  assert.match(broken.body.error.message, "JSON");
});

test("a histogram's percentiles are within its bucket width", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 1e-4, max: 100, noNaN: true }), { minLength: 1, maxLength: 200 }),
      (values) => {
        const histogram = new Histogram();
        for (const value of values) histogram.add(value);
        values.sort((a, b) => a - b);
        for (const fraction of [0.5, 0.95, 0.99]) {
          const exact = values[Math.max(0, Math.ceil(fraction * values.length) - 1)] as number;
          const told = histogram.percentile(fraction) as number;
          assert.ok(Math.abs(told / exact - 1) < 0.1, `${told} for ${exact}`);
        }
        assert.is(histogram.count, values.length);
      },
    ),
  );
  assert.is(new Histogram().percentile(0.5), null);
});

test("unsupported features and unusable grammars are the request's fault", () => {
  for (const [status, message, expected] of [
    [501, "This server does not do that.", 400],
    [500, "Unexpected empty grammar stack after accepting piece: x", 400],
    [500, "Something broke.", 500],
    [503, "Loading.", 503],
  ] as const) {
    const body = JSON.stringify({ error: { message, type: "x" } });
    assert.throws(
      () => wholeBody({ status, body }),
      (error: HttpError) => error.status === expected && error.message === message,
    );
  }
  assert.is(wholeBody({ status: 200, body: "{}" }), "{}");
});

test.run();
