/** What the clients wait for, and for how long, with a network and a clock of the test's; what they leave behind. */
import { EventEmitter, getEventListeners } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import http, { type IncomingMessage } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import timers from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Lab, ServingModel, TaplineError, TimeoutError } from "../../src/client/index.js";
import { exchange } from "../../src/client/research-transport.js";
import { Transport } from "../../src/client/transport.js";
import { writeWhole } from "../../src/client/whole-file.js";
import { withTime } from "../support/with-time.js";
import { scripted, sendJson } from "./scripted.js";

const id = "0123456789abcdef0123456789abcdef";
const folder = mkdtempSync(join(tmpdir(), "tapline-transport-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const rejection = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => assert.unreachable("It should have been refused.") as never,
    (error) => error,
  );

/** Runs something while each request fails in a way, and gives the longest silences that were set. */
async function without(code: string, run: () => Promise<unknown>): Promise<number[]> {
  const { request } = http;
  const silences: number[] = [];
  http.request = (() => {
    const outgoing = Object.assign(new EventEmitter(), {
      setTimeout: (ms: number) => silences.push(ms),
      end: () => queueMicrotask(() => outgoing.emit("error", Object.assign(new Error("failed"), { code }))),
      destroy() {},
    });
    return outgoing;
  }) as unknown as typeof request;
  syncBuiltinESMExports();
  try {
    await run();
  } finally {
    http.request = request;
    syncBuiltinESMExports();
  }
  return silences;
}

test("timeouts: 10 s, an hour for downloads, 75 s and 10 min for models", async () => {
  const texts = { name: "v", positive: [], negative: [] };
  const all = (options?: { timeoutMs: number }) =>
    without("ECONNRESET", async () => {
      const lab = new Lab(undefined, options);
      const serving = new ServingModel(undefined, options);
      for (const call of [
        () => lab.health(),
        () => lab.arrays(id, "a.npz"),
        () => lab.addDictionary("d", "x"),
        () => lab.addLens("l", "x"),
        () => serving.capabilities(),
        () => serving.makeVector({ ...texts, layers: [1] }),
        () => serving.makeProbe({ ...texts, layer: 1 }),
      ])
        await rejection(call());
    });
  assert.equal(await all(), [10_000, 10_000, 3_600_000, 3_600_000, 75_000, 600_000, 600_000]);
  assert.equal(await all({ timeoutMs: 7 }), Array(7).fill(7));
});

test("if nothing listens on this machine, the error names the start command", async () => {
  const sentences: string[] = [];
  await without("ECONNREFUSED", async () => {
    for (const [address, service] of [
      ["http://127.0.0.1:8980", "lab"],
      ["http://localhost:8971", "serve"],
      ["http://[::1]:8980", "serve"],
      ["http://192.0.2.1:8980", "lab"],
      ["http://127.0.0.1:8980", undefined],
    ] as const) {
      const transport = new Transport(address, 1000, service === undefined ? {} : { service });
      sentences.push((await rejection(transport.json("/"))).message);
    }
  });
  assert.equal(sentences, [
    "Nothing listens at http://127.0.0.1:8980; start it with tapline lab.",
    "Nothing listens at http://localhost:8971; start it with tapline serve.",
    "Nothing listens at http://[::1]:8980; start it with tapline serve --port 8980.",
    "Nothing listens at http://192.0.2.1:8980; is the service running?",
    "Nothing listens at http://127.0.0.1:8980; is the service running?",
  ]);
});

test("a connection that breaks is told by its code; silence by its length", async () => {
  await without("EPIPE", async () => {
    const error = await rejection(new Lab("http://127.0.0.1:1").health());
    assert.is(error.message, "The connection to http://127.0.0.1:1 broke (EPIPE).");
    assert.instance(error, TaplineError);
  });
  const service = await scripted(() => {});
  const error = await rejection(new Lab(service.url, { timeoutMs: 50 }).health());
  await service.close();
  assert.instance(error, TimeoutError);
  assert.is(error.message, `No response from ${service.url} for 0.05 s.`);
});

test("own headers are sent with every request; bytes stay raw, the rest is JSON", async () => {
  const service = await scripted((_request, response) => sendJson(response, 200, {}));
  const transport = new Transport(service.url, 1000, { headers: { "X-A": "b" } });
  await transport.json("/1");
  await transport.json("/2", { method: "POST", body: { a: "é" } });
  await transport.json("/3", { method: "PUT", body: Buffer.from("bytes") });
  await service.close();
  assert.equal(
    service.seen.map(({ method, path, headers, body }) => [
      `${method} ${path}`,
      headers["x-a"],
      headers["content-type"],
      headers["content-length"],
      body,
    ]),
    [
      ["GET /1", "b", undefined, undefined, ""],
      ["POST /2", "b", "application/json", "10", '{"a":"é"}'],
      ["PUT /3", "b", "application/octet-stream", "5", "bytes"],
    ],
  );
});

test("a job is looked at every half second for half an hour, unless told otherwise", async () => {
  const { setTimeout: real } = timers;
  const service = await scripted((_request, response) => sendJson(response, 200, { id, status: "queued" }));
  const pauses: number[] = [];
  let ms = 1_000_000;
  const atOnce = (pause: number, ...rest: unknown[]) => {
    pauses.push(pause);
    // A few looks, and then nearly the whole time.
    ms += pauses.length === 2 ? 1_798_999 : pause;
    return (real as (...words: unknown[]) => Promise<unknown>)(0, ...rest);
  };
  await withTime({ "performance.now": () => ms, "timers.setTimeout": atOnce }, async () => {
    const lab = new Lab(service.url);
    const error = await rejection(lab.wait(id));
    assert.is(error.message, `Job ${id} is still queued after 1800 s.`);
    // The last pause is what is left; at the deadline itself nobody waits any more.
    assert.equal([pauses.splice(0), service.seen.length], [[500, 500, 500, 1], 5]);
    service.seen.length = 0;
    const short = await rejection(lab.wait(id, { timeoutMs: 10, intervalMs: 4 }));
    assert.is(short.message, `Job ${id} is still queued after 0.01 s.`);
    assert.is(pauses[0], 4);
  }).finally(() => service.close());
});

test("a download that cannot be written lets its connection go", async () => {
  const { open } = Transport.prototype;
  const opened: IncomingMessage[] = [];
  Transport.prototype.open = async function (...words) {
    const response = await open.apply(this, words);
    opened.push(response);
    return response;
  };
  const service = await scripted((_request, response) => void response.writeHead(200).write("half"));
  try {
    const to = join(folder, "none", "a.npz");
    const error = await rejection(new Lab(service.url).artifact(id, "a.npz", to));
    assert.is((error as NodeJS.ErrnoException).code, "ENOENT");
    assert.equal(
      opened.map(({ destroyed }) => destroyed),
      [true],
    );
  } finally {
    Transport.prototype.open = open;
    await service.close();
  }
});

test("a folder is not replaced by a file, and nothing is left beside it", async () => {
  const inside = mkdtempSync(join(folder, "kept-"));
  await rejection(writeWhole(inside, [Buffer.from("x")]));
  assert.equal(readdirSync(folder), [inside.slice(folder.length + 1)]);
});

const descriptors = process.platform === "linux" ? test : test.skip;
descriptors("what was written is closed", async () => {
  const open = () => readdirSync("/proc/self/fd").length;
  await writeWhole(join(folder, "one"), [Buffer.from("x")]);
  const before = open();
  for (let round = 0; round < 20; round++) await writeWhole(join(folder, "one"), [Buffer.from("x")]);
  assert.ok(open() < before + 10, `${open() - before} more`);
});

test("an exchange that is over hears its signal no more", async () => {
  const { signal } = new AbortController();
  const plain = await scripted((_request, response) => response.end("x"));
  const call = { method: "GET", token: null, maxBytes: 10, signal } as const;
  await rejection(exchange({ ...call, url: new URL(plain.url.replace("http:", "https:")) }));
  assert.equal(getEventListeners(signal, "abort"), []);
  await plain.close();
});

test("token requests are passed on unchanged; reasoning is separated", async () => {
  const service = await scripted((_request, response) => {
    const event = (choice: object) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
    response.write(event({ index: 1, delta: { reasoning_content: "Hm, " } }));
    response.write(event({ index: 1, delta: { reasoning_content: "so." } }));
    response.write(event({ index: 1, delta: { content: "Yes" }, finish_reason: "stop" }));
    response.end(`${event({ index: 1, delta: { content: "!" } })}data: {}\n\ndata: [DONE]\n\n`);
  });
  const answers = await new ServingModel(service.url).answers([5, 6]);
  await service.close();
  assert.equal(answers, [{ choice: 1, text: "Yes!", reasoning: "Hm, so.", finishReason: "stop" }]);
  const [asked] = service.seen;
  assert.is(asked?.path, "/v1/completions");
  assert.equal(JSON.parse(asked?.body as string), { prompt: [5, 6], stream: true });
});

test("the library of a served model: each thing by its name, files as they are", async () => {
  const file = Buffer.from("file");
  const service = await scripted(({ path }, response) => {
    if (path.startsWith("/lab/captures/")) response.end("rows");
    else sendJson(response, 200, { vectors: ["v"], probes: ["p"], name: "a b" });
  });
  const serving = new ServingModel(service.url);
  const request = { name: "a b", positive: [], negative: [], layers: [1] };
  const made = { name: "a b", positive: [], negative: [], layer: 1 };
  assert.equal(await serving.vectors(), ["v"]);
  assert.equal(await serving.probes(), ["p"]);
  assert.is((await serving.vector("a b")).name, "a b");
  assert.is((await serving.probe("a b")).name, "a b");
  await serving.makeVector(request);
  await serving.makeProbe(made);
  await serving.putVector("a b", file);
  await serving.putProbe("a b", file);
  await serving.putProbe("a b", file, { layer: 0 });
  assert.is(await serving.removeVector("a b"), undefined);
  assert.is(await serving.removeProbe("a b"), undefined);
  assert.is((await serving.capture("a/b")).toString(), "rows");
  await serving.capture("c", { format: "npz" });
  await service.close();
  assert.equal(
    service.seen.map(({ method, path, body }) => `${method} ${path} ${body}`.trim()),
    [
      "GET /lab/vectors",
      "GET /lab/probes",
      "GET /lab/vectors/a%20b",
      "GET /lab/probes/a%20b",
      `POST /lab/vectors ${JSON.stringify(request)}`,
      `POST /lab/probes ${JSON.stringify(made)}`,
      "PUT /lab/vectors/a%20b file",
      "PUT /lab/probes/a%20b file",
      "PUT /lab/probes/a%20b?layer=0 file",
      "DELETE /lab/vectors/a%20b",
      "DELETE /lab/probes/a%20b",
      "GET /lab/captures/a%2Fb?format=safetensors",
      "GET /lab/captures/c?format=npz",
    ],
  );
});

test("putVector sends rows by layer as one safetensors file in layer order", async () => {
  const service = await scripted((_request, response) => sendJson(response, 200, { name: "v" }));
  const serving = new ServingModel(service.url);
  // A row may be part of a longer array.
  await serving.putVector("v", {
    10: Float32Array.of(9, 2, 0.5, 9).subarray(1, 3),
    2: Float32Array.of(1, -12.5),
  });
  await service.close();
  const { method, path, bytes: file } = service.seen[0]!;
  assert.is(`${method} ${path}`, "PUT /lab/vectors/v");
  const begin = 8 + Number(file.readBigUInt64LE(0));
  const { __metadata__, ...tensors } = JSON.parse(file.subarray(8, begin).toString());
  assert.equal(tensors, {
    layer_2: { dtype: "F32", shape: [2], data_offsets: [0, 8] },
    layer_10: { dtype: "F32", shape: [2], data_offsets: [8, 16] },
  });
  // 1, -12.5, 2 and 0.5 as little-endian 32-bit floats.
  assert.is(file.subarray(begin).toString("hex"), "0000803f000048c1000000400000003f");
});

test.run();
