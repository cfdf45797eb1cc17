import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type CompareConfig, checkSubmission } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Lenses } from "../../src/library/lenses.js";
import { openTensors } from "../../src/library/tensor-files.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { type Context, type Edit, Model } from "../../src/native/index.js";
import { compare } from "../../src/operations/compare/run.js";
import { controlPlan, swapOf, swapPlans } from "../../src/operations/compare/run-swap.js";
import { logitsOf } from "../native/demo-model.js";

const home = mkdtempSync(join(tmpdir(), "tapline-swap-"));
const before = process.env.TAPLINE_HOME;
process.env.TAPLINE_HOME = home;
const lensFile = join(dirname(demoModelPath), "tapline-demo_jacobian_lens.pt");

let model: Model;
let context: Context;
let tokens: Int32Array;
let width: number;
const prompt = "The capital of France is";
const pair = [" Paris", " Tokyo"];

test.before(async () => {
  await new Lenses(home).add("demo", lensFile);
  model = await Model.open(demoModelPath);
  context = await model.createContext({ threads: 1, nCtx: 128, nBatch: 64, maxSequences: 8 });
  tokens = await model.tokenize(prompt, { special: true, parseSpecial: false });
  width = model.info.nEmbd;
});
test.after(async () => {
  await model.close();
  rmSync(home, { recursive: true, force: true });
  if (before === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = before;
});

const submission = (more: object) =>
  checkSubmission({
    ...{ operation: "compare", model: "demo", prompt, intervention: "swap", swap: pair, lens: "demo" },
    ...{ strengths: [0, 1], max_tokens: 4, ...more },
  }) as CompareConfig;

/** J_l as the published file has it, by rows. */
async function jacobian(layer: number): Promise<Float32Array> {
  const file = await openTensors(lensFile);
  const name = [...file.shapes.keys()].find((each) => new RegExp(`(^|\\D)${layer}$`).test(each)) as string;
  return file.read(name);
}

/** A row whose two coordinates are replaced by those of `clean`, by the normal equations in float64. */
async function byHand(
  layer: number,
  clean: ArrayLike<number>,
  live: ArrayLike<number>,
): Promise<Float32Array> {
  const ids = await Promise.all(
    pair.map(async (text) => (await model.tokenize(text, { special: false }))[0] as number),
  );
  const matrix = layer < model.info.nLayer - 1 ? await jacobian(layer) : undefined;
  const basis: number[][] = [];
  for (const id of ids) {
    // The state only scales a direction, and both by the same.
    const { direction } = await context.logitDirection(Float32Array.from(clean), id);
    basis.push(
      Array.from({ length: width }, (_, i) =>
        matrix === undefined
          ? direction[i]!
          : direction.reduce((sum, weight, o) => sum + weight * matrix[o * width + i]!, 0),
      ),
    );
  }
  const dot = (a: ArrayLike<number>, b: ArrayLike<number>) =>
    Array.from(a).reduce((sum, value, i) => sum + value * b[i]!, 0);
  const [a, b] = basis as [number[], number[]];
  const coordinates = (row: ArrayLike<number>) => {
    const [aa, ab, bb, ha, hb] = [dot(a, a), dot(a, b), dot(b, b), dot(row, a), dot(row, b)];
    const det = aa * bb - ab * ab;
    return [(bb * ha - ab * hb) / det, (aa * hb - ab * ha) / det] as const;
  };
  const [wasA, wasB] = coordinates(clean);
  const [isA, isB] = coordinates(live);
  return Float32Array.from(live, (value, i) => value + (wasB - isA) * a[i]! + (wasA - isB) * b[i]!);
}

async function lastRow(layer: number, edits: Edit[]): Promise<Float32Array> {
  await context.reset();
  const layers = [...new Set([...edits.map((edit) => edit.layer), layer])];
  const found = await context.advance({ tokens, layers, rows: "last", edits });
  return found.layers.find((one) => one.layer === layer)!.states!.data.slice();
}

const logits = (edits: readonly Edit[]) =>
  logitsOf(context, {
    ...{ tokens, rows: "last", edits },
    layers: [...new Set(edits.map(({ layer }) => layer))],
  });

test("one block, and a band of them, match the manual exchange with clean values", async () => {
  const last = tokens.length - 1;
  for (const layers of [[5], [7], [4, 5, 6]]) {
    const config = submission({ layers });
    const swap = await swapOf(config, model, context);
    const [neutral, plan] = await swapPlans(config, context, tokens, swap, undefined);
    const patches: Edit[] = [];
    for (const layer of layers) {
      const vector = await byHand(layer, await lastRow(layer, []), await lastRow(layer, patches));
      patches.push({ layer, positions: [[last, last]], scale: 0, vector });
    }
    const plain = await logitsOf(context, { tokens, layers: [] });
    const [ours, expected] = [await logits(plan!), await logits(patches)];
    const apart = (a: Float32Array, b: Float32Array) =>
      Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));
    assert.ok(apart(ours, expected) < 1e-2, `${layers}: ${apart(ours, expected)}`);
    assert.ok(apart(plain, expected) > 1, "and it moves something");
    assert.equal(await logits(neutral!), plain);
  }
});

test("at every block of a band, the control's change is as large as the swap's", async () => {
  const config = submission({ layers: [4, 5, 6], strengths: [0.5, 1] });
  const plans = await swapPlans(config, context, tokens, await swapOf(config, model, context), undefined);
  const swept = async (of: Edit[][]) =>
    (await context.sweep({ prompts: [tokens], plans: of, maxTokens: 0 }))[0]!.rows.map((row) => row.effects);
  const effects = await swept(plans);
  const controls = await swept(plans.map((edits, row) => controlPlan(edits, effects[row]!, 11)));
  for (const [row, done] of controls.entries()) {
    // Two orthogonal axes a block.
    const lengths = [0, 2, 4].map((at) =>
      Math.hypot(effects[row]![at]!.changeLength, effects[row]![at + 1]!.changeLength),
    );
    for (const [block, length] of lengths.entries()) {
      assert.ok(length > 1, `block ${block} is changed: ${length}`);
      assert.ok(
        Math.abs(done[block]!.changeLength / length - 1) < 1e-4,
        `${done[block]!.changeLength}, ${length}`,
      );
    }
  }
});

async function operate(more: object) {
  const openOther = () => Promise.reject(new Error("One model is enough."));
  const artifacts = new Artifacts(home);
  const input = { config: submission(more), model, artifacts, openOther, clock: new StageClock() };
  return compare({ ...input, progress: () => {} });
}

test("a band of blocks flips the capital; random changes of equal size do not", async () => {
  const result = await operate({ layers: [4, 5, 6], target_token: " Tokyo", controls: true });
  assert.equal(result.layers, [4, 5, 6]);
  assert.equal(
    result.swapped!.map(({ token }) => token),
    pair,
  );
  assert.is(result.lens!.kind, "jacobian");
  assert.is(result.position, "the prompt's last token");
  const [neutral, full] = result.trials;
  assert.is(neutral!.probability, neutral!.baseline_probability);
  assert.is(neutral!.output, neutral!.baseline);
  assert.is(neutral!.change!.length, 0);
  assert.ok(full!.probability > 0.9 && full!.baseline_probability < 0.1);
  assert.ok(full!.control!.probability < 0.1);
  assert.is(full!.output.trimStart().slice(0, 5), "Tokyo");
  const { change, control } = full!;
  assert.ok(Math.abs(control!.change!.length / change!.length - 1) < 1e-4);
  assert.is(neutral!.control!.change!.length, 0);
  // Three rows of the prompt; generated tokens are left alone.
  assert.is(full!.change!.rows, 3);
  assert.ok(full!.change!.length > 0 && full!.change!.length < full!.change!.row_length);
  // The same through two prompts at once, each with its own values.
  const two = await operate({ layers: [4, 5, 6], target_token: " Tokyo", prompts: [prompt, "A flower"] });
  assert.is(two.trials.length, 4);
  assert.ok(Math.abs(two.trials[1]!.probability - full!.probability) < 1e-3);
});

test("invalid requests are refused in one sentence", async () => {
  const refused = (more: object) =>
    operate(more).then(
      () => "accepted",
      (error: Error) => error.message,
    );
  assert.match(
    await refused({ layers: [5], swap: [" Tokyo", " Tokyo"] }),
    /^swap: the two texts encode to the same token\.$/,
  );
  assert.match(
    await refused({ layers: [5], swap: [" Tokyo", " Paris people"] }),
    /^swap\[1\] must encode to exactly one token/,
  );
  assert.match(
    await refused({ layers: [5], positions: [[40, 50]] }),
    /none of them is within the prompt's \d+ tokens/,
  );
  const wrong = (more: object) => {
    try {
      submission(more);
    } catch (error) {
      return (error as Error).message;
    }
    return String(assert.unreachable());
  };
  assert.match(wrong({ swap: undefined }), /^swap is required for swap\./);
  assert.match(
    wrong({ positions: "all" }),
    /^positions: must be last, prompt or ranges for a swap, which edits prompt tokens only; got all\.$/,
  );
  assert.match(
    wrong({ point: "mid" }),
    /^point: cannot be set for a swap: a lens reads block outputs only\.$/,
  );
  assert.match(wrong({ intervention: "scale" }), /^swap: belongs to swap, not to scale\./);
});

test.run();
