/** Readings while an answer is made: norms, projections, the lens, probes, captured rows. Each as in an isolated pass. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { RowStore } from "../../src/inference/live/row-store.js";
import { Model } from "../../src/native/index.js";
import { readNpz } from "../lab/npz-reader.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { keepCorner } from "./support/corner.js";
import {
  aroundServer,
  complete,
  layer,
  question,
  type Reply,
  server,
  steer,
  textOf,
  vectorOf,
} from "./support/live.js";
import { streamEvents } from "./support/serving.js";

aroundServer();

test("captured rows give each token's strongest features, as computed by hand", async () => {
  const { nEmbd: hidden } = server.service.engine.info;
  await keepCorner("corner", `blocks.${layer}.hook_resid_post`, hidden);
  const body = await complete(question("Japan"), { watch: { layers: [layer], states: true } });
  const { capture } = body.choices[0].tapline;
  const path = `/lab/captures/${capture.id}`;
  const kept = readNpz((await server.get(`${path}?format=npz`)).bytes);
  const [rows, states] = [kept.get("rows")!.data, kept.get(`layer_${layer}`)!.data];
  const { status, body: read } = await server.get(`${path}/features?dictionary=corner&top=2`);
  assert.is(status, 200);
  assert.is(read.prompt_tokens, body.usage.prompt_tokens);
  assert.equal([read.dictionary, read.layer], ["corner", layer]);
  assert.equal(
    read.rows.map(({ index }: { index: number }) => index),
    [...rows],
  );
  for (const [at, { features: told, active }] of read.rows.entries()) {
    const value = (f: number) => states[at * hidden + f] as number;
    const expected = [value(0), value(1) + 0.5, value(2), -value(0)]
      .map((activation, feature) => ({ feature, activation }))
      .filter(({ activation }) => activation > 0)
      .sort((a, b) => b.activation - a.activation);
    assert.is(active, expected.length);
    assert.equal(
      told.map(({ feature }: { feature: number }) => feature),
      expected.slice(0, 2).map(({ feature }) => feature),
    );
    for (const [place, { activation }] of told.entries()) {
      assert.ok(Math.abs(activation - (expected[place]?.activation as number)) < 1e-4);
    }
  }
  const refused = async (query: string) => {
    const { status, body } = await server.get(`${path}/features${query}`);
    return [status, body.error.message ?? body.error];
  };
  assert.equal(await refused(""), [400, "dictionary: the name of a saved dictionary is required."]);
  assert.is((await refused("?dictionary=nowhere"))[0], 400);
  assert.equal(await refused("?dictionary=corner&top=101"), [400, "top: must be a number from 1 to 100."]);
  const elsewhere = await complete(question("Japan"), { watch: { layers: [2], states: true } });
  const other = await server.get(
    `/lab/captures/${elsewhere.choices[0].tapline.capture.id}/features?dictionary=corner`,
  );
  assert.is(other.status, 400);
  assert.match(JSON.stringify(other.body), /corner reads block 5; the capture has 2\./);
  assert.is((await server.get("/lab/captures/cap-0-0/features?dictionary=corner")).status, 404);
  const { captures } = (await server.get("/lab/captures")).body as { captures: { id: string }[] };
  for (const { id } of captures) await fetch(`${server.url}/lab/captures/${id}`, { method: "DELETE" });
});

test("norms, projections and the lens of every token are those of an isolated pass", async () => {
  const watch = { layers: [2, layer], norms: true, lens: 2, projections: ["unknown"], positions: "all" };
  const body = await complete(question("Japan"), { watch }, { max_tokens: 6 });
  const { prompt, tokens } = body.choices[0].tapline;
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 128 });
  try {
    const ids = Int32Array.from([
      ...prompt.map((entry: Reply) => entry.token_id),
      ...tokens.map((entry: Reply) => entry.token_id),
    ]);
    assert.equal(
      [...ids.subarray(0, prompt.length)],
      [...(await model.tokenize(question("Japan"), { special: true }))],
    );
    const pass = await context.advance({ tokens: ids, layers: [2, layer], lensTopK: 2 });
    const vector = await vectorOf("unknown", layer);
    const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
    const rows = [...prompt, ...tokens].map((entry, place) => ({
      entry,
      // A generated token is read in the row that chose it.
      row: place < prompt.length ? place : place - 1,
    }));
    for (const { entry, row } of rows) {
      for (const { layer: at, norms, lens, states } of pass.layers) {
        const told = entry.norms[at];
        assert.ok(
          Math.abs(told - norms[row]!) <= 1e-4 * norms[row]!,
          `layer ${at} row ${row}: ${told}, ${norms[row]}`,
        );
        const [first] = entry.lens[at];
        assert.is(first.token_id, lens!.tokenIds[row * 2]);
        assert.ok(Math.abs(first.probability - lens!.probabilities[row * 2]!) < 1e-3);
        if (at !== layer) continue;
        let dot = 0;
        for (let i = 0; i < vector.length; i++) dot += vector[i]! * states!.get(row, i);
        assert.ok(Math.abs(entry.projections.unknown - dot / length) < 1e-2);
      }
    }
    const text = tokens.map((entry: Reply) => entry.token).join("");
    assert.is(text.replace("<|endoftext|>", ""), textOf(body));
  } finally {
    await context.close();
    await model.close();
  }
});

test("watching changes no token, and streams report every token once, in order", async () => {
  const watch = { layers: [4], norms: true };
  const plain = await complete("I think the film was", undefined, {
    max_tokens: 24,
    temperature: 0.9,
    seed: 7,
  });
  const watched = await complete(
    "I think the film was",
    { watch },
    { max_tokens: 24, temperature: 0.9, seed: 7, stream: false },
  );
  assert.is(textOf(watched), textOf(plain));
  const streamed = await server.post("/v1/completions", {
    prompt: "I think the film was",
    max_tokens: 24,
    temperature: 0.9,
    seed: 7,
    stream: true,
    tapline: { watch },
  });
  const entries = streamEvents(streamed.bytes.toString()).flatMap(
    (event: Reply) => event.choices[0]?.tapline?.tokens ?? [],
  );
  assert.equal(
    entries.map(({ index }: Reply) => index),
    [...entries.keys()],
  );
  assert.equal(
    entries.map(({ norms }: Reply) => norms),
    watched.choices[0].tapline.tokens.map(({ norms }: Reply) => norms),
  );
});

test("a probe scores by its formula, stops the answer, and switches an edit on", async () => {
  const width = server.service.engine.info.nEmbd;
  const vector = await vectorOf("unknown", layer);
  const std = new Float32Array(width).fill(2);
  const mean = new Float32Array(width).fill(0.5);
  const weight = vector.map((value) => value / 400);
  const put = await server.put(
    `/lab/probes/odd?layer=${layer}`,
    zipOf({
      weight: npyFile(weight, [width]),
      mean: npyFile(mean, [width]),
      std: npyFile(std, [width]),
      bias: npyFile(Float32Array.of(-0.25), []),
    }),
  );
  assert.is(put.status, 200, JSON.stringify(put.body));
  assert.is(put.body.layer, layer);
  const long = { max_tokens: 20, ignore_eos: true };
  const body = await complete(question("Japan"), { watch: { probes: ["odd"], positions: "all" } }, long);
  const { prompt, tokens } = body.choices[0].tapline;
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 128 });
  // As the server computed it: the prompt at once, then token by token.
  const ids = (entries: Reply[]) => Int32Array.from(entries.map((entry) => entry.token_id));
  const rows: number[][] = [];
  for (const part of [ids(prompt), ...tokens.slice(0, -1).map((entry: Reply) => ids([entry]))]) {
    const { states } = (await context.advance({ tokens: part, layers: [layer] })).layers[0]!;
    rows.push(Array.from({ length: width }, (_, i) => states!.get(part.length - 1, i)));
  }
  await context.close();
  await model.close();
  const scores: number[] = [];
  for (let place = 0; place < tokens.length; place++) {
    let sum = -0.25;
    for (let i = 0; i < width; i++) {
      sum += ((rows[place]![i]! - 0.5) / 2) * weight[i]!;
    }
    scores.push(1 / (1 + Math.exp(-sum)));
    const told = tokens[place].probes.odd;
    assert.ok(Math.abs(told - scores[place]!) < 1e-5, `token ${place}: ${told}, not ${scores[place]}`);
  }
  // The answer ends on the first token whose score, and the one before it, lie above a bound that is met late.
  const pairs = scores.slice(1).map((score, index) => Math.min(score, scores[index]!));
  const bound = [...pairs].sort((a, b) => b - a)[1]!;
  const expected = pairs.findIndex((pair) => pair > bound) + 1;
  assert.ok(expected > 0 && expected < tokens.length - 1, `${expected} of ${tokens.length}`);
  const stopped = await complete(
    question("Japan"),
    { stop_when: { probe: "odd", above: bound + 1e-9, for: 2 }, watch: { probes: ["odd"] } },
    long,
  );
  assert.is(stopped.choices[0].finish_reason, "monitor");
  assert.is(stopped.usage.completion_tokens, expected + 1);
  // An edit that waits for a condition which never comes leaves the answer alone.
  const never = await complete(
    question("Japan"),
    steer("unknown", 4, { when: { probe: "odd", above: 1 } }),
    long,
  );
  assert.is(textOf(never), textOf(body));
  assert.is(never.choices[0].tapline.interventions[0].rows, 0);
  const later = await complete(
    question("Japan"),
    steer("unknown", 4, { when: { probe: "odd", above: bound + 1e-9, for: 2 } }),
    long,
  );
  const [told] = later.choices[0].tapline.interventions;
  assert.ok(told.rows > 0 && told.rows < later.usage.completion_tokens);
});

test("a capture lists the rows that the last block did not compute", async () => {
  const last = server.service.engine.info.nLayer - 1;
  const watch = { layers: [layer, last], states: true, positions: "all" };
  const body = await complete(question("Japan"), { watch }, { max_tokens: 3 });
  const { capture } = body.choices[0].tapline;
  const { prompt_tokens: prompt } = body.usage;
  assert.equal(capture.missing, [{ layer: last, rows: prompt - 1 }]);
  assert.is(
    capture.note,
    `Block ${last} did not compute ${prompt - 1} of the ${prompt + 2} rows; they are NaN.`,
  );
  const { tensors, metadata } = readSafetensors((await server.get(`/lab/captures/${capture.id}`)).bytes);
  assert.equal(JSON.parse(metadata.missing!), capture.missing);
  const { nEmbd } = server.service.engine.info;
  const computed = (at: number) =>
    Array.from(
      { length: prompt + 2 },
      (_, row) => !Number.isNaN(tensors.get(`layer_${at}`)!.data[row * nEmbd]),
    );
  assert.ok(computed(layer).every((there) => there));
  assert.equal(
    computed(last),
    Array.from({ length: prompt + 2 }, (_, row) => row >= prompt - 1),
  );
  await fetch(`${server.url}/lab/captures/${capture.id}`, { method: "DELETE" });
});

test("captured rows equal an isolated pass, in both formats, and are evicted", async () => {
  const { nEmbd: width } = server.service.engine.info;
  const watch = { layers: [2, layer], states: true, positions: "all" };
  const body = await complete(question("Japan"), { watch }, { max_tokens: 5 });
  const { capture } = body.choices[0].tapline;
  const { prompt_tokens: prompt, completion_tokens: answer } = body.usage;
  // The last token that was chosen was read by nobody.
  assert.is(capture.rows, prompt + answer - 1);
  const file = await server.get(`/lab/captures/${capture.id}`);
  const { tensors, metadata } = readSafetensors(file.bytes);
  assert.is(Number(metadata.prompt_tokens), prompt);
  assert.equal(
    [...tensors.get("rows")!.data],
    Array.from({ length: capture.rows }, (_, row) => row),
  );
  const ids = Int32Array.from(tensors.get("token_ids")!.data);
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 128 });
  try {
    assert.equal(
      [...ids.subarray(0, prompt)],
      [...(await model.tokenize(question("Japan"), { special: true }))],
    );
    const pass = await context.advance({ tokens: ids, layers: [2, layer] });
    for (const { layer: at, states } of pass.layers) {
      const { shape, data } = tensors.get(`layer_${at}`)!;
      assert.equal(shape, [capture.rows, width]);
      for (const [place, value] of data.entries()) {
        const expected = states!.get(Math.floor(place / width), place % width);
        assert.ok(Math.abs(value - expected) < 2e-2, `layer ${at} value ${place}: ${value}, not ${expected}`);
      }
    }
  } finally {
    await context.close();
    await model.close();
  }
  const npz = readNpz((await server.get(`/lab/captures/${capture.id}?format=npz`)).bytes);
  assert.equal([...npz.get("layer_5")!.data], [...tensors.get("layer_5")!.data]);
  assert.equal([...npz.get("token_ids")!.data], [...ids]);
  assert.is((await server.get("/lab/captures/cap-0-0")).status, 404);
  assert.is((await server.get(`/lab/captures/${capture.id}?format=csv`)).status, 400);
  const { row_captures: told } = (await server.get("/stats")).body;
  assert.equal([told.kept, told.bytes, told.dropped], [1, capture.rows * (2 * width * 4 + 8), 0]);
  // A store of the size of one and a half such captures holds the newest.
  const store = new RowStore(told.bytes * 1.5);
  const rows = server.service.rows.get(capture.id)!;
  for (const id of ["a", "b", "c"]) store.add({ ...rows, id }, "demo");
  assert.equal([store.list().map(({ id }) => id), store.dropped], [["c"], 2]);
});

/** A .safetensors file of numbers of 32 bits, read by the format's own description. */
function readSafetensors(bytes: Buffer) {
  const length = Number(bytes.readBigUInt64LE(0));
  const { __metadata__: metadata, ...entries } = JSON.parse(bytes.toString("utf8", 8, 8 + length));
  const data = bytes.subarray(8 + length);
  const tensors = new Map(
    Object.entries(entries as Record<string, Reply>).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [from, to],
        },
      ]) => {
        const view = new DataView(data.buffer, data.byteOffset + from, to - from);
        const read = (at: number) => (dtype === "I32" ? view.getInt32(at, true) : view.getFloat32(at, true));
        return [name, { shape, data: Float32Array.from({ length: (to - from) / 4 }, (_, i) => read(4 * i)) }];
      },
    ),
  );
  return { tensors, metadata: metadata as Record<string, string> };
}

test.run();
