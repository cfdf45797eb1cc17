/** `POST /lab/forward`, compared with isolated passes over the same file. */
import { existsSync, readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ServingModel } from "../../src/client/index.js";
import { forwardLimits } from "../../src/contracts/forward-limits.js";
import { decodeSafetensors } from "../../src/formats/safetensors.js";
import { type Context, Model } from "../../src/native/index.js";
import { demo } from "../native/demo-model.js";
import { startServer, type TestServer, user } from "./support/serving.js";

let server: TestServer;
let model: Model;
let context: Context;
const texts = ["The capital of France is", "The capital of Egypt is"];

test.before(async () => {
  server = await startServer({ threads: 1 });
  model = await Model.open(demo);
  context = await model.createContext({ threads: 1, nCtx: 256, maxSequences: 64 });
});
test.after(async () => {
  await server.close();
  await model.close();
});

async function forward(body: object) {
  const answer = await fetch(`${server.url}/lab/forward`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.is(answer.status, 200, bytes.toString("utf8", 0, 300));
  assert.is(answer.headers.get("content-type"), "application/octet-stream");
  assert.is(Number(answer.headers.get("content-length")), bytes.length);
  return decodeSafetensors(bytes);
}
const refused = async (body: object, status: number, sentence: RegExp) => {
  const answer = await server.post("/lab/forward", body);
  assert.is(answer.status, status, JSON.stringify(answer.body));
  assert.match(answer.body.error, sentence);
};
const tokensOf = (text: string) => model.tokenize(text, { special: true });

test("captures and logits are those of an isolated pass, to the bit", async () => {
  const capture = ["block_out.3", "blocks.6.attn.hook_z", "blocks.2.hook_resid_mid"];
  const { tensors, metadata } = await forward({ sequences: texts, capture, logits: "last" });
  const sequences = await Promise.all(texts.map(async (text) => ({ tokens: await tokensOf(text) })));
  const found = await context.forward({
    sequences,
    captures: [
      { layer: 3, point: "block_out" },
      { layer: 6, point: "head_out" },
      { layer: 2, point: "mid" },
    ],
    logits: "last",
  });
  const length = sequences[0]!.tokens.length;
  assert.equal([...tensors.keys()], ["tokens", "lengths", ...capture, "logits"]);
  assert.equal([...tensors.get("tokens")!.data], [...sequences[0]!.tokens, ...sequences[1]!.tokens]);
  assert.equal(tensors.get("tokens")!.shape, [2, length]);
  assert.equal([...tensors.get("lengths")!.data], [length, length]);
  assert.equal(tensors.get("block_out.3")!.shape, [2, length, 128]);
  assert.equal(tensors.get("blocks.6.attn.hook_z")!.shape, [2, length, 4, 32]);
  for (const [i, name] of capture.entries()) {
    assert.equal(tensors.get(name)!.data, found.captures[i]!.values as Float32Array, name);
  }
  assert.equal(tensors.get("logits")!.shape, [2, 1, model.info.nVocab]);
  assert.equal(tensors.get("logits")!.data, found.logits!.data as Float32Array);
  assert.is(metadata.model, "tapline-demo");
});

test("texts of different lengths give packed rows and an attention tensor per text", async () => {
  const sequences = ["The capital of France is", [1, 5, 9]];
  const capture = ["blocks.0.attn.hook_pattern", "blocks.*.hook_out"];
  const { tensors } = await forward({ sequences, capture, logits: "all", positions: [-1] });
  const [first] = tensors.get("lengths")!.data as unknown as [number];
  assert.equal(tensors.get("tokens")!.shape, [first + 3]);
  assert.equal(tensors.get("blocks.0.attn.hook_pattern/0")!.shape, [4, first, first]);
  assert.equal(tensors.get("blocks.0.attn.hook_pattern/1")!.shape, [4, 3, 3]);
  for (let layer = 0; layer < 8; layer++) {
    assert.equal(tensors.get(`blocks.${layer}.hook_out`)!.shape, [2, 1, 128]);
  }
  assert.equal(tensors.get("logits")!.shape, [first + 3, model.info.nVocab]);
});

test("special tokens are added to texts by default", async () => {
  const lengths = async (more: object) => {
    const { tensors } = await forward({ sequences: [texts[0]], logits: "last", ...more });
    return [...tensors.get("lengths")!.data];
  };
  const { length } = await model.tokenize(texts[0]!, { special: false });
  assert.equal(await lengths({}), [(await tokensOf(texts[0]!)).length]);
  assert.equal(await lengths({ add_special_tokens: false }), [length]);
});

test("edits act on their sequences, with vectors by value", async () => {
  const values = Array.from({ length: 128 }, (_, i) => Math.cos(i));
  const base64 = Buffer.from(Float32Array.from(values).buffer).toString("base64");
  const steer = { kind: "steer", layer: 3, strength: 4, strength_unit: "vector", sequences: [1] };
  const ask = (edits: object[]) =>
    forward({ sequences: texts, capture: ["block_out.3"], logits: "last", edits });
  const plain = await ask([]);
  const given = await ask([{ ...steer, vector: { values } }]);
  const coded = await ask([{ ...steer, vector: { base64 } }]);
  assert.equal(coded.tensors, given.tensors);
  const rows = (file: typeof plain, half: number) => {
    const { data } = file.tensors.get("block_out.3")!;
    return data.slice((half * data.length) / 2, ((half + 1) * data.length) / 2);
  };
  assert.equal(rows(given, 0), rows(plain, 0));
  for (const [i, value] of rows(given, 1).entries()) {
    assert.ok(
      Math.abs(value - (rows(plain, 1)[i]! + 4 * values[i % 128]!)) < 1e-4 * Math.max(1, Math.abs(value)),
    );
  }
  const { layer: _, ...rest } = steer;
  const named = await ask([{ ...rest, at: "blocks.3.hook_resid_post", vector: { values } }]);
  assert.equal(named.tensors, given.tensors);
  const effects = JSON.parse(given.metadata.effects!);
  assert.equal(effects[0], []);
  assert.is(effects[1][0].rows, (await tokensOf(texts[1]!)).length);
});

test("a result as a file is the streamed one, and private to the user", async () => {
  const body = { sequences: texts, capture: ["block_out.*"], logits: "all" };
  const streamed = await forward(body);
  const { status, body: file } = await server.post("/lab/forward", { ...body, transfer: "file" });
  assert.is(status, 200);
  const bytes = readFileSync(file.path);
  assert.is(bytes.length, file.bytes);
  assert.equal(decodeSafetensors(bytes).tensors, streamed.tensors);
});

test("files that no client fetched are deleted with the server", async () => {
  const other = await startServer();
  const { body: file } = await other.post("/lab/forward", {
    sequences: ["Tom"],
    logits: "last",
    transfer: "file",
  });
  assert.ok(existsSync(file.path));
  await other.close();
  assert.not.ok(existsSync(file.path));
});

test("stop_at_layer computes the blocks before it", async () => {
  const { tensors } = await forward({
    sequences: texts,
    capture: ["block_in.4", "block_out.*"],
    stop_at_layer: 4,
  });
  assert.equal([...tensors.keys()].slice(2), [
    "block_in.4",
    ...[0, 1, 2, 3].map((layer) => `block_out.${layer}`),
  ]);
  assert.equal(tensors.get("block_in.4")!.data, tensors.get("block_out.3")!.data);
});

test("a chat is answered between the batches of a long forward call", async () => {
  const sequences = Array.from({ length: 64 }, () => "The capital of France is ".repeat(30));
  const long = forward({ sequences, logits: "last" });
  const chat = await server.post("/v1/chat/completions", { messages: user("Hello"), max_tokens: 4 });
  assert.is(chat.status, 200);
  const { tensors } = await long;
  assert.equal(tensors.get("logits")!.shape, [64, 1, model.info.nVocab]);
});

test("a client that disconnects ends its call, and the next one is answered", async () => {
  const sequences = Array.from({ length: 64 }, () => "The capital of France is ".repeat(30));
  const gone = new AbortController();
  const long = fetch(`${server.url}/lab/forward`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ sequences, logits: "all" }),
    signal: gone.signal,
  });
  setTimeout(() => gone.abort(), 30);
  await long.then((answer) => answer.arrayBuffer()).catch(() => {});
  const { tensors } = await forward({ sequences: ["Tom"], logits: "last" });
  assert.is(tensors.get("logits")!.shape[0], 1);
  assert.equal(server.faults, []);
});

test("calls beyond the queue are refused with 429", async () => {
  const body = { sequences: Array.from({ length: 64 }, () => "The capital ".repeat(60)), logits: "last" };
  const many = forwardLimits.waiting + 8;
  const answers = await Promise.all(
    Array.from({ length: many }, (_, i) =>
      server.post("/lab/forward", {
        ...(i === 0 ? body : { sequences: ["Tom"], logits: "last" }),
        transfer: "file",
      }),
    ),
  );
  const counts = (status: number) => answers.filter((answer) => answer.status === status).length;
  assert.is(counts(200) + counts(429), many);
  assert.ok(counts(429) >= 1, `${counts(429)} refusals`);
  const { body: refusal } = answers.find(({ status }) => status === 429)!;
  assert.match(refusal.error, /^64 forward calls are waiting; the limit is 64\.$/);
});

test("a request that cannot be run is refused by field", async () => {
  const good = { sequences: texts, capture: ["block_out.3"] };
  await refused({ ...good, sequences: [] }, 400, /sequences/);
  await refused({ ...good, unknown: 1 }, 400, /unknown/);
  await refused({ ...good, model: "other" }, 409, /resident model is tapline-demo, not other\.$/);
  await refused({ sequences: texts }, 400, /^A forward pass needs captures or logits\.$/);
  await refused(
    { ...good, capture: ["blocks.3.hook_nothing"] },
    400,
    /^capture\[0\]: "blocks\.3\.hook_nothing" is not a point/,
  );
  await refused({ ...good, capture: ["block_out.8"] }, 400, /Layer 8 does not exist/);
  await refused({ ...good, capture: ["router.0"] }, 400, /is not a point of this model/);
  await refused({ ...good, stop_at_layer: 2 }, 400, /block 3 is not computed with stop_at_layer 2\.$/);
  await refused(
    { ...good, stop_at_layer: 4, logits: "last" },
    400,
    /^stop_at_layer: logits need every block/,
  );
  await refused(
    { ...good, positions: [40] },
    400,
    /^Position 40 does not exist in sequence 0, which has \d tokens\.$/,
  );
  await refused({ ...good, sequences: [[99_999]] }, 400, /vocabulary/);
  const edit = { kind: "steer", layer: 2, vector: { values: [1, 2] } };
  await refused(
    { ...good, edits: [{ ...edit, at: "mid.1" }] },
    400,
    /^edits\[0\]: at and layer are mutually exclusive\.$/,
  );
  await refused(
    { ...good, edits: [{ kind: "ablate", at: "mid.x" }] },
    400,
    /^edits\[0\]\.at: "mid\.x" is not a point/,
  );
  await refused({ ...good, edits: [edit] }, 400, /2 values/);
  await refused({ ...good, edits: [{ ...edit, vector: "nobody" }] }, 400, /nobody/);
  await refused(
    { ...good, edits: [{ ...edit, vector: { base64: "AAAAAAA=" } }] },
    400,
    /^edits\[0\]\.vector\.base64: must be float32 numbers, got 5 bytes\.$/,
  );
  await refused(
    { ...good, edits: [{ kind: "scale", layer: 2 }] },
    400,
    /^edits\[0\]\.strength is required for scale\.$/,
  );
  await refused(
    { ...good, edits: [{ kind: "ablate", layer: 2, sequences: [2] }] },
    400,
    /sequence 2 does not exist; the last one is 1\.$/,
  );
  await refused(
    { ...good, edits: [{ kind: "ablate", layer: 2, heads: [0] }] },
    400,
    /only possible at head_out, got block_out\.$/,
  );
});

test("the TypeScript client returns tensors by name, and refusals as errors", async () => {
  const client = new ServingModel(server.url);
  const run = await client.forward({
    sequences: ["The capital of France is", [1, 2]],
    capture: ["block_out.7"],
    edits: [{ kind: "ablate", at: "ffn_out.2", sequences: [1] }],
    logits: "last",
  });
  const [first] = run.tensors.get("lengths")!.data;
  assert.equal(run.tensors.get("block_out.7")!.shape, [first! + 2, 128]);
  assert.equal(run.tensors.get("logits")!.shape.slice(0, 2), [2, 1]);
  assert.equal(
    run.effects.map((edits) => edits.map(({ rows }) => rows)),
    [[], [2]],
  );
  const refused = await client.forward({ sequences: ["a"], capture: ["mid.99"] }).catch((error) => error);
  assert.match(refused.message, /Layer 99 does not exist/);
});

test("a large result to a slow client leaves no listeners behind", async () => {
  const warnings: Error[] = [];
  const heard = (warning: Error) => warnings.push(warning);
  process.on("warning", heard);
  // Each of 24 tensors fills the socket's buffers.
  const body = { sequences: new Array(64).fill(texts[0]), capture: ["block_out.*", "block_in.*", "mid.*"] };
  for (let round = 0; round < 2; round++) await forward(body);
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", heard);
  assert.equal(
    warnings.map(({ name }) => name),
    [],
  );
});

test.run();
