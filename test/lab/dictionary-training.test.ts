import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  checkSubmission,
  type ExtractConfig,
  type SaeConfig,
  type SaeResult,
  UserError,
} from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { extract } from "../../src/lab/operations/extract.js";
import type { Findings } from "../../src/lab/operations/operation.js";
import { sae } from "../../src/lab/operations/sae.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import {
  type ExtractionTraining,
  filesOf,
  trainFromExtraction,
} from "../../src/lab/training/from-extraction.js";
import { trainingRows } from "../../src/lab/training/rows.js";
import { Dictionaries } from "../../src/library/index.js";
import { encodeRows, Model } from "../../src/native/index.js";
import { demo } from "../native/demo-model.js";

const hidden = 128;
const layers = [2, 5];
const words = ["capital", "film", "book", "trip", "river", "teacher", "garden", "letter"];
const texts = Array.from(
  { length: 60 },
  (_, i) =>
    `The ${words[i % 8]} of ${words[(i * 3 + 1) % 8]} was ${i % 2 === 0 ? "good" : "not good"} ${i % 20}.`,
);

let folder: string;
let model: Model;
let rows: string;
test.before(async () => {
  folder = mkdtempSync(join(tmpdir(), "tapline-training-"));
  model = await Model.open(demo);
  rows = join(folder, "rows");
  await extracted({ out: rows });
});
test.after(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

const openOther = () => Promise.reject(new Error("There is one model here."));
const shared = () => ({ model, progress: () => {}, clock: new StageClock(), openOther });

async function extracted(body: object): Promise<void> {
  const data = join(folder, "texts.txt");
  writeFileSync(data, texts.join("\n"));
  const config = checkSubmission({
    ...{ operation: "extract", model: "demo", layers, data, shard_tokens: 256 },
    ...body,
  }) as ExtractConfig;
  await extract({ ...shared(), config, artifacts: new Artifacts(folder) });
}

async function job(body: object): Promise<Findings<SaeResult> & { place: string; names: string[] }> {
  const config = checkSubmission({ operation: "sae", model: "demo", layers: [5], ...body }) as SaeConfig;
  const place = mkdtempSync(join(folder, "job-"));
  const artifacts = new Artifacts(place);
  return { ...(await sae({ ...shared(), config, artifacts })), place, names: artifacts.names };
}

const settings: ExtractionTraining = {
  ...{ from: "", architecture: "topk", k: 4, features: 48, steps: 60, batch: 64, seed: 3, layers: [5] },
};
const train = (more: Partial<ExtractionTraining>, out: string, options = {}) =>
  trainFromExtraction({ ...settings, from: rows, ...more }, out, options);

async function refusal(run: () => Promise<unknown>): Promise<string> {
  const error = await run().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof UserError)) throw new Error(`expected a UserError, not ${error}`);
  return error.message;
}

test("whole texts are held out, equal ones together, and no row of a BOS token is used", async () => {
  const { pieces, extraction, at } = await trainingRows(rows, { layer: 5, rows: undefined, seed: 3 });
  assert.ok(pieces.length > 1, "several files");
  const sides = new Map<string, Set<number>>();
  let heldOut = 0;
  for (const [piece, { uses }] of pieces.entries()) {
    for (const [row, use] of uses.entries()) {
      const { text, token } = at(piece, row);
      const content = texts[text] as string;
      if (token < extraction.skipped) assert.is(use, 0);
      else {
        assert.ok(use === 1 || use === 2);
        sides.set(content, (sides.get(content) ?? new Set()).add(use));
      }
      if (use === 2) heldOut++;
    }
  }
  assert.ok(heldOut > 0);
  for (const [content, found] of sides) assert.is(found.size, 1, content);
  // Another seed holds others out; the last token alone is one row of each text.
  const last = await trainingRows(rows, { layer: 5, rows: "last", seed: 4 });
  const used = last.pieces.reduce((sum, { uses }) => sum + uses.filter((use) => use > 0).length, 0);
  assert.is(used, texts.length);
});

test("both layouts are the same dictionary, of every architecture", async () => {
  const random = new Float32Array(20 * hidden).map((_, i) => Math.sin(i * 1.7) * 3);
  for (const architecture of ["relu", "topk", "batchtopk", "jumprelu"] as const) {
    const out = join(folder, `layouts-${architecture}`);
    const k = architecture.endsWith("topk") ? 4 : undefined;
    const { reports } = await train({ architecture, k }, out);
    assert.is(reports[0]?.architecture, architecture);
    const dictionaries = new Dictionaries(join(folder, "home"));
    const [own, theirs] = [
      await dictionaries.add("own", out),
      await dictionaries.add("theirs", join(out, "saelens-layer-5")),
    ];
    assert.is(own.layout, "tapline's Lab");
    assert.is(theirs.layout, "SAELens");
    assert.equal([own.layer, theirs.layer], [5, 5]);
    assert.equal([own.k, theirs.k], architecture === "topk" ? [4, 4] : [null, null]);
    const [a, b] = [await dictionaries.open("own"), await dictionaries.open("theirs")];
    const [one, other] = [await encodeRows(a.places, random), await encodeRows(b.places, random)];
    assert.ok(one.indices.length > 0, architecture);
    assert.equal(other.indices, one.indices, architecture);
    one.values.forEach((value, i) => {
      assert.ok(Math.abs(value - (other.values[i] as number)) <= 1e-4 * value, architecture);
    });
  }
});

test("a training that is stopped goes on to the same files; a finished one is told again", async () => {
  const whole = join(folder, "whole");
  const told = await train({}, whole, { threads: 1 });
  const stopped = join(folder, "stopped");
  for (let stops = 0; stops < 3; stops++) {
    const abort = new AbortController();
    let seen = 0;
    await train({}, stopped, {
      ...{ threads: 2, signal: abort.signal, checkpointSeconds: 0 },
      progress: () => {
        if (++seen === 2) abort.abort();
      },
    }).catch(() => {});
  }
  const rest = await train({}, stopped);
  assert.equal(rest.reports[0]?.features, told.reports[0]?.features);
  for (const [i, file] of filesOf(stopped, 5).entries()) {
    assert.ok(readFileSync(file).equals(readFileSync(filesOf(whole, 5)[i] as string)), file);
  }
  assert.not.ok(existsSync(join(stopped, "checkpoint-layer-5.safetensors")));
  let steps = 0;
  assert.equal(
    await train({}, stopped, {
      progress: () => {
        steps++;
      },
    }),
    rest,
  );
  assert.is(steps, 0);
  assert.match(
    await refusal(() => train({ k: 5 }, stopped)),
    /holds another training: k is 4 there, here 5\./,
  );
});

test("nothing of somebody else's is written over, and what is no extraction is told so", async () => {
  const other = mkdtempSync(join(folder, "other-"));
  writeFileSync(join(other, "sae-layer-5.safetensors"), "mine");
  assert.match(await refusal(() => train({}, other)), /sae-layer-5\.safetensors is there already/);
  assert.is(readFileSync(join(other, "sae-layer-5.safetensors"), "utf8"), "mine");
  assert.match(await refusal(() => train({ from: other }, join(folder, "none"))), /holds no extraction/);
  assert.match(
    await refusal(() => train({ layers: [3] }, join(folder, "wrong"))),
    /holds the block outputs of blocks 2, 5, not of block 3\./,
  );
  const cut = join(folder, "cut");
  await extracted({ out: cut, rows: "last" });
  assert.match(
    await refusal(() => train({ from: cut, rows: "all" }, join(folder, "c"))),
    /one row of each text/,
  );
  const index = JSON.parse(readFileSync(join(cut, "index.json"), "utf8"));
  const write = (more: object) =>
    writeFileSync(join(cut, "index.json"), JSON.stringify({ ...index, ...more }));
  write({ complete: false });
  assert.match(await refusal(() => train({ from: cut }, join(folder, "d"))), /is not finished/);
  for (const broken of [
    { format: "other" },
    { source: { ...index.source, hidden: "x" } },
    { shards: [{ file: "../x", rows: 1 }] },
  ]) {
    write(broken);
    assert.match(
      await refusal(() => train({ from: cut }, join(folder, "e"))),
      /is no index of an extraction/,
    );
  }
  write({});
  const shard = join(cut, index.shards[0].file);
  const bytes = readFileSync(shard);
  for (const length of [0, 7, 200, bytes.length - 4]) {
    writeFileSync(shard, bytes.subarray(0, length));
    assert.match(await refusal(() => train({ from: cut }, join(folder, "f"))), /is not what the index says/);
  }
});

test("a job trains on every token of its examples, and holds out what it is told to", async () => {
  const examples = texts.slice(0, 20).map((text, i) => ({ text, split: i < 14 ? "train" : "test" }));
  const body = { examples, architecture: "topk", rows: "all", k: 4, features: 32, steps: 40 };
  const { reports, names, place } = await job(body);
  const [report] = reports;
  const tokens = await Promise.all(texts.slice(14, 20).map((text) => model.tokenize(text)));
  const skipped = model.info.addBos ? 1 : 0;
  assert.is(
    report?.training?.held_out_rows,
    tokens.reduce((sum, { length }) => sum + length - skipped, 0),
  );
  assert.is(report?.mean_active, 4);
  for (const { examples: shown } of report?.features ?? []) {
    for (const { text } of shown) assert.ok(texts.slice(14, 20).includes(text));
  }
  assert.equal(names, [
    ...["sae-layer-5.safetensors", "sae-normalization-5.npz", "sae_weights.safetensors", "cfg.json"],
  ]);
  assert.not.ok(existsSync(join(place, "rows")));
  // Of an extraction the same body gives what the command gives.
  const { reports: again } = await job({
    from: rows,
    architecture: "topk",
    k: 4,
    features: 48,
    steps: 60,
    batch: 64,
    seed: 3,
  });
  assert.equal(again, (await train({}, join(folder, "same"))).reports);
});

test("what does not go together is refused with its field", () => {
  const body = { operation: "sae", model: "demo", from: "/rows" };
  const wrong = (more: object) => {
    try {
      checkSubmission({ ...body, ...more });
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };
  assert.is(wrong({}), "");
  assert.match(wrong({ from: undefined }), /examples: give either examples or from/);
  assert.match(wrong({ from: "rows" }), /from: must be a path from the root/);
  assert.match(wrong({ k: 4 }), /k: is for topk and batchtopk, not for relu/);
  assert.match(wrong({ architecture: "topk", k: 65 }), /k: must be at most the 64 features, got 65/);
  assert.match(wrong({ architecture: "topk", sparsity: 1 }), /sparsity: is for relu and jumprelu/);
  assert.match(wrong({ warmup: 0.6, decay: 0.6 }), /warmup: and decay are shares/);
  assert.match(wrong({ architecture: "gated" }), /architecture/);
  assert.match(wrong({ features: 513 }), /features/);
});

test.run();
