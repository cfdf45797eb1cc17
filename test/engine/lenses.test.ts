/** Saved lenses in live requests and in passes: the tokens of a separate reading, and their memory. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type WeightType, writeRandomModel } from "../../bench/models/random-model.js";
import { Engine } from "../../src/native/engine.js";
import type { TranslatorPlaces } from "../../src/native/experiments/experiment.js";
import { backendInfo, type LensReading, Model, narrow } from "../../src/native/index.js";
import type { CapturedRows, LivePlan } from "../../src/native/live.js";
import { demo, scratch } from "../native/demo-model.js";
import { alive } from "../support/alive.js";
import { TestRandom } from "../support/random.js";
import { until } from "../support/until.js";

const folder = scratch();
const random = new TestRandom(35);
/** Elsewhere the head's products depend on the number of rows (test/native/batch-rows.test.ts). */
const exact = /\bAVX512_VNNI = 1/.test(backendInfo().systemInfo);

/** Numbers near the identity in a file: of a matrix in half precision with a bias, and of one in float32. */
async function translatorsIn(name: string, hidden: number) {
  const path = join(folder, name);
  const numbers = () => {
    const matrix = random.normals(hidden * hidden).map((value) => value / Math.sqrt(hidden));
    for (let i = 0; i < hidden; i++) matrix[i * (hidden + 1)]! += 0.5;
    return matrix;
  };
  const [half, single, bias] = [await narrow(numbers(), "f16"), numbers(), random.normals(hidden)];
  writeFileSync(path, Buffer.concat([half, single, bias].map((each) => Buffer.from(each.buffer))));
  const of = (more: object) => ({ path, residual: true, ...more }) as TranslatorPlaces;
  return {
    half: of({ half: true, matrix: 0, bias: half.byteLength + single.byteLength }),
    single: of({ half: false, matrix: half.byteLength }),
    widened: Float64Array.from(half, widenedHalf),
    bias,
  };
}

/** The value of an IEEE binary16. */
function widenedHalf(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return bits >> 15 === 0 ? size : -size;
}

test("a translator in half precision, widened in parts, translates as float64 does", async () => {
  const hidden = 640;
  const path = join(folder, "wide.gguf");
  const shape = { blocks: 1, hidden, feedForward: 64, heads: 10, kvHeads: 2, vocabulary: 512 };
  await writeRandomModel(path, "f16" satisfies WeightType, shape);
  const { half, widened, bias } = await translatorsIn("wide.lens", hidden);
  const model = await Model.open(path, { gpuLayers: 0 });
  try {
    const context = await model.createContext({ threads: 1, nCtx: 32 });
    for (const rows of [1, 11]) {
      const states = random.normals(rows * hidden);
      const translated = new Float32Array(rows * hidden);
      for (let row = 0; row < rows; row++) {
        for (let out = 0; out < hidden; out++) {
          let sum = bias[out]! + states[row * hidden + out]!;
          for (let i = 0; i < hidden; i++) sum += widened[out * hidden + i]! * states[row * hidden + i]!;
          translated[row * hidden + out] = sum;
        }
      }
      const [found] = await context.readLens({ places: [{ states, translator: half }], top: 4 });
      const [expected] = await context.readLens({ places: [{ states: translated }], top: 4 });
      for (const [i, probability] of expected!.probabilities.entries()) {
        // The head rounds rows to halves.
        const off = Math.abs(found!.probabilities[i]! - probability);
        assert.ok(off <= 2e-3 * probability, `${found!.probabilities[i]}, not ${probability}`);
      }
      assert.is(found!.tokenIds[0], expected!.tokenIds[0]);
    }
  } finally {
    await model.close();
  }
});

test("a pass reads its rows through lenses as a separate reading of them does", async () => {
  const model = await Model.open(demo, { gpuLayers: 0 });
  try {
    const { nEmbd, nLayer } = model.info;
    const { half, single } = await translatorsIn("pass.lens", nEmbd);
    const context = await model.createContext({ threads: 1, nCtx: 64 });
    const tokens = Int32Array.from({ length: 9 }, (_, i) => 3 + 7 * i);
    const translators = { 2: half, 5: single } as Record<number, TranslatorPlaces>;
    for (const layers of [
      [2, 5],
      [nLayer - 1, 5],
    ]) {
      await context.reset();
      const { layers: captured, next } = await context.advance({
        ...{ tokens, layers, points: ["block_out", "mid", "attn_out"], lensTopK: 3, lensAnswer: true },
        ...{ nextTopK: 1, keepStates: true },
        lensExtras: {
          translators: Object.entries(translators).map(([layer, each]) => ({ layer: +layer, ...each })),
          measures: true,
        },
      });
      await context.reset();
      const ends = await context.advance({ tokens, layers: [nLayer - 1] });
      const read = captured.filter(({ point }) => point !== "attn_out");
      assert.ok(captured.every(({ point, lens }) => (point === "attn_out") === (lens === undefined)));
      const places = read.flatMap(({ layer, point, states }) => [
        { states: states!.data },
        ...(point === "block_out" && translators[layer]
          ? [{ states: states!.data, translator: translators[layer] }]
          : []),
      ]);
      const targets = new Int32Array(tokens.length).fill(-1);
      targets[tokens.length - 1] = next!.tokenIds[0]!;
      const expected = await context.readLens({
        ...{ places, output: ends.layers[0]!.states!.data, top: 3, entropy: true, targets },
      });
      const found = read.flatMap(({ lens, translated }) => [lens!, ...(translated ? [translated] : [])]);
      assert.equal(found, expected);
      assert.ok(expected.some(({ divergences }) => divergences!.some((each) => each > 0.1)));
    }
  } finally {
    await model.close();
  }
});

/** The whole context of the demo model. */
const slotTokens = 512;

test("live requests read saved lenses together, each row as alone, and free them", async () => {
  const engine = await Engine.open({
    ...{ path: demo, id: "demo", threads: 1, parallel: 3, batch: 32, ctxSize: slotTokens, cacheRamMiB: 0 },
  });
  const model = await Model.open(demo, { gpuLayers: 0 });
  try {
    const { nEmbd } = engine.info;
    const [one, two] = [await translatorsIn("one.lens", nEmbd), await translatorsIn("two.lens", nEmbd)];
    const lenses = {
      one: [one.half, one.single],
      two: [two.single, two.half],
    };
    type Names = (keyof typeof lenses)[];
    const layers = [1, 5];
    const watch = (names: Names, lensTop: number) => ({
      ...{ layers, positions: "all" as const, lensTop },
      lenses: names.map((name) => ({
        name,
        translators: lenses[name].map((each, index) => ({ index, ...each })),
      })),
    });
    // Answers that fill their slots, so that none has ended when the lenses are counted.
    const leaving = new AbortController();
    const begun = ([["one"], ["two"], ["two", "one"]] as Names[]).map(async (names) => {
      const plan: LivePlan = { watch: watch(names, 1) };
      const body = { prompt: "The", max_tokens: slotTokens, ignore_eos: true, stream: true };
      const { parts } = await engine.request("completion", body, leaving.signal, plan);
      await parts!.next();
    });
    await Promise.all(begun);
    assert.is(alive().translators, 4, "both lenses are loaded once");
    leaving.abort();
    const ask = async (prompt: string, names: Names, lensTop: number) => {
      const kept: CapturedRows[] = [];
      const states = { id: "k", bytes: 2 ** 20, keep: (rows: CapturedRows) => void kept.push(rows) };
      const plan: LivePlan = { watch: { ...watch(names, lensTop), states } };
      const body = { prompt, max_tokens: 12, ignore_eos: true, temperature: 0 };
      const { status, body: text } = await engine.request("completion", body, undefined, plan);
      assert.is(status, 200, text);
      const { prompt: before, tokens } = JSON.parse(text as string).choices[0].tapline;
      return { names, lensTop, rows: kept[0]!, entries: [...before, ...tokens] };
    };
    const answers = [
      ...(["one", "two"] as const).map((name, i) => ask(`The capital of ${i}`, [name], 2 + i)),
      ask("I think that the film was", ["two", "one"], 1),
    ];
    const context = await model.createContext({ threads: 1, nCtx: 32 });
    for (const { names, lensTop, rows, entries } of await Promise.all(answers)) {
      assert.is(
        entries.length,
        rows.rows.length + 1,
        "the first answer token is read in the prompt's last row",
      );
      for (const [at, index] of layers.entries()) {
        const { values } = rows.layers[at]!;
        for (const [row, entry] of entries.entries()) {
          const place = row < rows.promptTokens ? row : row - 1;
          const states = values.slice(place * nEmbd, (place + 1) * nEmbd);
          const readings = await context.readLens({
            places: [{ states }, ...names.map((name) => ({ states, translator: lenses[name][at]! }))],
            top: lensTop,
          });
          const given = [entry.lens, ...names.map((name) => entry.lenses[name])];
          for (const [i, reading] of readings.entries()) same(given[i][index], reading);
        }
      }
    }
    await until(() => alive().translators === 0, "no lens is left");
  } finally {
    await engine.close();
    await model.close();
  }
});

function same(given: { token_id: number; probability: number }[], reading: LensReading): void {
  const probabilities = given.map(({ probability }) => Math.fround(probability));
  if (exact) {
    assert.equal(
      given.map(({ token_id: id }) => id),
      [...reading.tokenIds],
    );
    assert.equal(probabilities, [...reading.probabilities]);
    return;
  }
  assert.is(given.length, reading.tokenIds.length);
  for (const [i, probability] of probabilities.entries())
    assert.ok(Math.abs(probability - reading.probabilities[i]!) < 0.02);
}

test.run();
