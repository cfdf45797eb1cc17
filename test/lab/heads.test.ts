/** Single heads taken out, and what attention and MLPs add: compare with `point`. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type CompareConfig, checkSubmission } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { Model } from "../../src/native/index.js";
import { compare } from "../../src/operations/compare/run.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-heads-"));
let model: Model;
test.before(async () => {
  model = await Model.open(demoModelPath);
});
test.after(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(body: object) {
  const given = { operation: "compare", model: "demo", max_tokens: 1, strengths: [0, 1], ...body };
  const config = checkSubmission(given) as CompareConfig;
  const openOther = () => Promise.reject(new Error("One model is enough."));
  const input = { config, model, artifacts: new Artifacts(folder), openOther, clock: new StageClock() };
  return compare({ ...input, progress: () => {} });
}

const sentence = (body: object) =>
  run(body).then(
    () => "accepted",
    (error: Error) => error.message,
  );

// Repeated words: the next word is the one that followed before.
const words = "river stone bread chair apple window garden table paper music";
const repeated = { prompt: `${words} ${words.split(" ").slice(0, 4).join(" ")}`, intervention: "ablate" };

test("without its induction heads, and only those, the model cannot continue repeats", async () => {
  const without = async (layer: number, heads: number[]) => {
    const asked = { ...repeated, layers: [layer], point: "head_out", heads, positions: "all" };
    const { trials, ...result } = await run({ ...asked, target_token: " apple" });
    assert.equal([result.point, result.heads], ["head_out", heads]);
    assert.match(
      result.note,
      `The edit changes head_out of block ${layer}, head${heads.length === 1 ? "" : "s"} ${heads.join(", ")}. `,
    );
    const [neutral, out] = trials;
    assert.is(neutral!.probability, neutral!.baseline_probability, "a strength of 0 changes nothing");
    assert.ok(neutral!.probability > 0.9, `the model continues: ${neutral!.probability}`);
    return out!.probability;
  };
  // The card: induction heads of block 6 are 0 and 3.
  const [induction, others] = [await without(6, [0, 3]), await without(6, [1, 2])];
  assert.ok(induction < 0.5, `without 6.0 and 6.3: ${induction}`);
  assert.ok(others > 0.9, `without 6.1 and 6.2: ${others}`);
});

test("ablating all heads equals ablating attention; both halves can be edited like outputs", async () => {
  const asked = { ...repeated, layers: [6], positions: "all" };
  const of = async (more: object) => (await run({ ...asked, ...more })).trials[1]!;
  const [heads, attention] = [await of({ point: "head_out" }), await of({ point: "attn_out" })];
  assert.ok(Math.abs(heads.probability - attention.probability) < 1e-6);
  const mlp = await of({ point: "ffn_out" });
  assert.ok(Math.abs(mlp.probability - attention.probability) > 1e-3);
  // Patching inserts what the donor's block adds there: patched into itself, nothing moves.
  const same = { prompt: "The capital of France is", donor_prompt: "The capital of France is", layers: [4] };
  const { trials } = await run({ ...same, intervention: "patch", point: "attn_out" });
  assert.ok(Math.abs(trials[1]!.delta) < 1e-5);
  const other = { ...same, donor_prompt: "The capital of Japan is" };
  const { trials: moved } = await run({ ...other, intervention: "patch", point: "attn_out" });
  assert.ok(moved[1]!.delta < -0.01, `${moved[1]!.delta}`);
});

test("patching one head from a donor moves the answer; from itself, nothing", async () => {
  const prompt = "When Mary and John went to the store, Mary gave a drink to";
  const donor_prompt = "When Mary and John went to the store, John gave a drink to";
  const asked = {
    prompt,
    donor_prompt,
    layers: [6],
    intervention: "patch",
    point: "head_out",
    controls: true,
  };
  const put = async (heads: number[] | undefined, more: object = {}) => {
    const { trials } = await run({ ...asked, heads, target_token: " Mary", ...more });
    return trials[1] as (typeof trials)[number];
  };
  // Head 6.2 is the one that a sweep of all heads finds.
  const [own, mover, others, all] = [
    await put([0, 1, 2, 3], { donor_prompt: prompt }),
    await put([2]),
    await put([0, 1, 3]),
    await put([3, 2, 0, 1]),
  ];
  assert.ok(Math.abs(own.delta) < 1e-5, `itself: ${own.delta}`);
  assert.ok(mover.delta > 0.1, `6.2: ${mover.delta}`);
  assert.ok(Math.abs(others.delta) < 0.02, `the others: ${others.delta}`);
  // In any order they are the whole row, and this is what attention adds.
  const [row, attention] = [await put(undefined), await put(undefined, { point: "attn_out" })];
  assert.ok(Math.abs(all.probability - row.probability) < 1e-5);
  assert.ok(
    Math.abs(row.probability - attention.probability) < 1e-4,
    `${row.probability} ${attention.probability}`,
  );
  assert.ok(Math.abs(mover.control?.delta as number) < mover.delta / 2, `random: ${mover.control?.delta}`);
});

test("an edit of several heads is applied jointly, in any order", async () => {
  const layer = 6;
  const tokens = await model.tokenize(repeated.prompt, { special: true, parseSpecial: false });
  const context = await model.createContext({ threads: 1, nCtx: 128 });
  const { layers } = await context.advance({ tokens, layers: [layer], points: ["head_out"], rows: "all" });
  await context.close();
  const { data, shape } = layers[0]!.states!;
  const [rows, width] = shape as [number, number];
  const size = width / 4;
  // Taken out, a head loses what it has: the length of its part, token by token.
  const lengths = (heads: number[]) =>
    Array.from({ length: rows }, (_, row) =>
      Math.hypot(
        ...heads.flatMap((head) => [
          ...data.subarray(row * width + head * size, row * width + (head + 1) * size),
        ]),
      ),
    );
  const changed = async (heads: number[], positions: string) => {
    const asked = { ...repeated, layers: [layer], point: "head_out", heads, positions };
    return (await run(asked)).trials[1]!.change!;
  };
  const near = (found: number, expected: number) =>
    assert.ok(Math.abs(found - expected) < 1e-3 * expected, `${found}, not ${expected}`);
  for (const heads of [[0, 2], [2, 0], [3], [1, 3, 0]]) {
    const each = lengths(heads);
    const last = await changed(heads, "last");
    near(last.length, each.at(-1) as number);
    near(last.row_length, each.at(-1) as number);
    const all = await changed(heads, "prompt");
    assert.is(all.rows, rows);
    near(all.length, each.reduce((sum, length) => sum + length, 0) / rows);
  }
});

test("meaningless head edits are refused in one sentence", async () => {
  const asked = { ...repeated, layers: [6] };
  assert.is(await sentence({ ...asked, heads: [0] }), "heads: requires point head_out.");
  assert.is(
    await sentence({ ...asked, intervention: "steer", positive: "a", negative: "b", point: "head_out" }),
    "point: head_out is for scale, ablate and patch, not for steer.",
  );
  assert.is(
    await sentence({ ...asked, point: "head_out", heads: [4, 9] }),
    "heads: 4, 9 do not exist; block 6 has 4 heads, 0 to 3.",
  );
  assert.match(await sentence({ ...asked, point: "attention" }), /^point: must be block_in, head_out, /);
});

test.run();
