/** Transcoders of the embedded model, from an extraction of two points to files. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type SaeResult } from "../../src/contracts/index.js";
import { decodeSafetensors } from "../../src/formats/safetensors.js";
import { filesOf } from "../../src/lab/training/from-extraction.js";
import { Dictionaries } from "../../src/library/index.js";
import { decodeRows, encodeRows } from "../../src/native/index.js";
import { saeFindings } from "../../src/operations/sae/figures.js";
import { saePicture } from "../../src/operations/sae/picture.js";
import saeWords from "../../src/operations/sae/words.js";
import { refusal } from "../support/refusal.js";
import { type DemoTraining, hidden, openTraining, small, texts } from "./demo-training.js";
import { readNpz } from "./npz-reader.js";

let folder: string;
let rows: string;
let opened: DemoTraining;
const extracted: DemoTraining["extracted"] = (body) => opened.extracted(body);
const job: DemoTraining["job"] = (body) => opened.job(body);
const train: DemoTraining["train"] = (...given) => opened.train(...given);
test.before(async () => {
  opened = await openTraining({ points: { point: "ffn_in" }, settings: { target: "ffn_out" } });
  ({ folder, rows } = opened);
  const { point, target } = await extracted({ out: rows, target: "ffn_out" });
  assert.equal([point, target], ["ffn_in", "ffn_out"]);
});
test.after(() => opened.close());

/** A matrix of the first shard. */
const matrixOf = (place: string, name: string) =>
  decodeSafetensors(readFileSync(join(place, "shard-00000.safetensors"))).tensors.get(name)!;

test("an extraction of two points has the rows of two extractions", async () => {
  const [input, output] = [join(folder, "input"), join(folder, "output")];
  await extracted({ out: input });
  await extracted({ out: output, point: "ffn_out" });
  for (const layer of [2, 5]) {
    const both = [matrixOf(rows, `layer_${layer}`), matrixOf(rows, `target_${layer}`)];
    assert.equal(both[0], matrixOf(input, `layer_${layer}`));
    assert.equal(both[1], matrixOf(output, `layer_${layer}`));
    assert.not.equal(both[0], both[1]);
  }
  // The mean of each text, of both points.
  const [means, outputs] = [join(folder, "means"), join(folder, "output-means")];
  await extracted({ out: means, target: "ffn_out", rows: "mean" });
  await extracted({ out: outputs, point: "ffn_out", rows: "mean" });
  assert.equal(matrixOf(means, "target_5"), matrixOf(outputs, "layer_5"));
  assert.match(
    await refusal(() => extracted({ out: rows })),
    /contains a different extraction: the two differ in shards\. Choose another folder\.$/,
  );
});

/** Predictions of some rows in float64, from the Lab's own files. */
function predicted(out: string, architecture: string, k: number, x: Float32Array): number[] {
  const { tensors } = decodeSafetensors(readFileSync(join(out, "sae-layer-5.safetensors")));
  const scaling = readNpz(readFileSync(join(out, "sae-normalization-5.npz")));
  const of = (name: string) => tensors.get(name)!.data as Float32Array;
  const [mean, goal] = [scaling.get("mean")!.data, scaling.get("target_mean")!.data];
  const [scale, goalScale] = [scaling.get("scale")!.data[0]!, scaling.get("target_scale")!.data[0]!];
  const skip = tensors.get("skip.weight")?.data;
  const features = of("encoder.bias").length;
  const found: number[] = [];
  for (let row = 0; row < x.length / hidden; row++) {
    const z = Array.from(mean, (m, i) => (x[row * hidden + i]! - m) / scale);
    const h = Array.from(of("encoder.bias"), (bias, f) =>
      z.reduce((sum, value, i) => sum + value * of("encoder.weight")[f * hidden + i]!, bias),
    );
    const largest = [...h.keys()].sort((a, b) => h[b]! - h[a]!).slice(0, k);
    const f = h.map((value, at) => {
      if (architecture === "topk") return largest.includes(at) ? Math.max(0, value) : 0;
      return value > (architecture === "relu" ? 0 : of("threshold")[at]!) ? value : 0;
    });
    for (let i = 0; i < hidden; i++) {
      let sum = of("decoder.bias")[i]!;
      for (let at = 0; at < features; at++) sum += f[at]! * of("decoder.weight")[i * features + at]!;
      for (let j = 0; j < hidden; j++) sum += z[j]! * Number(skip?.[i * hidden + j] ?? 0);
      found.push(sum * goalScale + goal[i]!);
    }
  }
  return found;
}

test("both layouts hold the same transcoder, for every architecture", async () => {
  const x = (matrixOf(rows, "layer_5").data as Float32Array).slice(hidden, 25 * hidden);
  const dictionaries = new Dictionaries(join(folder, "home"));
  for (const architecture of ["relu", "topk", "batchtopk", "jumprelu"] as const) {
    for (const skip of [false, true]) {
      const what = `${architecture}, skip ${skip}`;
      const out = join(folder, `layouts-${architecture}-${skip}`);
      const k = architecture.endsWith("topk") ? 4 : undefined;
      const { reports } = await train({ architecture, k, skip }, out);
      assert.ok((reports[0]?.explained_variance ?? 0) > 0, `${what}: better than the mean`);
      const wanted = predicted(out, architecture, 4, x);
      const size = Math.hypot(...wanted);
      const theirs = join(out, "saelens-layer-5");
      // SAELens has no TopK transcoder with a skip term.
      assert.is(existsSync(theirs), !(skip && architecture === "topk"), what);
      for (const path of [out, ...(existsSync(theirs) ? [theirs] : [])]) {
        const stored = await dictionaries.add("one", path);
        assert.equal(
          [stored.layer, stored.point, stored.writes, stored.skip],
          [5, "ffn_in", "ffn_out", skip],
          path,
        );
        const { places } = await dictionaries.open("one");
        const found = await decodeRows(places, await encodeRows(places, x), x);
        const off = Math.hypot(...found.map((value, i) => value - wanted[i]!));
        assert.ok(off < 1e-5 * size, `${path}: ${off} of ${size}`);
      }
      const listed = filesOf(out, 5, { architecture, skip });
      assert.is(listed.length, skip && architecture === "topk" ? 2 : 4);
      for (const file of listed) assert.ok(existsSync(file), file);
    }
  }
});

test("a stopped training of a transcoder resumes to the same files", async () => {
  const more = { architecture: "jumprelu", k: undefined, skip: true } as const;
  const [whole, stopped] = [join(folder, "whole"), join(folder, "stopped")];
  const told = await train(more, whole, { threads: 1 });
  for (let stops = 0; stops < 3; stops++) {
    const abort = new AbortController();
    let seen = 0;
    const error = await train(more, stopped, {
      ...{ threads: 2, signal: abort.signal, checkpointSeconds: 0 },
      progress: () => {
        if (++seen === 2) abort.abort();
      },
    }).catch((reason) => reason);
    assert.is(error.code, "CANCELLED");
    assert.ok(existsSync(join(stopped, "checkpoint-layer-5.safetensors")));
  }
  assert.match(
    await refusal(() => train({ ...more, skip: false }, stopped)),
    /contains a different training: skip is true there and false here\./,
  );
  const rest = await train(more, stopped);
  // What is recorded on the way depends on the stops; what is measured at the end does not.
  const figures = ({ reports }: typeof rest) =>
    reports.map(({ losses: _, training: __, ...report }) => report);
  assert.equal(figures(rest), figures(told));
  for (const [i, file] of filesOf(stopped, 5, more).entries())
    assert.ok(readFileSync(file).equals(readFileSync(filesOf(whole, 5, more)[i]!)), file);
});

test("a job trains a transcoder on its examples, as the command does on their rows", async () => {
  const examples = texts.slice(0, 20).map((text, i) => ({ text, split: i < 14 ? "train" : "test" }));
  const two = { point: "ffn_in", target: "ffn_out" };
  const few = { ...two, features: 32, steps: 40 };
  const own = ["sae-layer-5.safetensors", "sae-normalization-5.npz"];
  const relu = await job({ examples, ...few });
  assert.equal([relu.point, relu.target, relu.reports[0]?.architecture], ["ffn_in", "ffn_out", "relu"]);
  assert.equal(relu.names, [...own, "sae_weights.safetensors", "cfg.json"]);
  const topk = await job({ examples, ...few, rows: "all", architecture: "topk", k: 4, skip: true });
  assert.equal(topk.names, own);
  const { reports, target } = await job({ from: rows, target: "ffn_out", ...small });
  assert.is(target, "ffn_out");
  assert.equal(reports, (await train({}, join(folder, "same"))).reports);
  // The same rows without the target train an autoencoder.
  const plain = await job({ from: rows, architecture: "topk", k: 4, features: 48, steps: 60 });
  assert.equal([plain.point, plain.target], ["ffn_in", undefined]);
  assert.not.equal(plain.reports[0]?.held_out_mse, reports[0]?.held_out_mse);
});

test("reports, pictures and methods name what is predicted", async () => {
  const { reports } = await train({}, join(folder, "named"));
  const result = { point: "ffn_in", target: "ffn_out", reports } as SaeResult;
  assert.match(
    saeFindings(result).summary[0]!,
    /^Layer 5: the transcoder explains [\d.]+\s?% of the held-out variance of ffn_out with /,
  );
  const lines = saePicture(result, 48, { width: 100, colors: "none" });
  assert.ok(
    lines.some((line) =>
      line.includes("how well the features predict ffn_out of activations not used in training"),
    ),
  );
  const two = { from: "", target: "ffn_out", skip: true };
  const config = { ...small, ...two, operation: "sae", model: "demo", layers: [5] } as never;
  assert.match(
    saeWords.method(config),
    /^sae: skip transcoder from ffn_in to ffn_out \(topk, k 4\) with 48 features, 60 steps/,
  );
});

test("targets without their point, and skip terms without targets, are refused", async () => {
  const wrong = (body: object) => {
    try {
      checkSubmission({ model: "demo", ...body });
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };
  const extraction = { operation: "extract", data: "/texts.txt" };
  const training = { operation: "sae", from: "/rows" };
  assert.is(wrong({ ...extraction, point: "ffn_in", target: "ffn_out" }), "");
  assert.is(
    wrong({ ...extraction, target: "ffn_out" }),
    "target: ffn_out requires the point ffn_in, got block_out.",
  );
  assert.is(
    wrong({ ...extraction, point: "mid", target: "ffn_out" }),
    "target: ffn_out requires the point ffn_in, got mid.",
  );
  assert.match(wrong({ ...extraction, point: "ffn_in", target: "block_out" }), /^target: /);
  assert.is(wrong({ ...training, target: "ffn_out", skip: true }), "");
  assert.is(wrong({ ...training, skip: true }), "skip: applies to transcoders; it requires target.");
  assert.is(
    wrong({ ...training, point: "ffn_out", target: "ffn_out" }),
    "target: ffn_out requires the point ffn_in, got ffn_out.",
  );
  const examples = texts.slice(0, 20).map((text, i) => ({ text, split: i < 14 ? "train" : "test" }));
  assert.is(
    wrong({ operation: "sae", examples, target: "ffn_out" }),
    "target: ffn_out requires the point ffn_in, got block_out.",
  );
  const single = join(folder, "single");
  await extracted({ out: single });
  assert.is(
    await refusal(() => train({ from: single }, join(folder, "none"))),
    `${single} contains ffn_in of blocks 2, 5, without ffn_out, which a transcoder predicts; extract both with --point ffn_in --target ffn_out.`,
  );
});

test.run();
