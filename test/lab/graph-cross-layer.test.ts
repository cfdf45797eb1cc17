/** Graphs with a cross-layer transcoder on the embedded model, and what else refuses one. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Config, checkSubmission, type GraphResult } from "../../src/contracts/index.js";
import { decodeSafetensors, encodeSafetensors } from "../../src/formats/safetensors.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { addSet, Dictionaries, setAt } from "../../src/library/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { type Edit, Model } from "../../src/native/index.js";
import { runOperation } from "../../src/operations/runs.js";
import { writeCrossLayer } from "../support/random-transcoders.js";
import { refusal } from "../support/refusal.js";

const [width, blocks, features] = [128, 8, 50];
const prompt = "The capital of France is";

const folder = mkdtempSync(join(tmpdir(), "tapline-graph-cross-layer-"));
const set = join(folder, "set");
const home = join(folder, "home");
const homeBefore = process.env.TAPLINE_HOME;
const dictionaries = new Dictionaries(home);
let model: Model;
test.before(async () => {
  process.env.TAPLINE_HOME = home;
  model = await Model.open(demoModelPath);
  mkdirSync(set);
  // The point that published ones read.
  writeCrossLayer(set, { width, features, blocks, input: "hook_resid_mid" });
});
test.after(async () => {
  if (homeBefore === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = homeBefore;
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run<R>(body: object): Promise<R> {
  const config = checkSubmission({ model: "demo", ...body }) as Config;
  const result = await runOperation({
    ...{
      config,
      model,
      artifacts: new Artifacts(mkdtempSync(join(folder, "job-"))),
      clock: new StageClock(),
    },
    progress: () => {},
    openOther: () => Model.open(demoModelPath),
  });
  return result as unknown as R;
}

const graph = (body: object) =>
  run<GraphResult>({ operation: "graph", prompt, nodes: 7500, node_threshold: 1, ...body });

test("a folder is saved as a set, one dictionary per block", async () => {
  const members = await setAt(set, undefined);
  const stored = await addSet(dictionaries, "clt", set, members!);
  assert.equal(
    stored.map(({ name, layer, writes_blocks, writes, activation }) => [
      ...[name, layer, writes_blocks, writes, activation],
    ]),
    Array.from({ length: blocks }, (_, layer) => [
      ...[`clt-${layer}`, layer, blocks - layer, "ffn_out", "jumprelu"],
    ]),
  );
});

test("sums close, and removals in the frozen model equal edges", async () => {
  const { transcoders, targets, closing, nodes, size } = await graph({ transcoders: "clt", measured: 8 });
  assert.equal(
    transcoders?.blocks.map(({ layer, writes_blocks }) => [layer, writes_blocks]),
    Array.from({ length: blocks }, (_, layer) => [layer, blocks - layer]),
  );
  assert.ok(size.active! > 30, `${size.active} active features`);
  assert.ok(closing.worst < 1e-4, `${closing.worst}`);
  assert.ok(closing.frozen! < 1e-4, `${closing.frozen}`);
  for (const { value, direct } of targets) {
    const sum = Object.values(direct).reduce((all, one) => all + one, 0);
    assert.ok(Math.abs(sum - value) < 1e-3 * Math.abs(value), `${sum}, ${value}`);
  }
  assert.ok(nodes.some(({ kind, layer }) => kind === "feature" && layer === 0));
});

test("a measured removal takes a feature out of all blocks that it writes into", async () => {
  const { measured, nodes, targets, token_ids } = await graph({ transcoders: "clt", measured: 60 });
  const low = measured!.nodes.find(({ layer }) => layer < 5);
  assert.ok(low !== undefined, "no low feature is among the measured ones");
  const { layer, position, index, effect } = low!;
  const { value } = nodes.find(
    (node) =>
      node.kind === "feature" && node.layer === layer && node.position === position && node.index === index,
  )!;
  const { tensors } = decodeSafetensors(readFileSync(join(set, `W_dec_${layer}.safetensors`)));
  const written = tensors.get(`W_dec_${layer}`)!.data as Float32Array;
  const edits = Array.from({ length: blocks - layer }, (_, block): Edit => {
    const at = (index * (blocks - layer) + block) * width;
    const vector = written.slice(at, at + width).map((one) => -one * value!);
    return { layer: layer + block, point: "ffn_out", positions: [[position, position]], vector };
  });
  const context = await model.createContext({ nCtx: 64, maxSequences: 3, threads: 1 });
  const tokens = Int32Array.from(token_ids);
  const { logits } = await context.forward({
    sequences: [{ tokens }, { tokens, edits }, { tokens, edits: edits.slice(0, 1) }],
    logits: Int32Array.of(tokens.length - 1),
  });
  await context.close();
  const { data } = logits!;
  const count = data.length / 3;
  const [clean, removed, partly] = [0, 1, 2].map((row) => {
    const own = (data as Float32Array).subarray(row * count, (row + 1) * count);
    return own[targets[0]!.token_id]! - own.reduce((sum, one) => sum + one, 0) / count;
  }) as [number, number, number];
  assert.ok(Math.abs(clean - removed - effect) < 2e-3, `${clean - removed}, ${effect}`);
  // Removed from one block only, it has a different effect.
  assert.ok(Math.abs(clean - partly - effect) > 2e-2, `${clean - partly}, ${effect}`);
});

test("a single block's features still write into later blocks, whose errors lack them", async () => {
  const { closing, transcoders, nodes } = await graph({ transcoders: "clt-3", measured: 5 });
  assert.equal(
    transcoders?.blocks.map(({ layer }) => layer),
    [3],
  );
  assert.ok(closing.worst < 1e-4, `${closing.worst}`);
  assert.ok(closing.frozen! < 1e-4, `${closing.frozen}`);
  assert.ok(nodes.some(({ kind, layer }) => kind === "error" && layer === 5));
});

test("features, clamps and models of other depths refuse it with a sentence", async () => {
  const only =
    "The dictionary clt-7 is part of a cross-layer transcoder, whose features write into the MLP outputs of several blocks; only graph can use it.";
  assert.is(await refusal(() => run({ operation: "features", dictionary: "clt-7", prompt })), only);
  const clamp = { operation: "compare", prompt, layers: [7], max_tokens: 1, intervention: "clamp" };
  assert.is(
    await refusal(() =>
      run({ ...clamp, point: "ffn_out", feature: ["clt-7", 5], min: 0, max: 0, strengths: [1] }),
    ),
    only,
  );
  const size = { nEmbd: width, nLayer: blocks };
  assert.is(await refusal(() => dictionaries.direction("clt-7", 5, 7, size, "ffn_out")), only);
  assert.is(
    await refusal(() => dictionaries.transcoders("clt", { ...size, nLayer: 9 })),
    "The dictionary clt-0 writes into blocks 0 to 7; the model's last block is 8.",
  );
});

/** Writes circuit-tracer's files in Gemma Scope 2's layout, with a skip term if wanted. */
function writeGemmaScope(from: string, to: string, skip?: Float32Array): void {
  mkdirSync(to);
  for (let layer = 0; layer < blocks; layer++) {
    const arrays = ["enc", "dec"].flatMap((part) => [
      ...decodeSafetensors(readFileSync(join(from, `W_${part}_${layer}.safetensors`))).tensors,
    ]);
    const of = (name: string) => new Map(arrays).get(`${name}_${layer}`)!.data as Float32Array;
    const [encoder, decoder] = [of("W_enc"), of("W_dec")];
    const count = blocks - layer;
    const transposed = new Float32Array(encoder.length);
    const written = new Float32Array(features * blocks * width);
    for (let feature = 0; feature < features; feature++) {
      for (let k = 0; k < width; k++) transposed[k * features + feature] = encoder[feature * width + k]!;
      const own = decoder.subarray(feature * count * width, (feature + 1) * count * width);
      written.set(own, (feature * blocks + layer) * width);
    }
    const vector = (name: string) => ({ shape: [of(name).length], data: of(name) });
    const bytes = encodeSafetensors({
      w_enc: { shape: [width, features], data: transposed },
      w_dec: { shape: [features, blocks, width], data: written },
      ...{ b_enc: vector("b_enc"), b_dec: vector("b_dec"), threshold: vector("threshold") },
      ...(skip && { affine_skip_connection: { shape: [width, width], data: skip } }),
    });
    writeFileSync(join(to, `params_layer_${layer}.safetensors`), bytes);
  }
  writeFileSync(join(to, "config.json"), JSON.stringify({ architecture: "jump_relu", model_name: "toy" }));
}

test("Gemma Scope 2's layout of the same weights gives the same graph, and skip terms close", async () => {
  const [same, theirs, affine] = [join(folder, "same"), join(folder, "theirs"), join(folder, "affine")];
  mkdirSync(same);
  writeCrossLayer(same, { width, features, blocks, input: "mlp.hook_in" });
  writeGemmaScope(same, theirs);
  const skip = Float32Array.from({ length: width * width }, (_, i) => 0.05 * Math.sin(i));
  writeGemmaScope(same, affine, skip);
  for (const [name, place] of [
    ["same", same],
    ["theirs", theirs],
    ["affine", affine],
  ] as const)
    await addSet(dictionaries, name, place, (await setAt(place, undefined))!);
  const asked = { measured: 8 };
  const [one, other] = [
    await graph({ transcoders: "same", ...asked }),
    await graph({ transcoders: "theirs", ...asked }),
  ];
  assert.equal(
    other.transcoders?.blocks.map(({ layer, writes_blocks }) => [layer, writes_blocks]),
    one.transcoders?.blocks.map(({ layer, writes_blocks }) => [layer, writes_blocks]),
  );
  assert.equal([other.nodes, other.edges], [one.nodes, one.edges]);
  const skipped = await graph({ transcoders: "affine", ...asked });
  assert.ok(skipped.closing.worst < 1e-4, `${skipped.closing.worst}`);
  assert.ok(skipped.closing.frozen! < 1e-4, `${skipped.closing.frozen}`);
  assert.not.equal(skipped.edges, one.edges);
});

test("what a cross-layer feature raises is the sum of its rows", async () => {
  const { features: described } = await graph({ transcoders: "clt", measured: 0 });
  const one = described!.find(({ layer }) => layer < 6)!;
  const { tensors } = decodeSafetensors(readFileSync(join(set, `W_dec_${one.layer}.safetensors`)));
  const written = tensors.get(`W_dec_${one.layer}`)!.data as Float32Array;
  const sum = new Float32Array(width);
  const count = blocks - one.layer;
  for (let block = 0; block < count; block++)
    for (let k = 0; k < width; k++) sum[k]! += written[(one.index * count + block) * width + k]!;
  const context = await model.createContext({ nCtx: 8 });
  const logits = await context.lensLogits(sum);
  await context.close();
  const best = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]!).slice(0, 5);
  assert.equal(
    one.raised?.map(({ token_id }) => token_id),
    best,
  );
});

test.run();
