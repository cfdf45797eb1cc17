import {
  existsSync,
  mkdtempSync,
  promises,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission } from "../../src/contracts/index.js";
import { filesOf } from "../../src/lab/training/from-extraction.js";
import { trainingRows } from "../../src/lab/training/rows.js";
import { Dictionaries } from "../../src/library/index.js";
import { encodeRows, type Model } from "../../src/native/index.js";
import { refusal } from "../support/refusal.js";
import { type DemoTraining, hidden, openTraining, small, texts } from "./demo-training.js";

let folder: string;
let model: Model;
let rows: string;
let opened: DemoTraining;
const extracted: DemoTraining["extracted"] = (body) => opened.extracted(body);
const job: DemoTraining["job"] = (body) => opened.job(body);
const train: DemoTraining["train"] = (...given) => opened.train(...given);
test.before(async () => {
  opened = await openTraining();
  ({ folder, rows, model } = opened);
  await extracted({ out: rows });
});
test.after(() => opened.close());

test("whole texts are held out, duplicates together, and no BOS row is used", async () => {
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
  // With a first position, tokens before it are left out as well, and a text without later ones wholly.
  const later = await trainingRows(rows, { layer: 5, rows: undefined, seed: 3, first_position: 3 });
  for (const [piece, { uses }] of later.pieces.entries()) {
    for (const [row, use] of uses.entries()) {
      assert.is(use, later.at(piece, row).token < 3 ? 0 : (pieces[piece]?.uses[row] as number));
    }
  }
  const refused = trainingRows(rows, { layer: 5, rows: "last", seed: 3, first_position: 1 });
  const message = await refused.then(
    () => "accepted",
    ({ message }) => message,
  );
  assert.is(
    message,
    "first_position leaves out tokens of each text, so it requires every token's rows (all), not last.",
  );
  // Another seed holds out different ones; the last token alone is one row per text.
  const last = await trainingRows(rows, { layer: 5, rows: "last", seed: 4 });
  const used = last.pieces.reduce((sum, { uses }) => sum + uses.filter((use) => use > 0).length, 0);
  assert.is(used, texts.length);
});

test("both layouts hold the same dictionary, for every architecture", async () => {
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

test("a stopped training resumes to the same files; a finished one is reported again", async () => {
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
    /contains a different training: k is 4 there and 5 here\./,
  );
});

/** Runs something while the disk takes no more than some bytes. */
async function onFullDisk(bytes: number, run: () => Promise<unknown>): Promise<void> {
  const handle = await promises.open(join(folder, "texts.txt"));
  const prototype = Object.getPrototypeOf(handle) as Record<
    "write" | "writeFile",
    (...words: unknown[]) => Promise<unknown>
  >;
  await handle.close();
  const { write, writeFile } = prototype;
  let left = bytes;
  const full = () => Promise.reject(Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" }));
  prototype.write = function (this: unknown, ...words: unknown[]) {
    left -= words[2] as number;
    return left < 0 ? full() : write.apply(this, words);
  };
  prototype.writeFile = async function (this: unknown, content: unknown) {
    const whole = typeof content === "string" || content instanceof Uint8Array;
    for await (const piece of whole ? [content] : (content as Iterable<Uint8Array>)) {
      left -= piece.length;
      await (left < 0 ? full() : writeFile.call(this, piece));
    }
  };
  try {
    await run();
  } finally {
    Object.assign(prototype, { write, writeFile });
  }
}

test("a full disk while saving gives one sentence, and training can resume", async () => {
  const both = { layers: [2, 5] };
  const whole = join(folder, "roomy");
  const told = await train(both, whole, { threads: 1 });
  const size = (path: string) => statSync(path).size;
  const finished = filesOf(whole, 2).reduce((sum, path) => sum + size(path), 0) + 10_000;
  // Of each of the two matrices: the numbers and two moments.
  const checkpoint = 24 * 48 * hidden;
  const out = join(folder, "full");
  const bytes = (path: string) => readFileSync(path).toString("latin1");
  const oneLine = /^[^\n]{20,300}\.$/;

  // Some checkpoints of the first layer find room.
  let reached = 0;
  const keeping = {
    ...{ threads: 1, checkpointSeconds: 0 },
    progress: ({ done }: { done: number }) => {
      reached = done;
    },
  };
  const first = await refusal(() => onFullDisk(5.5 * checkpoint, () => train(both, out, keeping)));
  assert.match(first, oneLine);
  assert.match(
    first,
    /^The checkpoint [^\n]*checkpoint-layer-2\.safetensors \(\d+ kB\) cannot be written \(ENOSPC\); the previous one is unchanged\.$/,
  );
  assert.ok(reached > 0 && reached < 60, `it stopped at step ${reached}`);
  assert.ok(size(join(out, "checkpoint-layer-2.safetensors")) > checkpoint);
  assert.equal(
    readdirSync(out).filter((name) => name.endsWith(".tmp")),
    [],
  );

  // Without checkpoints: the first layer's files find room, the second's do not.
  const second = await refusal(() => onFullDisk(1.4 * finished, () => train(both, out, { threads: 2 })));
  assert.match(second, oneLine);
  assert.match(
    second,
    /^The dictionary of block 5 cannot be written to [^\n]* \(ENOSPC\); once there is room, run the same command again to resume from the last checkpoint\.$/,
  );
  const kept = filesOf(out, 2).map(bytes);
  assert.equal(
    JSON.parse(readFileSync(join(out, "sae.json"), "utf8")).reports.map(
      ({ layer }: { layer: number }) => layer,
    ),
    [2],
  );

  const rest = await train(both, out);
  assert.equal(rest.reports.map(({ features }) => features), told.reports.map(({ features }) => features)); // biome-ignore format: one line
  assert.equal(filesOf(out, 2).map(bytes), kept, "finished files are unchanged");
  for (const layer of [2, 5]) assert.equal(filesOf(out, layer).map(bytes), filesOf(whole, layer).map(bytes));
  assert.equal(
    readdirSync(out).filter((name) => /\.(tmp|partial)$|^checkpoint/.test(name)),
    [],
  );
});

test("a training larger than any machine is refused at the start with both sizes", async () => {
  assert.match(
    await refusal(() => train({ features: 1_000_000_000 }, join(folder, "huge"))),
    /^Training 1000000000 features of 128 values \(topk, batches of 64 rows\) takes up to \d[\d.]* \wB; this machine has \d[\d.]* \wB\.$/,
  );
});

test("the same seed gives the same files, for every architecture", async () => {
  const bytes = (out: string) => filesOf(out, 5).map((path) => readFileSync(path).toString("latin1"));
  for (const architecture of ["relu", "topk", "batchtopk", "jumprelu"] as const) {
    const k = architecture.endsWith("topk") ? 4 : undefined;
    const files = async (name: string, more: object, threads?: number) => {
      const out = join(folder, `seeds-${architecture}-${name}`);
      await train({ architecture, k, steps: 20, ...more }, out, { threads });
      return bytes(out);
    };
    const one = await files("one", {}, 1);
    assert.equal(await files("again", {}, 1), one, architecture);
    assert.equal(await files("threads", {}, 3), one, `${architecture} on three threads`);
    assert.not.equal(await files("other", { seed: 4 }, 1), one, architecture);
  }
});

test("foreign files are preserved, and a folder without an extraction is refused", async () => {
  const other = mkdtempSync(join(folder, "other-"));
  writeFileSync(join(other, "sae-layer-5.safetensors"), "mine");
  assert.match(
    await refusal(() => train({}, other)),
    /sae-layer-5\.safetensors already exists; choose another folder\.$/,
  );
  assert.is(readFileSync(join(other, "sae-layer-5.safetensors"), "utf8"), "mine");
  assert.match(
    await refusal(() => train({ from: other }, join(folder, "none"))),
    /does not contain an extraction/,
  );
  assert.match(
    await refusal(() => train({ layers: [3] }, join(folder, "wrong"))),
    /contains block outputs of blocks 2, 5, not of block 3\./,
  );
  const cut = join(folder, "cut");
  await extracted({ out: cut, rows: "last" });
  assert.match(
    await refusal(() => train({ from: cut, rows: "all" }, join(folder, "c"))),
    /contains one row per text \(last\)/,
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
    assert.match(await refusal(() => train({ from: cut }, join(folder, "e"))), /is not an extraction index/);
  }
  write({});
  const shard = join(cut, index.shards[0].file);
  const bytes = readFileSync(shard);
  for (const length of [0, 7, 200, bytes.length - 4]) {
    writeFileSync(shard, bytes.subarray(0, length));
    assert.match(await refusal(() => train({ from: cut }, join(folder, "f"))), /does not match the index/);
  }
});

test("a job trains on every token of its examples and holds out the chosen ones", async () => {
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
  assert.is(report?.training?.batch, report?.training?.train_rows, "a batch has no more rows than there are");
  assert.is(report?.mean_active, 4);
  for (const { examples: shown } of report?.features ?? []) {
    for (const { text } of shown) assert.ok(texts.slice(14, 20).includes(text));
  }
  assert.equal(names, [
    ...["sae-layer-5.safetensors", "sae-normalization-5.npz", "sae_weights.safetensors", "cfg.json"],
  ]);
  assert.not.ok(existsSync(join(place, "rows")));
  // Of an extraction the same body gives what the command gives.
  const { reports: again } = await job({ from: rows, ...small });
  assert.equal(again, (await train({}, join(folder, "same"))).reports);
});

test("conflicting fields are refused by name", () => {
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
  assert.match(wrong({ from: undefined }), /^examples or from is required, but not both\.$/);
  assert.match(wrong({ from: "rows" }), /from: must be an absolute path/);
  assert.match(wrong({ k: 4 }), /k: applies to topk and batchtopk, not to relu/);
  assert.match(
    wrong({ architecture: "topk", k: 65 }),
    /k: must be at most the number of features \(64\), got 65/,
  );
  assert.match(
    wrong({ architecture: "topk", sparsity: 1 }),
    /^sparsity: applies to relu and jumprelu; use k for topk\.$/,
  );
  assert.match(wrong({ warmup: 0.6, decay: 0.6 }), /^warmup: and decay must sum to at most 1, got 1\.2\.$/);
  assert.match(wrong({ architecture: "gated" }), /architecture/);
  assert.match(wrong({ features: 513 }), /features/);
});

test.run();
