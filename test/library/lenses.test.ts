import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type InspectConfig } from "../../src/contracts/index.js";
import { UserError } from "../../src/contracts/user-error.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Lenses } from "../../src/library/lenses.js";
import { demoLensPath, demoModelPath } from "../../src/models/resolve.js";
import { Model } from "../../src/native/index.js";
import { inspect } from "../../src/operations/inspect/run.js";
import { fc } from "../support/fc.js";
import { refusal } from "../support/refusal.js";
import { type TorchValue, torchFile } from "../support/torch-file.js";

const home = mkdtempSync(join(tmpdir(), "tapline-lenses-"));
const saved = process.env.TAPLINE_HOME;
const lenses = new Lenses(home);
let model: Model;

test.before(async () => {
  process.env.TAPLINE_HOME = home;
  model = await Model.open(demoModelPath, { gpuLayers: 0 });
});
test.after(async () => {
  await model.close();
  if (saved === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = saved;
  rmSync(home, { recursive: true, force: true });
});

let files = 0;
/** A file that a publisher might have written. */
function published(value: { [key: string]: TorchValue }, name = `made-${++files}_jacobian_lens.pt`): string {
  const path = join(home, name);
  writeFileSync(path, torchFile(value));
  return path;
}

const square = (width: number, at: (row: number, column: number) => number) => ({
  shape: [width, width],
  data: Float32Array.from({ length: width * width }, (_, i) => at(Math.floor(i / width), i % width)),
});
const identity = (width: number) => square(width, (row, column) => (row === column ? 1 : 0));

async function run(body: object) {
  const config = checkSubmission({ operation: "inspect", model: "demo", ...body }) as InspectConfig;
  const artifacts = new Artifacts(mkdtempSync(join(home, "job-")));
  const openOther = () => Promise.reject(new Error("One model is enough."));
  return inspect({ config, model, artifacts, openOther, clock: new StageClock(), progress: () => {} });
}

test("the embedded model's Jacobian lens: seven blocks of 128 values in 16 bits", async () => {
  const stored = await lenses.add("demo", demoLensPath);
  assert.equal(
    [stored.kind, stored.layout, stored.n_embd, stored.layers, stored.residual, stored.texts],
    ["jacobian", "Jacobian lens", 128, [0, 1, 2, 3, 4, 5, 6], false, 96],
  );
  const { path, half, matrix } = (await lenses.open("demo")).translator(3)!;
  assert.is(half, true);
  assert.is(readFileSync(path).length, matrix + 4 * 128 * 128 * 2, "blocks 3 to 6 are what follows");
  assert.equal(
    (await lenses.list()).map(({ name }) => name),
    ["demo"],
  );
});

test("a tuned lens reads a block's input, which is the output of the block before", async () => {
  const folder = mkdtempSync(join(home, "tuned-"));
  const weights = Object.fromEntries(
    [0, 1, 2, 3].flatMap((index) => [
      [`${index}.weight`, square(4, () => index)],
      [`${index}.bias`, { shape: [4], data: Float32Array.of(index, 0, 0, 0) }],
    ]),
  );
  writeFileSync(join(folder, "params.pt"), torchFile(weights));
  const add = () => lenses.add("tuned", folder);
  assert.match(await refusal(add), /config\.json next to its params\.pt; there is none\.$/);
  const settle = (settings: object) => writeFileSync(join(folder, "config.json"), JSON.stringify(settings));
  const settings = { d_model: 4, num_hidden_layers: 4, lens_type: "linear_tuned_lens", bias: true };
  settle({ ...settings, base_model_name_or_path: "gpt2" });
  const stored = await add();
  assert.equal(
    [stored.kind, stored.layers, stored.residual, stored.trained_on, stored.model_layers],
    ["tuned", [0, 1, 2], true, "gpt2", 4],
  );
  const { path, half, matrix, bias, residual } = (await lenses.open("tuned")).translator(1)!;
  const bytes = readFileSync(path);
  assert.equal([half, residual], [true, true]);
  assert.is(bytes.readFloatLE(bias!), 2, "of the translator whose input is block 2's");
  assert.is(bytes.readUInt16LE(matrix), 0x4000, "2 in 16 bits");
  for (const [wrong, reason] of [
    [{ lens_type: "something" }, /"something"/],
    [{ d_model: 5 }, /d_model is 5, but the matrices are 4 wide/],
    [{ num_hidden_layers: 3 }, /lists 3 blocks, but the file has a translator 3/],
  ] as const) {
    settle({ ...settings, ...wrong });
    assert.match(await refusal(add), reason);
  }
});

test("a lens of another model is refused with both numbers", async () => {
  await lenses.add("narrow", published({ J: { 0: identity(4) }, d_model: 4, n_prompts: 1 }));
  assert.is(
    await refusal(() => lenses.fitting("narrow", model.info)),
    "The lens narrow reads activations of 4 values; the model's hidden size is 128.",
  );
  await lenses.add("deep", published({ J: { 9: identity(128) } }));
  assert.is(
    await refusal(() => lenses.fitting("deep", model.info)),
    "The lens deep reads block 9; the model has blocks 0 to 7.",
  );
  assert.is(
    await refusal(() => lenses.fitting("tuned", { nEmbd: 4, nLayer: 6 })),
    "The lens tuned is for a model with 4 blocks; this one has 6.",
  );
});

test("what is no lens, or reads elsewhere, is one sentence", async () => {
  const add = (value: { [key: string]: TorchValue }) => refusal(() => lenses.add("x", published(value)));
  assert.match(await add({ w: identity(4) }), /^The file is not a supported lens: it has "w";/);
  assert.match(await add({ J: { 0: identity(4) }, d_model: 5 }), /d_model is 5, but its matrices are 4 wide/);
  assert.match(
    await add({ J: { 0: identity(4), 1: identity(5) } }),
    /^"J\.1" has the shape \[5, 5\]; expected \[4, 4\]\.$/,
  );
  const provenance = { capture_point: "attn_out" };
  assert.match(await add({ J: { 0: identity(4) }, provenance }), /reads "attn_out"; only block outputs/);
  assert.match(
    await add({ J: { 0: identity(4) }, provenance: { stream_index: 2 } }),
    /one of several residual streams/,
  );
  const infinite = square(4, () => Number.POSITIVE_INFINITY);
  assert.match(await add({ J: { 0: infinite } }), /block 0 contains numbers that are not finite/);
});

test("500 damaged lenses: kept, or refused in one sentence", async () => {
  const good = torchFile({ J: { 0: identity(4), 1: identity(4) }, d_model: 4, n_prompts: 3 });
  const path = join(home, "damaged_jacobian_lens.pt");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      fc.nat(good.length),
      fc.boolean(),
      async (changes, length, cut) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of changes) bytes[at] = value;
        writeFileSync(path, cut ? bytes.subarray(0, length) : bytes);
        try {
          await lenses.add("damaged", path);
        } catch (error) {
          assert.instance(error, UserError, String(error));
          assert.match((error as Error).message, /^[^\n]+\.$/);
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("an identity lens equals the logit lens to the bit, the last block the output", async () => {
  const all = Object.fromEntries([0, 1, 2, 3, 4, 5, 6].map((layer) => [layer, identity(128)]));
  await lenses.add("same", published({ J: all }));
  const { layers } = await run({
    prompt: "The capital of France is",
    layers: [0, 3, 6, 7],
    lens: "same",
    target_token: " Paris",
  });
  for (const { layer, translated, predictions, target, entropies, divergences } of layers) {
    assert.equal(translated, layer === 7 ? undefined : { predictions, target, entropies, divergences });
    assert.ok(entropies!.every((nats) => nats >= 0 && nats <= Math.log(model.info.nVocab)));
    assert.ok(
      divergences!.every((nats) => (layer === 7 ? nats < 1e-6 : nats > 0.01)),
      `${layer}: ${divergences}`,
    );
  }
});

test("a lens is read next to an unchanged logit lens, any blocks selected", async () => {
  const body = { prompt: "The capital of France is", layers: [4, 5], target_token: " Paris" };
  const plain = await run(body);
  const { layers, lens, note } = await run({ ...body, lens: "demo" });
  assert.equal(lens, { name: "demo", kind: "jacobian", sha256: (await lenses.get("demo")).sha256 });
  assert.match(note, /Both in nats/);
  for (const [index, found] of layers.entries()) {
    const { predictions, target } = plain.layers[index]!;
    const top = (lists: NonNullable<typeof predictions>) => lists.map((list) => list[0]!.token_id);
    assert.equal(top(found.predictions!), top(predictions!));
    assert.equal(
      found.target!.map(({ rank }) => rank),
      target!.map(({ rank }) => rank),
    );
    const mean = (values: number[]) => values.reduce((a, b) => a + b) / values.length;
    const translated = mean(found.translated!.divergences!.slice(1));
    assert.ok(translated < mean(found.divergences!.slice(1)), `${found.layer}: ${translated}`);
  }
  // Block 5 holds the answer; the lens that translates says so more clearly.
  const last = (found: (typeof layers)[number]) => found.translated!.target!.at(-1)!.probability;
  assert.ok(last(layers[1]!) > layers[1]!.target!.at(-1)!.probability);
});

test("measures without a lens, and what a lens cannot read", async () => {
  const { layers, lens } = await run({ prompt: "The capital of France is", layers: [2], measures: true });
  assert.is(lens, undefined);
  assert.is(layers[0]!.entropies!.length, layers[0]!.predictions!.length);
  assert.is(layers[0]!.translated, undefined);
  assert.is(
    await refusal(() => run({ prompt: "x", layers: [7], lens: "demo" })),
    "The lens demo covers the blocks 0, 1, 2, 3, 4, 5, 6, not 7.",
  );
  assert.match(
    await refusal(() => run({ prompt: "x", layers: [1], lens: "nobody" })),
    /no lens named nobody;/,
  );
});

test.run();
