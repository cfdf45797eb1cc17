import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Metadata } from "../../bench/models/gguf-writer.js";
import { type Context, Model } from "../../src/native/index.js";
import { tensor, writeTinyModel } from "../inference/support/tiny-models.js";

const hidden = 32;
const vocabulary = 320;
const folder = mkdtempSync(join(tmpdir(), "tapline-ties-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** A model that finds every token as probable as any other, always. */
async function undecided(metadata: Metadata, use: (context: Context) => Promise<void>): Promise<void> {
  const path = join(folder, "undecided.gguf");
  const output = tensor("output.weight", [hidden, vocabulary], new Float32Array(hidden * vocabulary));
  await writeTinyModel(path, { metadata, tensors: [output] });
  const model = await Model.open(path);
  try {
    await use(await model.createContext({ threads: 1, nCtx: 64, maxSequences: 4 }));
  } finally {
    await model.close();
  }
}

const close = (found: number, expected: number) =>
  assert.ok(Math.abs(found - expected) < 1e-6, `${found} is not ${expected}`);

test("of equal logits the lower id is first, in lens, ranks and continuations", async () => {
  await undecided({}, async (context) => {
    const tokens = Int32Array.of(40, 41, 42);
    const { layers, next } = await context.advance({
      ...{ tokens, layers: [1], rows: "all", lensTopK: 3, nextTopK: 4, lensTarget: 5 },
    });
    assert.equal([...next!.tokenIds], [0, 1, 2, 3]);
    for (const probability of next!.probabilities) close(probability, 1 / vocabulary);
    const { lens } = layers[0]!;
    assert.equal([...lens!.tokenIds], [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    // Ids 0 to 4 come before it.
    assert.equal([...lens!.targetRanks!], [6, 6, 6]);
    const [trial] = await context.sweep({
      ...{ prompts: [tokens], plans: [[{ layer: 0, scale: 0.5 }]], maxTokens: 3 },
    });
    assert.is(trial!.target, 0);
    assert.equal([...trial!.baseline.continuation], [0, 0, 0]);
    assert.equal([...trial!.rows[0]!.continuation], [0, 0, 0]);
    close(trial!.baseline.probability, 1 / vocabulary);
  });
});

test("a continuation ends where the model ends its text", async () => {
  await undecided({ "tokenizer.ggml.eos_token_id": 0 }, async (context) => {
    let told = "";
    const [trial] = await context.sweep({
      ...{ prompts: [Int32Array.of(40, 41)], plans: [[{ layer: 0, scale: 0.5 }]], maxTokens: 3 },
      onProgress: (done, total) => {
        told = `${done} of ${total}`;
      },
    });
    assert.is(trial!.target, 0);
    assert.equal([...trial!.baseline.continuation], []);
    assert.equal([...trial!.rows[0]!.continuation], []);
    // What a text does not say counts as done: two rows of three tokens.
    assert.is(told, "6 of 6");
  });
});

test("a plan that changes nothing tells its rows and their length all the same", async () => {
  await undecided({}, async (context) => {
    const tokens = Int32Array.of(40, 41, 42);
    const vector = new Float32Array(hidden).fill(1);
    const plans = [
      [{ layer: 0, scale: 1 }],
      [
        { layer: 1, vector, strength: 0 },
        { layer: 0, scale: 1 },
      ],
    ];
    const [trial] = await context.sweep({ prompts: [tokens], plans, maxTokens: 1 });
    await context.reset();
    const { layers } = await context.advance({ tokens, layers: [0, 1], rows: "last" });
    const [first, second] = layers.map(({ norms }) => norms[0] as number);
    const lengths = trial!.rows.map(({ effects }) => effects.map(({ rows, rowLength }) => rowLength / rows));
    assert.equal(
      trial!.rows.map(({ effects }) => effects.map(({ rows, changeLength }) => [rows, changeLength])),
      [
        [[1, 0]],
        [
          [1, 0],
          [1, 0],
        ],
      ],
    );
    for (const [found, expected] of [
      [lengths[0]![0], first],
      [lengths[1]![0], second],
      [lengths[1]![1], first],
    ]) {
      assert.ok(Math.abs((found as number) / (expected as number) - 1) < 1e-5, `${found}, not ${expected}`);
    }
  });
});

test.run();
