/**
 * How an extraction goes through its texts: its requests to a model that computes nothing, and its progress reports.
 */
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Progress } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { modelFingerprint } from "../../src/library/index.js";
import type { ContextOptions } from "../../src/native/index.js";
import { refusal } from "../support/refusal.js";
import { runExtraction, type Toy, toyModel } from "./toy-extraction.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-extract-parts-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const path = join(folder, "model.gguf");
writeFileSync(path, "no model at all");

const toy = (info: object = {}) => toyModel(path, info);

const run = (body: object, own = toy(), more: { progress?: (one: Progress) => void } = {}) =>
  runExtraction(folder, body, own, more);

/** A text of N tokens after the BOS token, all of them unique. */
let words = 0;
const text = (tokens: number) => Array.from({ length: tokens - 1 }, () => `w${words++}`).join(" ");
const texts = (...lengths: number[]) => lengths.map((length) => ({ text: text(length) }));
const many = (count: number, length: number) => texts(...new Array(count).fill(length));

function file(name: string, lengths: readonly number[]): string {
  writeFileSync(join(folder, name), lengths.map(text).join("\n"));
  return join(folder, name);
}

const sizes = ({ batches }: Toy) => batches.map(({ sequences }) => sequences.map(({ length }) => length));

test("a batch holds up to a context's tokens, or fewer for rows of the last block", async () => {
  const shapeOf = async (body: object, info: object = {}) => {
    const own = toy(info);
    await run(body, own);
    assert.is(own.closed.length, 1);
    const [{ nCtx, nBatch, maxSequences }] = own.contexts as [ContextOptions];
    assert.is(nCtx, nBatch);
    return [nBatch, maxSequences];
  };
  const examples = many(40, 10);
  assert.equal(await shapeOf({ examples }), [256, 40]);
  assert.equal(await shapeOf({ examples: many(70, 2) }), [140, 64]);
  assert.equal(await shapeOf({ examples: texts(300, 2) }), [300, 2]);
  // 160 MiB of logits are those of 128 tokens of a vocabulary of 327,680; never of fewer than 64.
  const wide = { nVocab: 327_680 };
  assert.equal(await shapeOf({ examples, layers: [1, 3] }, wide), [128, 40]);
  assert.equal(await shapeOf({ examples, layers: [3] }, { nVocab: 327_681 }), [127, 40]);
  assert.equal(await shapeOf({ examples, layers: [3] }, { nVocab: 1e7 }), [64, 40]);
  assert.equal(await shapeOf({ examples, layers: [3] }), [256, 40]);
  assert.equal(await shapeOf({ examples, layers: [3], rows: "last" }, wide), [256, 40]);
  assert.equal(await shapeOf({ examples, layers: [2] }, wide), [256, 40]);
  assert.equal(await shapeOf({ examples, layers: [3], rows: "mean" }, wide), [128, 40]);
});

test("texts are sent in order, batch by batch, filled up to at most 64", async () => {
  const narrow = () => toy({ nVocab: 1e7 });
  const batchesOf = async (...lengths: number[]) => {
    const own = narrow();
    await run({ examples: texts(...lengths), layers: [3] }, own);
    return sizes(own);
  };
  assert.equal(await batchesOf(...new Array(6).fill(16)), [new Array(4).fill(16), [16, 16]]);
  assert.equal(await batchesOf(60, 5, 64, 3, 61, 1), [[60], [5], [64], [3, 61], [1]]);
  assert.equal(await batchesOf(...new Array(70).fill(1)), [new Array(64).fill(1), new Array(6).fill(1)]);
  const own = narrow();
  const cut = await run({ examples: texts(9, 3), too_long: "cut", max_input_tokens: 4, rows: "mean" }, own);
  assert.equal([cut.cut_texts, cut.tokens, sizes(own)], [1, 7, [[4, 3]]]);
  assert.equal(
    [[...own.batches[0]!.starts!], own.batches[0]!.rows, own.batches[0]!.layers],
    [[1, 1], "mean", [1]],
  );
  const first = narrow();
  await run({ examples: texts(9), too_long: "cut", max_input_tokens: 1, rows: "mean" }, first);
  assert.equal([...first.batches[0]!.starts!], [0], "of a BOS token alone the mean is its own");
});

test("progress reports tokens while counting, then batches of each file", async () => {
  const lengths = [30, 34, 64, 20, 60];
  const { told, files, bytes } = await run(
    { examples: texts(...lengths), layers: [3], shard_tokens: 128 },
    toy({ nVocab: 1e7 }),
  );
  assert.is(files, 2);
  assert.equal(
    told.slice(0, 5),
    [30, 64, 128, 148, 208].map((done) => ({ stage: "counting tokens", done, total: 0 })),
  );
  const stage = (number: number) => `extracting ${(bytes / 1000).toFixed(1)} kB, file ${number} of 2`;
  assert.equal(told.slice(5), [
    ...[0, 64, 128].map((done) => ({ stage: stage(1), done, total: 208 })),
    ...[128, 148, 208].map((done) => ({ stage: stage(2), done, total: 208 })),
  ]);
});

test("an extraction resumes after finished shards, with its part's texts", async () => {
  const data = file("parts.txt", new Array(30).fill(4));
  const body = { data, shard: [1, 3], shard_tokens: 12 };
  const whole = join(folder, "whole");
  const first = toy();
  const made = await run({ ...body, out: whole }, first);
  assert.equal([made.texts, made.files, made.kept_files, made.tokens], [10, 4, 0, 40]);
  const shards = readdirSync(whole)
    .filter((name) => name.endsWith(".safetensors"))
    .sort();
  assert.is(shards.length, 4);
  for (const removed of [[1], [0, 2], [3], [0, 1, 2, 3]]) {
    const out = join(folder, `again-${removed.join("")}`);
    cpSync(whole, out, { recursive: true });
    for (const number of removed) rmSync(join(out, shards[number]!));
    const own = toy();
    const again = await run({ ...body, out }, own);
    assert.equal([again.files, again.kept_files], [4, 4 - removed.length]);
    assert.is(again.tokens_per_second === null, false);
    for (const name of shards) {
      assert.ok(readFileSync(join(out, name)).equals(readFileSync(join(whole, name))), `${removed}: ${name}`);
    }
    assert.equal(
      again.told
        .filter(({ stage, done }) => stage.startsWith("extracting") && done % 12 === 0)
        .map(({ done }) => done),
      removed.flatMap((number) => (number === 3 ? [36] : [12 * number, 12 * number + 12])),
    );
    assert.is(own.batches.length, removed.length);
  }
  const none = toy();
  const kept = await run({ ...body, out: whole }, none);
  assert.equal([kept.kept_files, kept.tokens_per_second, none.contexts.length], [4, null, 0]);
  // The index is the same as before, and marked complete.
  const index = JSON.parse(readFileSync(join(whole, "index-1-of-3.json"), "utf8"));
  assert.equal(
    [
      index.complete,
      index.source.shard,
      index.source.skipped_in_mean,
      index.made_with.model,
      index.shards.length,
    ],
    [true, [1, 3], 1, "toy", 4],
  );
});

test("the index holds every setting that affects numbers; others cannot resume it", async () => {
  const body = {
    ...{ data: file("identity.txt", [4, 5, 6]), out: join(folder, "identity"), shard: [0, 2], rows: "mean" },
    ...{ max_input_tokens: 5, too_long: "cut", layers: [2, 1] },
  };
  const { data, cut_texts } = await run(body);
  assert.is(cut_texts, 1);
  const index = JSON.parse(readFileSync(join(folder, "identity", "index-0-of-2.json"), "utf8"));
  const { "llama.cpp": llamaCpp, backend, ...source } = index.source;
  assert.equal(source, {
    ...{ data, shard: [0, 2], model_fingerprint: await modelFingerprint(path), layers: [2, 1], hidden: 2 },
    ...{ rows: "mean", dtype: "f32", skipped_in_mean: 1, max_input_tokens: 5, too_long: "cut" },
    mean_excludes: "norms above 10 medians",
  });
  assert.equal(data.name, "identity.txt");
  assert.is(data.sha256, createHash("sha256").update(readFileSync(body.data)).digest("hex"));
  assert.equal([typeof llamaCpp, typeof backend], ["string", "string"]);
  const { tapline, ...made } = index.made_with;
  assert.equal(made, { model: "toy", architecture: "toy", quantization: "F32" });
  const words = readFileSync(body.data, "utf8");
  for (const [more, what] of [
    [{ max_input_tokens: 6 }, "max_input_tokens is 5 there and 6 here"],
    [{ layers: [1, 2] }, "layers is [2,1] there and [1,2] here"],
  ] as const) {
    assert.is(
      await refusal(() => run({ ...body, ...more })),
      `${body.out} contains a different extraction: ${what}. Choose another folder.`,
    );
  }
  writeFileSync(body.data, words.replace("w", "v"));
  assert.match(await refusal(() => run(body)), / contains a different extraction: data is /);
});

test("a data set is read once: a change after counting changes nothing", async () => {
  const before = [30, 34, 64];
  const contents = (place: string) =>
    Object.fromEntries(readdirSync(place).map((name) => [name, readFileSync(join(place, name), "hex")]));
  const data = file("changing.txt", before);
  const expected = await run({ data, layers: [3], shard_tokens: 64 });
  const changed: string[] = [];
  const found = await run({ data, layers: [3], shard_tokens: 64 }, toy(), {
    progress: ({ stage }: Progress) => {
      if (stage.startsWith("extracting")) changed.push(file("changing.txt", [7]));
    },
  });
  assert.ok(changed.length > 0);
  assert.equal(contents(found.place), contents(expected.place));
});

test("invalid extractions are refused before anything is computed", async () => {
  const says = async (body: object, own = toy()) => {
    const sentence = await refusal(() => run(body, own));
    assert.is(own.batches.length, 0);
    assert.is(own.closed.length, own.contexts.length);
    return sentence;
  };
  const examples = texts(5, 6);
  for (const plan of [true, false]) {
    assert.is(
      await says({ examples, layers: [1, 4], plan }),
      "layers: 4 does not exist; the model has 4 blocks, 0 to 3.",
    );
  }
  assert.is(await says({ examples, shard: [3, 5] }), "There are no texts in examples, as part 3 of 5.");
  assert.is(await says({ data: file("none.txt", []) }), "There are no texts in none.txt.");
  assert.is(await says({ examples, point: "mid" }), "No mid here.");
  assert.is(
    await says({ examples, max_input_tokens: 5 }),
    "Text 1 of examples has 6 tokens; max_input_tokens allows 5.",
  );
  const response = { text: " c d", prompt: "a b" };
  const body = { examples: [response], rows: "response", too_long: "cut" };
  assert.is(
    await says({ ...body, max_input_tokens: 3 }),
    "Text 0 of examples has 3 tokens before its response; none of it is within the 3 kept tokens.",
  );
  const own = toy();
  const cut = await run({ ...body, max_input_tokens: 4 }, own);
  assert.equal(
    [cut.tokens, cut.cut_texts, [...own.batches[0]!.starts!], own.batches[0]!.rows],
    [4, 1, [3], "mean"],
  );
});

test("a full disk is reported with the finished files; other faults pass through", async () => {
  const create = Artifacts.prototype.create;
  const fails = async (code: string, body: object) => {
    let file = 0;
    Artifacts.prototype.create = async function (...words) {
      if (++file === 2) throw Object.assign(new Error(`${code}: it is full`), { code });
      await create.apply(this, words);
    };
    try {
      await run({ examples: many(6, 4), shard_tokens: 8, ...body });
      return assert.unreachable() as never;
    } catch (error) {
      return (error as Error).message;
    } finally {
      Artifacts.prototype.create = create;
    }
  };
  for (const code of ["ENOSPC", "EDQUOT", "EFBIG"]) {
    assert.match(
      await fails(code, {}),
      new RegExp(
        `^The disk is full \\(${code}\\) at file 2 of 3, which needs \\d+ bytes\\. Set out to a folder to keep finished files\\.$`,
      ),
    );
  }
  const out = join(folder, "full");
  assert.ok(
    (await fails("ENOSPC", { out })).endsWith(
      ` bytes. The 1 files before it are in ${out}; run the same extraction again to resume.`,
    ),
  );
  assert.is(await fails("EIO", {}), "EIO: it is full");
});

test("a note names special rows and rows without values", async () => {
  const note = async (body: object, info: object = {}) =>
    (await run({ examples: texts(3), ...body }, toy(info))).note;
  assert.is(
    await note({}),
    "The first activation of each text is that of its BOS token, whose norm differs strongly from other tokens'.",
  );
  const longer =
    "Means exclude up to 1 activations per layer whose norm is above ten times their text's median.";
  assert.is(await note({ rows: "mean" }), `Means exclude BOS tokens. ${longer}`);
  assert.is(await note({ rows: "mean" }, { addBos: false }), longer);
  assert.is(await note({ rows: "mean", layers: [0] }), "Means exclude BOS tokens.");
  assert.is(await note({ rows: "all" }, { addBos: false }), "");
  // Layers 1 and 2 of the stand-in leave out one and two in each of their batches.
  const { excluded } = await run({ examples: texts(3, 4), rows: "mean", layers: [2, 1] });
  assert.equal(excluded, [
    { layer: 2, bos: 2, outliers: 2 },
    { layer: 1, bos: 2, outliers: 1 },
  ]);
  assert.is((await run({ examples: texts(3), rows: "all" })).excluded, undefined);
  assert.is(await note({ rows: "last" }), "");
  const examples = [{ text: " b", prompt: "a" }];
  assert.is(
    await note({ rows: "response", examples, layers: [0] }),
    "Activations are means over the tokens after each prompt.",
  );
  const plan = await run({ examples: texts(3, 4), plan: true, rows: "last" });
  assert.is(plan.note, "This is only a plan: nothing was computed or written.");
  assert.equal(
    [plan.index, plan.folder, plan.tokens_per_second, readdirSync(plan.place)],
    [null, null, null, []],
  );
  assert.equal([plan.texts, plan.tokens, plan.row_count, plan.layers, plan.hidden], [2, 7, 2, [1], 2]);
});

test.run();
