import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { planSafetensors } from "../../src/formats/safetensors.js";
import { filledSettings, trainingBytes } from "../../src/lab/training/settings.js";
import { layoutScripts, writeLayouts } from "../dictionaries/cases.js";
import { tryMutants } from "../dictionaries/mutants.js";
import { seed } from "../support/fc.js";
import { module, moduleAt } from "../support/program.js";
import { pythonWith } from "../support/python.js";
import { TestRandom } from "../support/random.js";
import { writeSetConfig } from "../support/random-transcoders.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-mutants-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const count = 2000;
const python = pythonWith("numpy", "torch");

const everyLayout = async () => {
  const layouts = Object.values(layoutScripts).flatMap(({ script }, i) => {
    const place = join(folder, String(i));
    mkdirSync(place);
    return writeLayouts(python as string, script, place, seed);
  });
  const { read, refused, layouts: seen } = await tryMutants(folder, layouts, { from: seed * count, count });
  assert.is(read + refused, count);
  // Neither all refused nor all read would show that much was tried.
  assert.ok(read > count / 20, `${read} were read`);
  assert.ok(refused > count / 3, `${refused} were refused`);
  assert.equal([...seen].sort(), layouts.map(({ name }) => name).sort());
};
const title = "2,000 damaged and hostile dictionaries of every layout: read, or refused in a sentence";
if (python === undefined) test.skip(title, everyLayout);
else test(title, everyLayout);

/** Most bytes that a separate program takes for a dictionary's training, over its former use. */
function memoryOfTraining(settings: object): number {
  const body = `
    import { readFileSync } from "node:fs";
    const { DictionaryTrainer } = await import(${JSON.stringify(moduleAt("native/index"))});
    const most = () => 1024 * Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
    const before = most();
    const trainer = await DictionaryTrainer.open({
      ...${JSON.stringify(settings)},
      pieces: [{ path: ${JSON.stringify(rowsFile)}, offset: 0, type: "f32", uses: new Uint8Array(${rows}).fill(1).fill(2, 0, 64) }],
    });
    await trainer.run(3);
    await trainer.evaluate();
    await trainer.state();
    console.log(most() - before);`;
  const said = execFileSync(process.execPath, [...module, "--input-type=module", "-e", body]);
  return Number(said.toString());
}

test("a cross-layer transcoder is added in a quarter of its size", () => {
  const place = join(folder, "cross-layer");
  mkdirSync(place);
  // 1.2 GB of decoders, of which the file system stores nothing.
  const [features, blocks, width] = [2048, 96, 1536];
  const vector = (length: number) => ({ dtype: "F32" as const, shape: [length] });
  const matrix = (...shape: number[]) => ({ dtype: "F32" as const, shape });
  for (const [name, tensors] of [
    [
      "W_enc_0.safetensors",
      { W_enc_0: matrix(features, width), b_enc_0: vector(features), b_dec_0: vector(width) },
    ],
    ["W_dec_0.safetensors", { W_dec_0: matrix(features, blocks, width) }],
  ] as const) {
    const { head, bytes } = planSafetensors(tensors);
    writeFileSync(join(place, name), head);
    truncateSync(join(place, name), bytes);
  }
  writeSetConfig(place, { kind: "cross_layer_transcoder" });
  const body = `
    import { readFileSync } from "node:fs";
    const { Dictionaries } = await import(${JSON.stringify(moduleAt("library/index"))});
    const most = () => 1024 * Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
    const before = most();
    const { writes_blocks } = await new Dictionaries(${JSON.stringify(join(folder, "home"))}).add("one",
      ${JSON.stringify(join(place, "W_enc_0.safetensors"))});
    console.log(JSON.stringify({ memory: most() - before, writes_blocks }));`;
  const said = execFileSync(process.execPath, [...module, "--input-type=module", "-e", body]);
  const { memory, writes_blocks } = JSON.parse(said.toString());
  const whole = 4 * features * blocks * width;
  console.log(`${(memory / 2 ** 20).toFixed(0)} MB for ${(whole / 2 ** 20).toFixed(0)} MB`);
  assert.is(writes_blocks, blocks);
  assert.ok(memory < 0.25 * whole, `${memory} bytes of ${whole}`);
});

const [rows, hidden] = [2048, 128];
const rowsFile = join(folder, "rows");

test("the estimate of a training's memory is its actual use", () => {
  if (process.platform !== "linux") return;
  const random = new TestRandom(3);
  const block = random.normals(64 * hidden);
  writeFileSync(
    rowsFile,
    Buffer.concat(Array.from({ length: rows / 64 }, () => new Uint8Array(block.buffer))),
  );
  const taken: Record<string, string> = {};
  for (const architecture of ["relu", "topk", "batchtopk", "jumprelu"] as const) {
    for (const [features, batch] of [
      [16_384, 1984],
      [49_152, 256],
    ] as const) {
      const settings = filledSettings({ architecture, features, batch, steps: 10, seed: 1 }, hidden, rows);
      const found = memoryOfTraining({ ...settings, threads: 2 });
      const told = trainingBytes(settings, { threads: 2, resumed: false });
      taken[`${architecture} ${features} ${batch}`] = (found / told).toFixed(2);
      // Far from any allocator's reserve, and from the estimate of a formula that forgets a part.
      assert.ok(found < 1.3 * told && found > told / 3, `${architecture}, ${features}: ${found} of ${told}`);
    }
  }
  if (process.env.TAPLINE_TEST_TELL) console.log(taken);
});

test.run();
