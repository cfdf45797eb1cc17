import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  checkSubmission,
  type DriftResult,
  type FeaturesResult,
  type Provenance,
  type Result,
  UserError,
} from "../../src/contracts/index.js";
import { encodeSafetensors, type Tensor } from "../../src/formats/safetensors.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { computePart } from "../../src/lab/parts/compute.js";
import { mergeParts } from "../../src/lab/parts/merge.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Dictionaries, modelFingerprint, Probes, Vectors } from "../../src/library/index.js";
import { Model } from "../../src/native/index.js";
import type { Findings } from "../../src/operations/run.js";
import { runOf, runOperation } from "../../src/operations/runs.js";
import { randomMatrix, tensor, writeTinyModel } from "../inference/support/tiny-models.js";
import { demo } from "../native/demo-model.js";
import { TestRandom } from "../support/random.js";
import { type Harness, openHarness } from "./harness.js";

const hidden = 32;
const features = 48;
const layer = 1;
const examples = ["good day", "a bad one", "rather good", "it was bad", "bad, bad", "good good good"].map(
  (text) => ({ text, label: text.includes("good") ? 1 : 0 }),
);

const random = new TestRandom(4);
const encoder = random.normals(hidden * features);
const decoder = random.normals(features * hidden).map((value) => value / 8);
const direction = random.normals(hidden);

let lab: Harness;
let folder: string;
let one: string;
let two: string;

test.before(async () => {
  lab = await openHarness();
  process.env.TAPLINE_HOME = lab.home;
  folder = mkdtempSync(join(tmpdir(), "tapline-drift-"));
  one = join(folder, "one.gguf");
  two = join(folder, "two.gguf");
  await writeTinyModel(one);
  const name = "blk.0.ffn_down.weight";
  const numbers = randomMatrix(name, hidden * hidden).map((value) => Math.round(value * 16) / 16);
  await writeTinyModel(two, { tensors: [tensor(name, [hidden, hidden], numbers)] });
  const place = mkdtempSync(join(folder, "dictionary-"));
  const zeros = (length: number) => ({ shape: [length], data: new Float32Array(length) });
  const tensors: Record<string, Tensor> = {
    W_enc: { shape: [hidden, features], data: encoder },
    W_dec: { shape: [features, hidden], data: decoder },
    ...{ b_enc: zeros(features), b_dec: zeros(hidden) },
  };
  writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: `blocks.${layer}.hook_resid_post` };
  writeFileSync(join(place, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await new Dictionaries(lab.home).add("some", place);
  const identity = { id: "two", fingerprint: await modelFingerprint(two), nEmbd: hidden, nLayer: 2 };
  const ones = new Float32Array(hidden).fill(1);
  const probe = { weight: direction, mean: new Float32Array(hidden), std: ones, bias: 0.5 };
  await new Probes(lab.home).put("judge", layer, probe, identity, { note: "" });
  await new Vectors(lab.home).put("leads", new Map([[layer, direction]]), identity, { note: "" });
});
test.after(async () => {
  await lab.close();
  rmSync(folder, { recursive: true, force: true });
});

const submission = (body: object) => ({ operation: "drift", model: one, layers: [0, 1], examples, ...body });

/** An operation in this process. */
async function run(body: object): Promise<Findings<Result>> {
  const config = checkSubmission(body);
  const model = await Model.open(config.model);
  const artifacts = new Artifacts(mkdtempSync(join(folder, "artifacts-")));
  try {
    return await runOperation({
      ...{ config, model, artifacts, progress: () => {}, clock: new StageClock() },
      openOther: (id) => Model.open(id),
    });
  } finally {
    await model.close();
  }
}

const drifted = async (body: object) => (await run(submission(body))) as Findings<DriftResult>;

/** Rows of every text at a layer, each text in its own pass. */
async function rowsOf(path: string, at: number): Promise<Float32Array[][]> {
  const model = await Model.open(path);
  const context = await model.createContext({ threads: 1 });
  const texts: Float32Array[][] = [];
  for (const { text } of examples) {
    await context.reset();
    const tokens = await model.tokenize(text);
    const { layers } = await context.advance({ tokens, layers: [at] });
    const data = layers[0]?.states?.data as Float32Array;
    texts.push(Array.from(tokens, (_, i) => data.slice(i * hidden, (i + 1) * hidden)));
  }
  await model.close();
  return texts;
}

const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => Array.from(a).reduce((sum, x, i) => sum + x * (b[i] as number), 0); // biome-ignore format: one line
const near = (found: number | undefined, wanted: number, what: string, bound = 1e-5) =>
  assert.ok(Math.abs((found ?? Number.NaN) - wanted) <= bound, `${what}: ${found}, ${wanted}`);

test("drift of a model from itself is zero, without uncertainty", async () => {
  // Through the service: its worker opens the second model.
  const { error, result } = await lab.finished(
    (await lab.submit(submission({ other: one, dictionary: "some" }))).id,
  );
  const found = result as DriftResult;
  assert.is(error, undefined);
  const same = { value: 1, low: 1, high: 1 };
  for (const { cosine, relative_length, relative_difference } of found.layers) {
    near(cosine.value, 1, "cosine", 1e-12);
    assert.equal(relative_length, same);
    assert.equal(relative_difference, { value: 0, low: 0, high: 0 });
  }
  assert.equal(found.dictionary?.jaccard, same);
  assert.equal(found.dictionary?.loss_recovered_difference, { value: 0, low: 0, high: 0 });
});

test("drift between two models: every figure matches its definition", async () => {
  const found = await drifted({ other: two, dictionary: "some", probe: "judge", vector: "leads" });
  assert.equal(
    found.layers.map((each) => each.layer),
    [0, 1],
  );
  for (const at of [0, 1]) {
    const pairs = [await rowsOf(one, at), await rowsOf(two, at)] as const;
    const tokens = pairs[0].flatMap((rows, text) => rows.map((a, i) => [a, pairs[1][text]?.[i] as Float32Array] as const)); // biome-ignore format: one line
    const mean = (of: (a: Float32Array, b: Float32Array) => number) =>
      tokens.reduce((sum, [a, b]) => sum + of(a, b), 0) / tokens.length;
    const { cosine, relative_length, relative_difference } = found.layers[at] as DriftResult["layers"][0];
    near(cosine.value, mean((a, b) => dot(a, b) / Math.hypot(...a) / Math.hypot(...b)), "cosine"); // biome-ignore format: one line
    near(
      relative_length.value,
      mean((a, b) => Math.hypot(...b) / Math.hypot(...a)),
      "length",
    );
    near(relative_difference.value, mean((a, b) => Math.hypot(...a.map((x, i) => x - (b[i] as number))) / Math.hypot(...a)), "difference"); // biome-ignore format: one line
    assert.is(found.tokens, tokens.length);
    assert.ok(cosine.value < 0.9999 && cosine.low < cosine.value && cosine.value < cosine.high);
  }
  const last = [await rowsOf(one, layer), await rowsOf(two, layer)] as const;
  const active = last.map((texts) =>
    texts.flatMap((rows) =>
      rows.map((row) => {
        const fires = (f: number) =>
          dot(
            row,
            row.map((_, i) => encoder[i * features + f] as number),
          ) > 0;
        return new Set([...Array(features).keys()].filter(fires));
      }),
    ),
  ) as [Set<number>[], Set<number>[]];
  let [shared, either] = [0, 0];
  for (const [i, a] of active[0].entries()) {
    const b = active[1][i] as Set<number>;
    shared += [...a].filter((f) => b.has(f)).length;
    either += new Set([...a, ...b]).size;
  }
  near(found.dictionary?.jaccard?.value, shared / either, "jaccard", 1e-12);
  const recovered: number[] = [];
  for (const [i, model] of [one, two].entries()) {
    const rank = (score: (row: Float32Array) => number) => {
      const scores = (last[i] as Float32Array[][]).map((rows) => score(rows.at(-1) as Float32Array));
      const of = (label: number) => scores.filter((_, text) => examples[text]?.label === label);
      const wins = of(1).flatMap((a) => of(0).map((b) => (a > b ? 1 : a === b ? 0.5 : 0)));
      return wins.reduce((a: number, b) => a + b, 0) / wins.length;
    };
    const wanted = rank((row) => dot(row, direction));
    near(found.probe?.auroc[i]?.value, wanted, "probe", 1e-12);
    near(found.vector?.separation[i]?.value, wanted, "vector", 1e-12);
    const texts = examples.map(({ text }) => text);
    const { fidelity } = (await run({
      operation: "features",
      model,
      dictionary: "some",
      texts,
    })) as FeaturesResult;
    near(found.dictionary?.loss_recovered?.[i]?.value, fidelity.loss_recovered as number, "loss", 1e-6);
    assert.is(found.dictionary?.loss_recovered?.length, 2);
    near(found.dictionary?.l0[i], fidelity.l0, "l0", 1e-12);
    recovered.push(fidelity.loss_recovered as number);
  }
  // How much more the second recovers than the first, and they are apart by more than rounding.
  const more = (recovered[1] as number) - (recovered[0] as number);
  assert.ok(Math.abs(more) > 1e-4, `${more}`);
  near(found.dictionary?.loss_recovered_difference?.value, more, "difference of the loss recovered", 2e-6);
  const { auroc, difference } = found.probe as NonNullable<DriftResult["probe"]>;
  near(difference.value, auroc[1].value - auroc[0].value, "difference", 1e-12);
  assert.equal(await drifted({ other: two, seed: 0 }).then(({ layers }) => layers), found.layers);
});

test("two files that are not forms of one model are refused", async () => {
  const refused = (body: object) =>
    drifted(body).then(
      () => "",
      (error) => (error instanceof UserError ? error.message : `${error.stack}`),
    );
  assert.match(
    await refused({ other: demo }),
    /The models differ in their (architecture|blocks|hidden size): /,
  );
  assert.match(await refused({ other: two, dictionary: "gone" }), /no dictionary named gone/);
  assert.match(await refused({ other: one, probe: "judge" }), /was made for two/);
  // A direction of neither model is reported for the first model, not for the one asked last.
  const third = join(folder, "three.gguf");
  await writeTinyModel(third, {
    tensors: [tensor("blk.0.ffn_down.weight", [hidden, hidden], new Float32Array(hidden * hidden))],
  });
  const belongs = await refused({ other: third, probe: "judge" });
  assert.match(belongs, /was made for two \([0-9a-f]{16}\), not for /);
  assert.ok(belongs.endsWith(` (${(await modelFingerprint(one)).slice(0, 16)}).`), belongs);
  assert.match(
    await refused({ other: two, vector: "leads", layers: [0] }),
    /has layers 1; none of them is among/,
  );
  const bare = await lab.request("POST", "/jobs", {
    ...{ operation: "drift", model: one, other: two, probe: "judge" },
    examples: [{ text: "a" }, { text: "b", label: 1 }],
  });
  assert.equal([bare.status, bare.body.error], [400, "examples[0].label is required with probe."]);
});

test("drift in parts, merged, is that of one machine to the last digit", async () => {
  const body = submission({ other: two, dictionary: "some", probe: "judge", vector: "leads" });
  const expected = await run(body);
  const config = checkSubmission(body);
  const place = mkdtempSync(join(folder, "parts-"));
  const facts = { provenance: {} as Provenance, versions: {} };
  // Four parts of six examples: two of them have a single example, and no part knows the means.
  for (const part of [2, 0, 3, 1]) {
    const model = await Model.open(one);
    await computePart(
      runOf("drift").split as never,
      {
        ...{ config, model, artifacts: new Artifacts(place), progress: () => {}, clock: new StageClock() },
        openOther: (id: string) => Model.open(id),
      } as never,
      { part: [part, 4], folder: place },
      facts,
    );
    await model.close();
  }
  const { job } = await mergeParts(place, mkdtempSync(join(folder, "merged-")));
  const { artifacts, provenance: _, ...found } = job.result;
  assert.is(JSON.stringify(found), JSON.stringify(expected));
  assert.equal(artifacts, []);
});

test.run();
