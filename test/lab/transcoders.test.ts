/** A transcoder on the embedded model: read at one point, written at another, against float64 arithmetic here. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type CompareResult,
  type Config,
  checkSubmission,
  type FeaturesResult,
  type Operation,
} from "../../src/contracts/index.js";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Dictionaries } from "../../src/library/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { type Context, type Edit, Model } from "../../src/native/index.js";
import { runOperation } from "../../src/operations/runs.js";
import { TestRandom } from "../support/random.js";
import { refusal } from "../support/refusal.js";

const [width, features, layer] = [128, 300, 3];
const prompt = "The capital of France is Paris, and the capital of Japan is";

const folder = mkdtempSync(join(tmpdir(), "tapline-transcoders-"));
const home = join(folder, "home");
const homeBefore = process.env.TAPLINE_HOME;
let model: Model;
let context: Context;
let tokens: Int32Array;
test.before(async () => {
  process.env.TAPLINE_HOME = home;
  model = await Model.open(demoModelPath);
  context = await model.createContext({ nCtx: 64, threads: 1 });
  tokens = await model.tokenize(prompt);
});
test.after(async () => {
  if (homeBefore === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = homeBefore;
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

const random = new TestRandom(7);
/** Numbers from -scale to scale. */
const numbers = (length: number, scale: number) =>
  Float32Array.from({ length }, () => (2 * random.uniform() - 1) * scale);

const weights = {
  W_enc: { shape: [width, features], data: numbers(width * features, 0.2) },
  W_dec: { shape: [features, width], data: numbers(width * features, 0.1) },
  W_skip: { shape: [width, width], data: numbers(width * width, 0.1) },
  b_enc: { shape: [features], data: numbers(features, 0.3) },
  b_dec: { shape: [width], data: numbers(width, 0.3) },
  threshold: { shape: [features], data: numbers(features, 0.5).map(Math.abs) },
};

/** Writes it in SAELens's layout. */
function written(more: object = {}): string {
  const place = mkdtempSync(join(folder, "saelens-"));
  writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(weights));
  const metadata = {
    hook_name: `blocks.${layer}.mlp.hook_in`,
    hook_name_out: `blocks.${layer}.hook_mlp_out`,
    ...more,
  };
  writeFileSync(
    join(place, "cfg.json"),
    JSON.stringify({ architecture: "jumprelu_skip_transcoder", d_in: width, d_out: width, metadata }),
  );
  return place;
}

/** Its activations and reconstruction of a row, in float64. */
function transcoded(row: Float32Array): { f: Float64Array; y: Float64Array } {
  const f = Float64Array.from({ length: features }, (_, j) => {
    let h = weights.b_enc.data[j]!;
    for (let i = 0; i < width; i++) h += row[i]! * weights.W_enc.data[i * features + j]!;
    return h > weights.threshold.data[j]! ? h : 0;
  });
  const y = Float64Array.from({ length: width }, (_, i) => {
    let sum = weights.b_dec.data[i]!;
    for (let j = 0; j < features; j++) sum += f[j]! * weights.W_dec.data[j * width + i]!;
    for (let j = 0; j < width; j++) sum += row[j]! * weights.W_skip.data[i * width + j]!;
    return sum;
  });
  return { f, y };
}

async function run<R>(operation: Operation, body: object): Promise<R> {
  const config = checkSubmission({ operation, model: "demo", ...body }) as Config;
  const result = await runOperation({
    config,
    model,
    artifacts: new Artifacts(mkdtempSync(join(folder, "job-"))),
    progress: () => {},
    clock: new StageClock(),
    openOther: () => Model.open(demoModelPath),
  });
  return result as unknown as R;
}

const near = (found: number, wanted: number, what: string) =>
  assert.ok(Math.abs(found - wanted) <= 1e-4 * Math.max(1, Math.abs(wanted)), `${what}: ${found}, ${wanted}`);

/** Mean loss of the next tokens of the prompt with these edits, from whole distributions. */
async function lossWith(edits: Edit[]): Promise<number> {
  await context.reset();
  const { logProbabilities } = await context.advance({
    ...{ tokens, layers: [layer], edits },
    scored: Int32Array.from(tokens, (_, i) => tokens[i + 1] ?? -1),
  });
  return -logProbabilities!.reduce((sum, one) => sum + one, 0) / (tokens.length - 1);
}

test("features reports what a transcoder makes of the MLP's output, and the loss with it", async () => {
  const stored = await new Dictionaries(home).add("trans", written());
  assert.equal(
    [stored.point, stored.writes, stored.skip, stored.hook_out],
    ["ffn_in", "ffn_out", true, "blocks.3.hook_mlp_out"],
  );
  const found = await run<FeaturesResult>("features", { dictionary: "trans", prompt, top: 5 });
  assert.equal([found.point, found.writes, found.layer], ["ffn_in", "ffn_out", layer]);

  await context.reset();
  const { layers } = await context.advance({ tokens, layers: [layer], points: ["ffn_in", "ffn_out"] });
  const rows = (point: number, token: number) =>
    layers[point]!.states!.data.slice(token * width, (token + 1) * width);
  const first = model.info.addBos ? 1 : 0;
  const counted = Array.from({ length: tokens.length - first }, (_, i) => i + first);
  const own = Array.from(tokens, (_, token) => transcoded(rows(0, token)));
  for (const token of counted) {
    const wanted = [...own[token]!.f.keys()]
      .sort((a, b) => own[token]!.f[b]! - own[token]!.f[a]!)
      .slice(0, 5);
    const top = found.texts[0]!.top[token]!;
    assert.equal(
      top.map(({ feature }) => feature),
      wanted,
    );
    for (const { feature, activation } of top)
      near(activation, own[token]!.f[feature]!, `feature ${feature}`);
  }
  const mean = Array.from(
    { length: width },
    (_, i) => counted.reduce((sum, token) => sum + rows(1, token)[i]!, 0) / counted.length,
  );
  const square = (of: (token: number, i: number) => number) =>
    counted.reduce((sum, token) => sum + mean.reduce((all, _, i) => all + of(token, i) ** 2, 0), 0);
  const error = square((token, i) => rows(1, token)[i]! - own[token]!.y[i]!);
  const variance = square((token, i) => rows(1, token)[i]! - mean[i]!);
  const { fidelity } = found;
  assert.equal([fidelity.tokens, fidelity.excluded], [counted.length, { bos: first, outliers: 0 }]);
  near(fidelity.explained_variance!, 1 - error / variance, "explained variance");
  near(
    fidelity.l0,
    counted.reduce((sum, token) => sum + own[token]!.f.filter((value) => value > 0).length, 0) /
      counted.length,
    "L0",
  );
  const replaced = (vectorOf: (token: number) => Float32Array | undefined) =>
    counted.map((token): Edit => {
      const vector = vectorOf(token);
      const place = { layer, point: "ffn_out" as const, positions: [[token, token]] as const };
      return { ...place, scale: 0, ...(vector && { vector, strength: 1 }) };
    });
  const entropy = fidelity.cross_entropy!;
  near(entropy.clean, await lossWith([]), "clean");
  near(entropy.ablated, await lossWith(replaced(() => undefined)), "ablated");
  near(
    entropy.reconstructed,
    await lossWith(replaced((token) => Float32Array.from(own[token]!.y))),
    "reconstructed",
  );
  near(
    fidelity.loss_recovered!,
    (entropy.ablated - entropy.reconstructed) / (entropy.ablated - entropy.clean),
    "loss recovered",
  );
});

test("a transcoder's feature steers the MLP's output by its decoder row, to the bit", async () => {
  await new Dictionaries(home).add("trans", written());
  const steer = { prompt, layers: [layer], max_tokens: 1, intervention: "steer", feature: ["trans", 5] };
  assert.is(
    await refusal(() => run("compare", { ...steer, strengths: [1] })),
    "The dictionary trans is a transcoder that writes ffn_out of block 3, not block_out; its features are directions at that point only.",
  );
  const found = await run<CompareResult>("compare", {
    ...{ ...steer, point: "ffn_out", strengths: [20], strength_unit: "vector" },
  });
  const vector = weights.W_dec.data.slice(5 * width, 6 * width);
  const sweeping = await model.createContext({ maxSequences: 2, threads: 1 });
  const [trial] = await sweeping.sweep({
    ...{ prompts: [tokens], plans: [[{ layer, point: "ffn_out", vector, strength: 20 }]], maxTokens: 1 },
  });
  await sweeping.close();
  assert.is(found.trials[0]?.probability, trial?.rows[0]?.probability);
  assert.is.not(found.trials[0]?.probability, found.trials[0]?.baseline_probability);
});

test("clamping a transcoder's feature reads the MLP's input and changes the MLP's output", async () => {
  await new Dictionaries(home).add("trans", written());
  const last = tokens.length - 1;
  await context.reset();
  const { layers } = await context.advance({ tokens, layers: [layer], points: ["ffn_in"], rows: "last" });
  const { f } = transcoded(layers[0]!.states!.data);
  const feature = f.findIndex((value) => value > 0);
  const vector = weights.W_dec.data.slice(feature * width, (feature + 1) * width);
  for (const bound of [f[feature]! + 9, 0]) {
    const clamp = {
      intervention: "clamp",
      feature: ["trans", feature],
      strengths: [1],
      min: bound,
      max: bound,
    };
    const found = await run<CompareResult>("compare", {
      ...{ prompt, layers: [layer], point: "ffn_out", max_tokens: 1, ...clamp },
    });
    const moved = bound - f[feature]!;
    const length = Math.abs(moved) * Math.hypot(...vector);
    near(found.trials[0]!.change!.length, length, "length of the change");
    const positions = [[last, last]] as const;
    const sweeping = await model.createContext({ maxSequences: 2, threads: 1 });
    const [trial] = await sweeping.sweep({
      ...{ prompts: [tokens], maxTokens: 1 },
      plans: [[{ layer, point: "ffn_out", vector, strength: moved, positions }]],
    });
    await sweeping.close();
    near(found.trials[0]!.probability, trial!.rows[0]!.probability, "probability");
  }
  // At a bound that its activation meets, nothing moves.
  const free = await run<CompareResult>("compare", {
    ...{ prompt, layers: [layer], point: "ffn_out", max_tokens: 1, intervention: "clamp", strengths: [1] },
    ...{ feature: ["trans", feature], min: 0, max: 1e6 },
  });
  assert.is(free.trials[0]?.probability, free.trials[0]?.baseline_probability);
});

test("transcoders elsewhere than from an MLP's input to its output are refused", async () => {
  const refused = (more: object) => refusal(() => new Dictionaries(home).add("other", written(more)));
  assert.is(
    await refused({ hook_name_out: undefined }),
    "cfg.json lacks hook_name_out, the hook point that the transcoder writes.",
  );
  assert.match(
    await refused({ hook_name_out: "blocks.4.hook_mlp_out" }),
    / and predicts "blocks\.4\.hook_mlp_out"; only the MLP output of the same block is supported\.$/,
  );
  assert.match(
    await refused({ hook_name_out: "blocks.3.hook_resid_post" }),
    / predicts "blocks\.3\.hook_resid_post"; /,
  );
  assert.match(
    await refused({ hook_name: "blocks.3.hook_resid_pre" }),
    /^The transcoder reads "blocks\.3\.hook_resid_pre"; supported are MLP inputs: /,
  );
});

test.run();
