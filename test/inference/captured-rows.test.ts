/** Rows that requests keep, probes that are made of rows, and scores as they are told. On stand-ins. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { decodeSafetensors } from "../../src/formats/safetensors.js";
import { makeProbe } from "../../src/inference/live/make-probe.js";
import { ProbeScores } from "../../src/inference/live/probe-scores.js";
import { captureNpz, captureSafetensors, RowStore } from "../../src/inference/live/row-store.js";
import type { ProbeNumbers, ProbeSaid } from "../../src/library/probes.js";
import type { CapturedRows } from "../../src/native/live.js";
import { readNpz } from "../lab/npz-reader.js";

/** Rows with so many values, of four bytes, and eight bytes for each row's index and token. */
function rows(id: string, count: number, values: number): CapturedRows {
  return {
    id,
    rows: new Int32Array(count),
    tokens: new Int32Array(count),
    promptTokens: 1,
    layers: [{ layer: 0, values: new Float32Array(values) }],
  } as CapturedRows;
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

test("captured rows as files: a matrix per layer; nothing without captures", async () => {
  const store = new RowStore(1000);
  const [index, token] = [Int32Array.of(4, 9), Int32Array.of(70, 71)];
  const layers = [{ layer: 3, values: Float32Array.of(1, 2, 3, 4, 5, 6) }];
  store.add({ ...rows("a", 2, 0), rows: index, tokens: token, layers, promptTokens: 5 } as CapturedRows, "m");
  store.add(rows("none", 0, 0), "m");
  const told = (id: string) => decodeSafetensors(captureSafetensors(store.get(id) as never));
  assert.equal(told("a").metadata, {
    tapline: "capture",
    model: "m",
    point: "block_out",
    prompt_tokens: "5",
    missing: "[]",
  });
  // Of the last block, a row that was not computed.
  const holes = [
    ...layers,
    { layer: 7, values: Float32Array.of(Number.NaN, Number.NaN, Number.NaN, 1, 2, 3) },
  ];
  store.add(
    { ...rows("b", 2, 0), rows: index, tokens: token, layers: holes, promptTokens: 5 } as CapturedRows,
    "m",
  );
  assert.is(told("b").metadata.missing, '[{"layer":7,"rows":1}]');
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
      const state = Float32Array.of(name === "good" ? 1 : -1, Number(number) % 3);
      return [{ state, excluded: { bos: 1, outliers: name === "good" ? 2 : 0 } }];
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
  // A side's texts are counted from its own first one.
  const even = (await make({ negative: side("bad", 9) })) as unknown as [0, 0, 0, 0, ProbeSaid];
  assert.match(even[4].note, /on 9 positive and 9 negative texts, .*; 2 texts held out\.$/);
  asked.splice(14);
  assert.is(said.report?.separation, 1);
  assert.ok((said.report?.shuffled_separation ?? 1) < 1, `${said.report?.shuffled_separation}`);
  const mean = ((await make({ position: "mean" })) as unknown as [0, 0, 0, 0, ProbeSaid])[4];
  assert.match(mean.note, /, mean over tokens without BOS and outliers, block outputs;/);
  assert.equal(asked[14], ["good 0", [4], "mean", 256]);
  // Fourteen texts, and two more activations of each of the nine positive ones.
  assert.equal([mean.report?.excluded, said.report?.excluded], [{ bos: 14, outliers: 18 }, undefined]);
});

test("watched probes: scores per token by name, whole and streamed", () => {
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

test.run();
