import { request } from "node:http";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Execution, ExecutionList } from "../../src/contracts/execution.js";
import { validate } from "../../src/contracts/validate.js";
import { exchange } from "../http/raw.js";
import { startServer, type TestServer } from "../inference/support/serving.js";
import { TestRandom } from "../support/random.js";
import { send } from "../support/request.js";
import { event, startFake } from "./support/fake.js";
import { messages, startRouting, type TestRouter } from "./support/routing.js";

let server: TestServer;
let router: TestRouter;
const parent = "0123456789abcdef0123456789abcdef";

test.before(async () => {
  server = await startServer();
  router = await startRouting([server.url]);
});
test.after(async () => {
  await router.close();
  await server.close();
});

/** What differs between two answers to the same request. */
const settled = (text: string) =>
  text
    .replace(/"(id|created)":("[^"]*"|\d+)/g, '"$1":0')
    .replace(/"timings":\{[^}]*\}/g, '"timings":{}')
    .replace(/"cached_tokens":\d+/g, '"cached_tokens":0');

test("tapline answers through the router as it does directly, streamed and whole", async () => {
  for (const stream of [true, false]) {
    const body = { model: "tapline-demo", messages, temperature: 0, max_tokens: 24, stream };
    const direct = await server.post("/v1/chat/completions", body);
    const routed = await router.chat(body);
    assert.is(routed.status, 200);
    assert.is(settled(routed.bytes.toString()), settled(direct.bytes.toString()));
    assert.is(routed.headers["content-type"], direct.headers["content-type"]);
  }
  const embedding = { input: "x" };
  const direct = await server.post("/v1/embeddings", embedding);
  const routed = await send(`${router.url}/v1/embeddings`, "POST", embedding);
  assert.equal([routed.status, routed.body], [direct.status, direct.body]);
});

test("a chat leaves a record here, and one in the server that names it as its parent", async () => {
  await send(`${server.url}/executions`, "DELETE");
  await send(`${router.url}/executions`, "DELETE");
  const body = { model: "auto", messages, temperature: 0, max_tokens: 40, stream: true };
  const { headers } = await router.chat(body, { "X-Tapline-Execution-ID": parent });
  const { body: list } = await router.get("/executions");
  validate(ExecutionList, list);
  const id = list.executions[0].id;
  assert.is(headers["x-tapline-execution-id"], id);
  assert.is(list.executions[0].parent_id, parent);
  const { body: behind } = await server.get("/executions");
  assert.is(behind.executions[0].parent_id, id);
  const { body: here } = await router.get(`/executions/${id}`);
  const { body: there } = await server.get(`/executions/${behind.executions[0].id}`);
  for (const record of [here, there]) validate(Execution, record);
  const text = (record: { events: { kind: string; text: string }[] }, kind: string) =>
    record.events
      .filter((one) => one.kind === kind)
      .map((one) => one.text)
      .join("");
  for (const kind of ["thinking", "output"]) assert.is(text(here, kind), text(there, kind));
  assert.equal(here.input, body);
  assert.equal(
    [here.status, here.finish_reason, here.preview, here.stream],
    [there.status, there.finish_reason, there.preview, true],
  );
});

test("random bytes pass whole, however they are split", async () => {
  const random = new TestRandom(5);
  const pieces = Array.from({ length: 60 }, (_, index) =>
    Buffer.from(
      Uint8Array.from({ length: [1, 300, 20_000, 70_000][index % 4] as number }, () => random.below(256)),
    ),
  );
  const backend = await startFake({
    post: async (_got, response) => {
      response.writeHead(200, {
        "Content-Type": "text/event-stream",
        "X-Twice": ["a", "b"],
        "X-Hop": "1",
        Connection: "x-hop",
      });
      for (const piece of pieces) {
        response.write(piece);
        if (random.uniform() < 0.3) await sleep(1);
      }
      response.end();
    },
  });
  const routed = await startRouting([backend.url]);
  const answer = await routed.chat({ messages, stream: true });
  assert.ok(answer.bytes.equals(Buffer.concat(pieces)));
  assert.is(answer.headers["x-twice"], "a, b");
  assert.is(answer.headers["x-hop"], undefined);
  // One connection, several requests: the frames of the first answer end where they should.
  const body = JSON.stringify({ messages });
  const ask = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n`;
  backend.options.post = (_got, response) => void response.write(event("a"), () => response.end(event("b")));
  const text = await exchange(routed.port, `${ask}\r\n${body}${ask}Connection: close\r\n\r\n${body}`);
  assert.is(text.match(/HTTP\/1\.1 200 OK/g)?.length, 2);
  assert.is(text.match(/\r\n0\r\n\r\n/g)?.length, 2);
  const old = await exchange(
    routed.port,
    `POST /v1/chat/completions HTTP/1.0\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  assert.is(old.slice(old.indexOf("\r\n\r\n") + 4), event("a") + event("b"));
  await routed.close();
  await backend.close();
});

test("a slow reader slows the backend down, and memory does not grow", async () => {
  let produced = 0;
  const piece = Buffer.alloc(65_536, 120);
  const backend = await startFake({
    post: (_got, response) => {
      response.writeHead(200, { "Content-Type": "application/octet-stream" });
      const more = () => {
        while (produced < 4000 && !response.destroyed) {
          produced++;
          if (!response.write(piece)) return void response.once("drain", more);
        }
        response.end();
      };
      more();
    },
  });
  const routed = await startRouting([backend.url]);
  const asking = request(`${routed.url}/v1/chat/completions`, { method: "POST", agent: false });
  asking.end(JSON.stringify({ messages, stream: true }));
  const response = await new Promise<import("node:http").IncomingMessage>((resolve) => {
    asking.once("response", resolve);
  });
  let last = -1;
  while (produced !== last) {
    last = produced;
    await sleep(300);
  }
  assert.ok(produced < 1000, `${produced} pieces of 64 KiB were taken for nobody`);
  let read = 0;
  for await (const chunk of response) read += (chunk as Buffer).length;
  assert.is(read, 4000 * piece.length);
  await routed.close();
  await backend.close();
});

test("the router requires its key if it has one, and never sends it to a backend", async () => {
  const backend = await startFake();
  const routed = await startRouting([backend.url], { apiKey: "secret" });
  for (const [path, method] of [
    ["/v1/models", "GET"],
    ["/v1/chat/completions", "POST"],
  ] as const) {
    const refused = await send(`${routed.url}${path}`, method, method === "POST" ? { messages } : undefined);
    assert.is(refused.status, 401);
    assert.is(refused.body.error.code, "invalid_api_key");
  }
  for (const path of ["/executions", "/stats", "/props"]) {
    assert.is((await routed.get(path)).status, 401, path);
    assert.is.not((await routed.get(path, { "X-Api-Key": "secret" })).status, 401, path);
  }
  assert.is((await send(`${routed.url}/tokenize`, "POST", { content: "a" })).status, 401);
  assert.is((await routed.chat({ messages }, { Authorization: "Bearer secret" })).status, 200);
  assert.is(backend.got[0]?.headers.authorization, undefined);
  assert.is((await routed.get("/health")).status, 200);
  await routed.close();
  const open = await startRouting([backend.url]);
  await open.chat({ messages }, { Authorization: "Bearer for-the-backend" });
  assert.is(backend.got[1]?.headers.authorization, "Bearer for-the-backend");
  await open.close();
  await backend.close();
});

test("bad requests are refused with a sentence", async () => {
  const refused = async (body: unknown) => {
    const answer = await send(`${router.url}/v1/chat/completions`, "POST", body);
    return [answer.status, answer.body.error.message];
  };
  assert.equal(await refused("[]"), [400, "The body must be a JSON object."]);
  assert.equal(await refused('{"model":1}'), [400, "model must be a string."]);
  assert.is((await refused(Buffer.alloc(9_000_000, 32)))[0], 400);
  const wrong = await send(`${router.url}/v1/chat/completions`, "GET");
  assert.equal([wrong.status, wrong.headers.allow], [405, "POST"]);
  for (const path of ["/v1/load_lora_adapter", "/V1/chat/completions", "/v1/chat/completions/"]) {
    assert.is((await send(`${router.url}${path}`, "POST", { messages })).status, 404, path);
  }
  const raw = await exchange(
    router.port,
    "POST /v1/../stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
  );
  assert.match(raw, /^HTTP\/1\.1 404 /);
});

test("only /v1 is shared; everything else is for programs on this machine", async () => {
  const address = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === "IPv4" && !one.internal)?.address;
  for (const path of ["/executions", "/stats", "/health"]) {
    assert.is((await router.get(path)).status, 200);
    assert.is((await router.get(path, { Origin: "http://localhost" })).status, 403);
    assert.is((await router.get(path, { Cookie: "a=b" })).status, 403);
  }
  if (address === undefined) return;
  const shared = await startRouting([server.url], { host: "0.0.0.0" });
  const at = `http://${address}:${shared.port}`;
  assert.is((await send(`${at}/v1/models`, "GET")).status, 200);
  assert.is((await send(`${at}/v1/chat/completions`, "POST", { messages, max_tokens: 2 })).status, 200);
  for (const path of ["/executions", `/executions/${parent}`, "/stats", "/health"]) {
    assert.is((await send(`${at}${path}`, "GET")).status, 403, path);
  }
  await shared.close();
});

test.run();
