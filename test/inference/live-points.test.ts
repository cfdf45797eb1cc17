/** Readings at any point of a block, features of saved dictionaries and saved lenses, while an answer is generated. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ServingModel } from "../../src/client/index.js";
import { Lenses, Probes } from "../../src/library/index.js";
import { Model } from "../../src/native/index.js";
import { readNpz } from "../lab/npz-reader.js";
import { TestRandom } from "../support/random.js";
import { keepCorner } from "./support/corner.js";
import {
  aroundServer,
  complete,
  home,
  layer,
  question,
  type Reply,
  server,
  vectorOf,
} from "./support/live.js";

aroundServer();

const hidden = 128;
const last = 7;
const near = (value: number, expected: number, room: number, what = "") =>
  assert.ok(Math.abs(value - expected) <= room, `${what}: ${value}, not ${expected}`);
const length = (row: Float32Array) => Math.sqrt(row.reduce((sum, value) => sum + value * value, 0));

/** An answer's readings, and the rows of a separate pass over the same tokens at a place. */
async function read(watch: object, more: object = {}) {
  const body = await complete(
    question("Japan"),
    { watch: { positions: "all", ...watch } },
    { max_tokens: 4, ...more },
  );
  const { prompt, tokens, capture } = body.choices[0].tapline;
  const ids = [...prompt, ...tokens.slice(0, -1)].map((entry: Reply) => entry.token_id);
  const entries = [
    ...prompt.map((entry: Reply, row: number) => ({ entry, row })),
    // A generated token is read in the row that predicted it.
    ...tokens.map((entry: Reply, at: number) => ({ entry, row: prompt.length - 1 + at })),
  ] as { entry: Reply; row: number }[];
  const rowsAt = async (place: string) => {
    const { tensors } = await new ServingModel(server.url).forward({ sequences: [ids], capture: [place] });
    const { shape, data } = tensors.get(place) as { shape: readonly number[]; data: Float32Array };
    const width = data.length / ids.length;
    return { shape, rows: ids.map((_, row) => data.subarray(row * width, (row + 1) * width)) };
  };
  return { entries, rowsAt, capture, ids, promptTokens: prompt.length as number };
}

for (const point of ["block_in", "head_out", "attn_out", "mid", "ffn_in", "ffn_out", "block_out"] as const) {
  test(`norms and activations at ${point} are those of a separate pass`, async () => {
    const { entries, rowsAt, capture, ids } = await read({
      layers: [2, layer],
      point,
      norms: true,
      states: true,
    });
    if (point === "block_out") assert.is(capture.point, undefined);
    else assert.is(capture.point, point);
    const file = readNpz((await server.get(`/lab/captures/${capture.id}?format=npz`)).bytes);
    assert.equal([...file.get("token_ids")!.data], ids);
    for (const at of [2, layer]) {
      const { rows } = await rowsAt(`${point}.${at}`);
      const saved = file.get(`layer_${at}`)!;
      assert.equal(saved.shape, [ids.length, rows[0]!.length]);
      for (const { entry, row } of entries) {
        const expected = length(rows[row] as Float32Array);
        near(entry.norms[at], expected, 1e-4 * expected, `${point}.${at} row ${row}`);
      }
      for (const [index, value] of rows.flatMap((row) => [...row]).entries()) {
        near(saved.data[index] as number, value, 1e-3 * length(rows[0] as Float32Array));
      }
    }
  });
}

test("single heads are read as one vector", async () => {
  const { entries, rowsAt, capture } = await read({
    ...{ layers: [layer], point: "head_out", heads: [3, 1], norms: true, states: true },
  });
  assert.equal(capture.heads, [3, 1]);
  const { rows, shape } = await rowsAt(`head_out.${layer}`);
  assert.equal(shape.slice(-2), [4, 32]);
  const file = readNpz((await server.get(`/lab/captures/${capture.id}?format=npz`)).bytes);
  for (const { entry, row } of entries) {
    const whole = rows[row] as Float32Array;
    const part = Float32Array.from([...whole.subarray(96, 128), ...whole.subarray(32, 64)]);
    near(entry.norms[layer], length(part), 1e-4 * length(part));
    const saved = file.get(`layer_${layer}`)!.data.subarray(row * 64, (row + 1) * 64);
    for (const [at, value] of part.entries()) near(saved[at] as number, value, 1e-3 * length(part));
  }
});

test("projections and probes are read at their points", async () => {
  const random = new TestRandom(4);
  const weight = random.normals(hidden).map((value) => value / 20);
  const numbers = {
    weight,
    mean: new Float32Array(hidden),
    std: new Float32Array(hidden).fill(1),
    bias: 0.25,
  };
  const { model } = server.service.library;
  await new Probes(home).put("inner", 3, numbers, model, { note: "", point: "ffn_out" });
  const watch = { layers: [layer], point: "mid", projections: ["unknown"], probes: ["inner"] };
  const { entries, rowsAt } = await read(watch);
  const [mid, ffn] = [await rowsAt(`mid.${layer}`), await rowsAt("ffn_out.3")];
  const vector = await vectorOf("unknown", layer);
  const dot = (a: Float32Array, b: Float32Array) =>
    a.reduce((sum, value, at) => sum + value * (b[at] as number), 0);
  for (const { entry, row } of entries) {
    const [inside, added] = [mid.rows[row] as Float32Array, ffn.rows[row] as Float32Array];
    near(entry.projections.unknown, dot(vector, inside) / length(vector), 1e-3 * length(inside));
    near(entry.probes.inner, 1 / (1 + Math.exp(-dot(weight, added) - 0.25)), 1e-4);
  }
});

test("the most active features of each token are as computed by hand", async () => {
  await keepCorner("stream", `blocks.${layer}.hook_resid_post`);
  await keepCorner("middle", "blocks.3.hook_resid_mid");
  const features = [{ dictionary: "stream", top: 2 }, { dictionary: "middle" }];
  const { entries, rowsAt } = await read({ features });
  const places = { stream: await rowsAt(`block_out.${layer}`), middle: await rowsAt("mid.3") };
  for (const { entry, row } of entries) {
    for (const [name, top] of [
      ["stream", 2],
      ["middle", 5],
    ] as const) {
      const values = places[name].rows[row] as Float32Array;
      const value = (f: number) => values[f] as number;
      const expected = [value(0), value(1) + 0.5, value(2), -value(0)]
        .map((activation, feature) => ({ feature, activation }))
        .filter(({ activation }) => activation > 0)
        .sort((a, b) => b.activation - a.activation)
        .slice(0, top);
      const found = entry.features[name] as typeof expected;
      assert.equal(
        found.map(({ feature }) => feature),
        expected.map(({ feature }) => feature),
      );
      for (const [at, { activation }] of found.entries())
        near(activation, expected[at]?.activation as number, 1e-3 * length(values));
    }
  }
});

test("features of positions that the last block skips are null", async () => {
  await keepCorner("end", `blocks.${last}.hook_resid_post`);
  const { entries, promptTokens } = await read({ features: [{ dictionary: "end" }] });
  const unread = entries.filter(({ entry }) => entry.features.end === null).map(({ row }) => row);
  assert.equal(unread, [...Array(promptTokens - 1).keys()]);
});

test("a saved lens reads each layer that it translates", async () => {
  const random = new TestRandom(8);
  // Near the identity, so that both lenses name sensible tokens and differ.
  const matrix = random.normals(hidden * hidden).map((value) => value / 16);
  for (let i = 0; i < hidden; i++) matrix[i * (hidden + 1)] = (matrix[i * (hidden + 1)] as number) + 1;
  const bias = random.normals(hidden);
  const lens = {
    ...{ layout: "test", kind: "tuned", hidden, modelLayers: 8, layers: [layer], residual: true, notes: [] },
    read: async () => ({ matrix, bias }),
  };
  await new Lenses(home).keep("tuned", lens as never, { source: null });
  const { entries, rowsAt } = await read({ layers: [2, layer], lens: 3, lenses: ["tuned"] });
  const { rows } = await rowsAt(`block_out.${layer}`);
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 64 });
  try {
    const states = Float32Array.from(
      rows.flatMap((row) =>
        Array.from({ length: hidden }, (_, out) => {
          let sum = (bias[out] as number) + (row[out] as number);
          for (let at = 0; at < hidden; at++)
            sum += (matrix[out * hidden + at] as number) * (row[at] as number);
          return sum;
        }),
      ),
    );
    const [plain, translated] = await Promise.all(
      [Float32Array.from(rows.flatMap((row) => [...row])), states].map(async (each) => {
        const [reading] = await context.readLens({ places: [{ states: each }], top: 3 });
        return reading!;
      }),
    );
    let different = 0;
    for (const { entry, row } of entries) {
      assert.equal(Object.keys(entry.lenses.tuned), [String(layer)]);
      for (const [given, expected] of [
        [entry.lens[layer], plain],
        [entry.lenses.tuned[layer], translated],
      ] as const) {
        for (let at = 0; at < 3; at++) {
          near(given[at].probability, expected!.probabilities[row * 3 + at] as number, 2e-3);
        }
        assert.is(given[0].token_id, expected!.tokenIds[row * 3]);
      }
      if (entry.lens[layer][0].token_id !== entry.lenses.tuned[layer][0].token_id) different++;
    }
    assert.ok(different > 0);
  } finally {
    await context.close();
    await model.close();
  }
});

test("edits at a point are read before they act", async () => {
  const watch = { layers: [layer], point: "mid", norms: true, positions: "prompt" };
  const plain = await complete(question("Japan"), { watch });
  const edited = await complete(question("Japan"), {
    watch,
    interventions: [{ kind: "ablate", layer, point: "mid", strength: 0.5, positions: "all" }],
  });
  const norms = (body: Reply) => body.choices[0].tapline.prompt.map((entry: Reply) => entry.norms[layer]);
  assert.equal(norms(edited), norms(plain));
  const [effect] = edited.choices[0].tapline.interventions;
  near(effect.mean_change_length, 0.5 * effect.mean_row_length, 1e-3 * effect.mean_row_length);
});

test("refuses impossible readings by field", async () => {
  const refused = async (watch: object): Promise<string> => {
    const { status, body } = await server.post("/v1/completions", { prompt: "x", tapline: { watch } });
    assert.is(status, 400, JSON.stringify(body));
    return body.error.message;
  };
  assert.match(await refused({ layers: [1], point: "attention", norms: true }), /point/);
  assert.match(
    await refused({ layers: [1], heads: [0], norms: true }),
    /heads are only possible at head_out, got block_out/,
  );
  assert.match(
    await refused({ layers: [1], point: "head_out", heads: [9], norms: true }),
    /Head 9 does not exist/,
  );
  assert.match(await refused({ layers: [1], point: "attn_out", lens: 2 }), /lens.* not attn_out/);
  assert.match(
    await refused({ layers: [5], point: "head_out", projections: ["unknown"] }),
    /not possible at head_out/,
  );
  assert.match(await refused({ layers: [5], lenses: ["tuned"], norms: true }), /lenses.*needs lens/);
  assert.match(
    await refused({ layers: [2], lens: 1, lenses: ["tuned"] }),
    /tuned has layers 5, but none of them/,
  );
  assert.match(
    await refused({ features: [{ dictionary: "nowhere" }] }),
    /features\[0\]\.dictionary.*nowhere/,
  );
  assert.match(
    await refused({ features: [{ dictionary: "stream" }, { dictionary: "stream" }] }),
    /listed twice/,
  );
  assert.match(await refused({ features: [{ dictionary: "stream", top: 51 }] }), /top/);
});

test("captures at a point are encoded by dictionaries of that point only", async () => {
  const { capture } = await read({ layers: [3], point: "mid", norms: true, states: true });
  const answer = (name: string) =>
    server.get(`/lab/captures/${capture.id}/features?dictionary=${name}&top=1`);
  assert.is((await answer("middle")).status, 200);
  const { status, body } = await answer("stream");
  assert.is(status, 400);
  assert.match(JSON.stringify(body), /The dictionary stream reads block_out; the capture has mid/);
});

test.run();
