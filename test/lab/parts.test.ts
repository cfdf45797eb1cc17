/** Experiments in parts: merged, they have the numbers and the bytes of one machine. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type PatchSweepConfig, type Provenance } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { computePart } from "../../src/lab/parts/compute.js";
import { mergeParts } from "../../src/lab/parts/merge.js";
import { readPart } from "../../src/lab/parts/part-file.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Model } from "../../src/native/index.js";
import sweep, { patchSweep } from "../../src/operations/patch_sweep/run.js";
import { demo } from "../native/demo-model.js";
import { refusal } from "../support/refusal.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-parts-"));
const pairs = [
  { clean: "The capital of France is", corrupted: "The capital of Japan is" },
  { clean: "The capital of Italy is", corrupted: "The capital of Spain is", target_token: " Rome" },
  { clean: "The capital of China is", corrupted: "The capital of Egypt is" },
];
const body = {
  pairs,
  layers: [1, 4, 6],
  positions: [-3, -1],
  points: ["attn_out", "block_out", "head_out"],
  seed: 5,
};

let model: Model;
test.before(async () => {
  model = await Model.open(demo);
});
test.after(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

const made = (name: string) => mkdtempSync(join(folder, `${name}-`));

function inputOf(more: object, place: string) {
  const config = checkSubmission({ operation: "patch_sweep", model: "demo", ...body, ...more });
  return {
    ...{
      config: config as PatchSweepConfig,
      model,
      artifacts: new Artifacts(place),
      clock: new StageClock(),
    },
    ...{ progress: () => {}, openOther: () => Promise.reject(new Error("One model is enough.")) },
  };
}

/** Only its layers are read from it. */
const facts = {
  provenance: { layers: [] as number[] } as unknown as Provenance,
  versions: { backend: "test" },
};

async function parts(count: number, more: object = {}, place = made("parts")): Promise<string> {
  for (let part = 0; part < count; part++) {
    await computePart(
      sweep.split as never,
      inputOf(more, place) as never,
      { part: [part, count], folder: place },
      facts,
    );
  }
  return place;
}

test("merged parts are the result of one machine", async () => {
  const whole = made("whole");
  const expected = await patchSweep(inputOf({}, whole));
  const file = "patch-sweep.npz";
  for (const count of [2, 3]) {
    const out = made("merged");
    const { job } = await mergeParts(await parts(count), out);
    const { artifacts, provenance: _, ...found } = job.result;
    assert.ok(JSON.stringify(found) === JSON.stringify(expected), `${count} parts`);
    assert.equal(artifacts, [file]);
    assert.ok(readFileSync(join(out, file)).equals(readFileSync(join(whole, file))), `${count} parts`);
    assert.equal(JSON.parse(readFileSync(join(out, "job.json"), "utf8")), JSON.parse(JSON.stringify(job)));
  }
});

test("the points of a single pair are divided, and counted as in one sweep", async () => {
  const one = { pairs: pairs.slice(1, 2), layers: [1, 7], positions: [-3, -2, -1] };
  const whole = made("whole");
  const expected = await patchSweep(inputOf(one, whole));
  const file = "patch-sweep.npz";
  for (const count of [2, 3]) {
    const out = made("merged");
    const { job } = await mergeParts(await parts(count, one), out);
    const { artifacts, provenance: _, ...found } = job.result;
    assert.ok(JSON.stringify(found) === JSON.stringify(expected), `${count} parts`);
    assert.ok(readFileSync(join(out, file)).equals(readFileSync(join(whole, file))), `${count} parts`);
  }
});

test("a part that is computed twice is the same file", async () => {
  const place = await parts(2);
  const contents = () => readdirSync(place).map((name) => readFileSync(join(place, name), "utf8"));
  const before = contents();
  await parts(2, {}, place);
  assert.equal(contents(), before);
  assert.equal(readdirSync(place).sort(), ["part-0-of-2.json", "part-1-of-2.json"]);
  // NaN and typed arrays survive the file.
  const { items } = await readPart(join(place, "part-0-of-2.json"));
  assert.is(items.length, 5, "of nine: three pairs at three points each");
  assert.instance((items[0] as { sweep: { patched: Float64Array } }).sweep.patched, Float64Array);
});

test("missing parts are named, and parts of other experiments are refused by their hash", async () => {
  const place = await parts(3);
  const text = readFileSync(join(place, "part-1-of-3.json"), "utf8");
  rmSync(join(place, "part-1-of-3.json"));
  assert.is(
    await refusal(() => mergeParts(place, made("out"))),
    `${place} lacks 1 of 3 parts: part-1-of-3.json.`,
  );
  const other = await parts(3, { seed: 6 });
  writeFileSync(join(place, "part-1-of-3.json"), readFileSync(join(other, "part-1-of-3.json")));
  assert.match(
    await refusal(() => mergeParts(place, made("out"))),
    /^part-1-of-3\.json \([0-9a-f]{8}\) belongs to another experiment than part-0-of-3\.json \([0-9a-f]{8}\): seed is 5 in part-0-of-3\.json and 6 in part-1-of-3\.json\.$/,
  );
  writeFileSync(join(place, "part-1-of-3.json"), text.slice(0, -20));
  assert.match(
    await refusal(() => mergeParts(place, made("out"))),
    /is not a part of an experiment: it is not JSON\.$/,
  );
  writeFileSync(join(place, "part-1-of-3.json"), text);
  writeFileSync(join(place, "part-0-of-2.json"), text);
  assert.match(
    await refusal(() => mergeParts(place, made("out"))),
    /several divisions: into 2 and 3 parts\.$/,
  );
  assert.is(
    await refusal(() => parts(10)),
    "The experiment has 9 items, which cannot be divided into 10 parts.",
  );
});

test("the command line computes parts, submits them to local workers, and merges them", () => {
  const program = fileURLToPath(new URL("../../bin/tapline.js", import.meta.url));
  const file = join(folder, "pairs.json");
  writeFileSync(file, JSON.stringify(pairs));
  const tapline = (...words: string[]) => {
    const env = { ...process.env, TAPLINE_HOME: join(folder, "home") };
    const ended = spawnSync(process.execPath, [program, ...words], { env, encoding: "utf8" });
    assert.is(ended.status, 0, ended.stderr);
    return ended.stdout;
  };
  const experiment = ["patch", "--pairs", file, "--layers", "1,4", "--positions", "-1", "--quiet"];
  const [whole, place, merged, submitted] = ["w", "p", "m", "s"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
    string,
  ];
  tapline(...experiment, "--lab", "new", "--out", whole);
  for (const part of ["0/2", "1/2"]) tapline(...experiment, "--shard", part, "--out", place);
  assert.match(tapline("merge", place, "--out", merged), /^Merged 2 parts: patch-sweep\.npz, job\.json in /);
  tapline(...experiment, "--submit", "local", "--parts", "3", "--out", submitted);
  const read = (out: string) => {
    const { result } = JSON.parse(readFileSync(join(out, "job.json"), "utf8"));
    const { provenance, ...rest } = result;
    return [rest, provenance.config_sha256, readFileSync(join(out, "patch-sweep.npz"), "base64")];
  };
  assert.equal(read(merged), read(whole));
  assert.equal(read(submitted), read(whole));
  assert.match(tapline("report", merged, "--out", "-"), /<html/);
});

test.run();
