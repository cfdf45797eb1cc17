import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type ExtractConfig } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { openExtraction } from "../../src/lab/extraction/open-extraction.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { LeastSquares } from "../../src/lab/training/least-squares.js";
import { fitLens } from "../../src/lab/training/lens.js";
import { Lenses } from "../../src/library/lenses.js";
import { Model } from "../../src/native/index.js";
import { extract } from "../../src/operations/extract/run.js";
import { demo } from "../native/demo-model.js";
import { TestRandom } from "../support/random.js";
import { refusal } from "../support/refusal.js";

const things = ["capital", "film", "book", "trip", "river", "teacher", "garden", "letter"];
const texts = Array.from(
  { length: 80 },
  (_, i) =>
    `The ${things[i % 8]} of ${things[(i * 3 + 1) % 8]} was ${i % 2 === 0 ? "good" : "not good"} ${i % 20}.`,
);

const folder = mkdtempSync(join(tmpdir(), "tapline-lens-fit-"));
const lenses = new Lenses(folder);
let model: Model;

test.before(async () => {
  model = await Model.open(demo, { gpuLayers: 0 });
});
test.after(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

async function extracted(name: string, body: object): Promise<string> {
  const [data, out] = [join(folder, "texts.txt"), join(folder, name)];
  writeFileSync(data, texts.join("\n"));
  const submission = { operation: "extract", model: "demo", data, out, shard_tokens: 512, ...body };
  const config = checkSubmission(submission) as ExtractConfig;
  const openOther = () => Promise.reject(new Error("One model is enough."));
  const artifacts = new Artifacts(folder);
  await extract({ config, model, artifacts, openOther, clock: new StageClock(), progress: () => {} });
  return out;
}

async function fit(from: string, name = "mine") {
  const extraction = await openExtraction(from);
  return fitLens({ extraction, model, path: demo, lenses, name, progress: () => {} });
}

/** Why no lens can be fitted to what was extracted. */
const unfitted = (from: string) => refusal(() => fit(from, "refused"));

test("least squares recovers an affine map", () => {
  const random = new TestRandom(5);
  const width = 6;
  const map = Array.from({ length: width }, () => Array.from({ length: width }, () => random.normal()));
  const offset = Array.from({ length: width }, () => random.normal());
  const squares = new LeastSquares(width);
  for (let row = 0; row < 400; row++) {
    const x = Float64Array.from({ length: width }, () => random.normal());
    const y = map.map((weights, i) => weights.reduce((sum, one, j) => sum + one * x[j]!, offset[i]!));
    squares.add(x, Float64Array.from(y));
  }
  const { matrix, bias } = squares.solve();
  for (let i = 0; i < width; i++) {
    assert.ok(Math.abs(bias[i]! - offset[i]!) < 1e-3, `bias ${i}`);
    for (let j = 0; j < width; j++) assert.ok(Math.abs(matrix[i * width + j]! - map[i]![j]!) < 1e-3);
  }
});

test("a lens fitted on an extraction is closer to the output on unseen texts", async () => {
  const stored = await fit(await extracted("rows", { layers: [3, 6, 7] }));
  assert.equal(
    [stored.kind, stored.layers, stored.texts, stored.model_layers],
    ["regression", [3, 6], 72, 8],
  );
  assert.match(stored.notes[0]!, /of 72 texts; every 10th text was held out\.$/);
  for (const { layer, divergence, plain_divergence: plain } of stored.fit!) {
    assert.ok(divergence < plain, `block ${layer}: ${divergence} against ${plain}`);
  }
  assert.equal((await lenses.get("mine")).fit, stored.fit);
  assert.is((await lenses.fitting("mine", model.info)).translator(7), undefined);
});

test("an extraction that cannot fit a lens is refused with the missing part", async () => {
  assert.match(
    await unfitted(await extracted("shallow", { layers: [3, 5] })),
    /has the blocks 3, 5; a lens needs the last block, 7, and at least one other\.$/,
  );
  assert.match(
    await unfitted(await extracted("last", { layers: [6, 7], rows: "last" })),
    /the last token's activation/,
  );
  texts.length = 20;
  assert.match(
    await unfitted(await extracted("few", { layers: [6, 7] })),
    /has \d+ rows to fit on; a lens of width 128 needs 516\.$/,
  );
  assert.equal(
    (await lenses.list()).map(({ name }) => name),
    ["mine"],
  );
});

test.run();
