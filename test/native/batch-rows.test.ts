import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine } from "../../src/native/engine.js";
import { backendInfo, type Context, Model, quantise } from "../../src/native/index.js";
import type { CapturedRows } from "../../src/native/live.js";
import { demo, scratch } from "./demo-model.js";

const forms = ["Q8_0", "Q4_K_M", "F16"] as const;
/**
 * Where a row's products are added up in one order whatever is in its batch, its bits are the same: on processors with AVX2,
 * and with NEON those of F16 weights. ggml's own products are not all so; there a row stays within what eight bits amplify.
 */
const features = new Set([...backendInfo().systemInfo.matchAll(/\b(\w+) = 1/g)].map(([, name]) => name));
const own = new Set(features.has("AVX2") ? forms : features.has("NEON") ? ["F16"] : []);
const folder = scratch();

for (const form of forms) {
  const bound = own.has(form) ? 0 : 0.1;
  const path = form === "F16" ? demo : join(folder, `${form}.gguf`);

  test(`a ${form} model's rows do not depend on the batch they are in`, async () => {
    if (form !== "F16") await quantise({ from: demo, to: path, form, threads: 1 });
    const model = await Model.open(path, { gpuLayers: 0 });
    try {
      const layers = [0, model.info.nLayer - 1];
      const tokens = Int32Array.from({ length: 90 }, (_, i) => (i * 37 + 11) % model.info.nVocab);
      const width = model.info.nEmbd;
      const open = () => model.createContext({ nCtx: 256, nBatch: 256, maxSequences: 4, threads: 2 });
      // 64 rows and more were ggml's tiles, fewer were its F16 sums, and one was split among threads.
      const whole = await inPieces(await open(), tokens, layers, 90);
      for (const size of [64, 21, 4, 2, 1]) {
        const pieces = await inPieces(await open(), tokens, layers, size);
        for (const [i, rows] of pieces.entries()) same(bound, rows, whole[i]!, width, `pieces of ${size}`);
      }
      const context = await open();
      const others = [7, 30].map((length) => tokens.slice(length, 2 * length));
      const packed = await context.features({ sequences: [...others, tokens], layers, rows: "all" });
      for (const [i, layer] of layers.entries())
        same(bound, packed.get(layer)!.data.slice(37 * width), whole[i]!, width, "packed");
    } finally {
      await model.close();
    }
  });

  test(`live requests to a ${form} model read the rows of packed texts`, async () => {
    // Chunks of 32 tokens in which three requests meet, then one token of each.
    const engine = await Engine.open({ path, id: form, threads: 2, parallel: 3, batch: 32, ctxSize: 256 });
    const { nEmbd: width, nLayer } = engine.info;
    const layers = [0, nLayer - 1];
    const vector = Float32Array.from({ length: width }, (_, i) => Math.sin(1.3 * i));
    const answers = await Promise.all([90, 41, 7].map((length) => ask(engine, length, layers, vector)));
    await engine.close();

    const model = await Model.open(path, { gpuLayers: 0 });
    try {
      const context = await model.createContext({ nCtx: 512, nBatch: 256, maxSequences: 4, threads: 2 });
      const sequences = answers.map(({ kept }) => kept.tokens);
      const packed = await context.features({ sequences, layers, rows: "all" });
      let start = 0;
      for (const { kept, readings } of answers) {
        const { length } = kept.tokens;
        assert.is(readings.length, length);
        for (const [i, layer] of layers.entries()) {
          // The server's last block computes the rows whose logits it needs: from the prompt's last one on.
          const first = layer < nLayer - 1 ? 0 : kept.promptTokens - 1;
          const rows = packed.get(layer)!.data.slice((start + first) * width, (start + length) * width);
          same(bound, kept.layers[i]!.values.slice(first * width), rows, width, `live, block ${layer}`);
          for (const [at, { norms, projections }] of readings.slice(first).entries()) {
            const row = rows.subarray(at * width, (at + 1) * width);
            near(bound, norms[layer]!, Math.hypot(...row));
            const dot = row.reduce((sum, value, k) => sum + value * vector[k]!, 0);
            near(bound, projections[`at ${layer}`]!, dot / Math.hypot(...vector), Math.hypot(...row));
          }
        }
        start += length;
      }
    } finally {
      await model.close();
    }
  });
}

interface Reading {
  norms: Record<number, number>;
  projections: Record<string, number>;
}

/** The rows that a request kept, and the readings of each. */
async function ask(engine: Engine, promptTokens: number, layers: number[], vector: Float32Array) {
  const prompt = Array.from({ length: promptTokens }, (_, i) => (i * 37 + 11 * promptTokens) % 256);
  let kept: CapturedRows | undefined;
  const keep = (rows: CapturedRows) => {
    kept = rows;
  };
  const projections = layers.map((layer) => ({ name: `at ${layer}`, layer, vector }));
  const states = { id: "k", bytes: 2 ** 24, keep };
  const { status, body } = await engine.request(
    "completion",
    { prompt, max_tokens: 6, temperature: 0, ignore_eos: true },
    undefined,
    { watch: { layers, positions: "all", norms: true, projections, states } },
  );
  assert.is(status, 200, body);
  const [choice] = (JSON.parse(body) as { choices: { tapline: Record<"prompt" | "tokens", Reading[]> }[] })
    .choices;
  // The first generated token is read in the prompt's last row.
  return { kept: kept!, readings: [...choice!.tapline.prompt.slice(0, -1), ...choice!.tapline.tokens] };
}

async function inPieces(context: Context, tokens: Int32Array, layers: number[], size: number) {
  const rows = layers.map(() => [] as number[]);
  for (let start = 0; start < tokens.length; start += size) {
    const found = await context.advance({ tokens: tokens.slice(start, start + size), layers });
    for (const [i, { states }] of found.layers.entries()) rows[i]!.push(...states!.data);
  }
  await context.close();
  return rows.map((values) => Float32Array.from(values));
}

/** A reading in decimal digits, of float32 sums. */
function near(bound: number, found: number, expected: number, size = expected): void {
  assert.ok(Math.abs(found - expected) <= (1e-5 + bound) * size, `${found} instead of ${expected}`);
}

function same(bound: number, found: Float32Array, expected: Float32Array, width: number, what: string): void {
  assert.is(found.length, expected.length);
  for (let at = 0; at < found.length; at += width) {
    const [a, b] = [found.subarray(at, at + width), expected.subarray(at, at + width)];
    const apart = Math.hypot(...a.map((value, k) => value - b[k]!)) / Math.hypot(...b);
    assert.ok(apart <= bound, `${what}: row ${at / width} differs by ${apart}`);
  }
}

test.run();
