/** Files that a training reads and writes: extractions, settings and checkpoints made by hand, without a model. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { differenceOf } from "../../src/formats/difference.js";
import { decodeSafetensors, encodeSafetensors } from "../../src/formats/safetensors.js";
import { extractionFormat, type IndexHead } from "../../src/lab/extraction/folder.js";
import { openExtraction, readShard } from "../../src/lab/extraction/open-extraction.js";
import type { RowForm } from "../../src/lab/extraction/plan.js";
import { Checkpoint } from "../../src/lab/training/checkpoint.js";
import { LeastSquares } from "../../src/lab/training/least-squares.js";
import { trainingRows } from "../../src/lab/training/rows.js";
import { filledSettings, trainingBytes } from "../../src/lab/training/settings.js";
import { refusal } from "../support/refusal.js";
import { withFiles } from "../support/with-files.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-training-files-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const form: RowForm = { layers: [1, 5], hidden: 2, rows: "all", dtype: "f32" };

const head: IndexHead = {
  format: extractionFormat,
  source: {
    ...{ model_fingerprint: "f", layers: [1, 5], hidden: 2, rows: "all", dtype: "f32", skipped_in_mean: 1 },
  },
  made_with: { model: "toy" },
};

interface ShardText {
  index: number;
  tokens: number[];
}

/** An extraction by hand: rows of a layer are the layer, then the row's number. */
function extraction(
  name: string,
  shards: ShardText[][],
  more: { rows?: string; source?: object; index?: object; file?: string } = {},
): string {
  const place = join(folder, name);
  mkdirSync(place, { recursive: true });
  const rows = more.rows ?? "all";
  const told = shards.map((texts, number) => {
    const tokens = texts.flatMap((text) => text.tokens);
    const count = rows === "all" ? tokens.length : texts.length;
    const starts = [0];
    for (const text of texts) starts.push(starts.at(-1)! + text.tokens.length);
    const layer = (of: number) => ({
      shape: [count, 2],
      data: Float32Array.from({ length: 2 * count }, (_, i) => (i % 2 === 0 ? of : i >> 1)),
    });
    const ints = (numbers: number[]) => ({ shape: [numbers.length], data: Int32Array.from(numbers) });
    const own = `${more.file ?? "shard"}-${number}.safetensors`;
    writeFileSync(
      join(place, own),
      encodeSafetensors({
        ...{
          text_indices: ints(texts.map(({ index }) => index)),
          text_starts: ints(starts),
          token_ids: ints(tokens),
        },
        ...{ layer_1: layer(1), layer_5: layer(5) },
        ...(Object.hasOwn(more.source ?? {}, "target") && { target_1: layer(-1), target_5: layer(-5) }),
      }),
    );
    return { file: own, rows: count };
  });
  const sum = told.reduce((all, one) => all + one.rows, 0);
  const index = {
    ...{ ...head, source: { ...head.source, rows, ...more.source }, complete: true },
    ...{ texts: shards.flat().length, rows: sum, shards: told, ...more.index },
  };
  writeFileSync(
    join(place, more.file === undefined ? "index.json" : `index-${more.file}.json`),
    JSON.stringify(index),
  );
  return place;
}

const texts = (count: number, length: number, first = 0): ShardText[] =>
  Array.from({ length: count }, (_, i) => ({
    index: first + i,
    tokens: Array.from({ length }, (_, token) => (token === 0 ? 1 : 100 * (first + i) + token)),
  }));

test("an extraction's indices describe one part or several", async () => {
  const one = await openExtraction(extraction("one", [texts(2, 3), texts(1, 3, 2)]));
  const { sha256, files, shards, ...rest } = one;
  assert.equal(rest, {
    ...{
      folder: join(folder, "one"),
      form,
      model: { name: "toy", fingerprint: "f" },
      skipped: 1,
      texts: 3,
      rows: 9,
    },
  });
  assert.equal([files.length, shards.length, sha256.length], [2, 2, 64]);
  const narrow = await openExtraction(
    extraction("narrow", [texts(1, 3)], { source: { hidden: 1, layers: [0] } }),
  );
  assert.equal([narrow.form.hidden, narrow.form.layers], [1, [0]]);
  extraction("parts", [texts(2, 3)], { file: "0-of-2" });
  const parts = await openExtraction(extraction("parts", [texts(1, 3, 2)], { file: "1-of-2" }));
  assert.equal([parts.texts, parts.rows, parts.files.length], [3, 9, 2]);
  // Whatever order the folder has them in, the parts are in that of their numbers.
  for (const order of [1, -1]) {
    const names = ["index-0-of-2.json", "index-1-of-2.json", "notes"].sort(() => order);
    const again = await withFiles({ readdir: (async () => names) as never }, () =>
      openExtraction(join(folder, "parts")),
    );
    assert.equal([again.sha256, again.files], [parts.sha256, parts.files]);
    assert.match(again.files[0]!, /0-of-2-0\.safetensors$/);
  }
  assert.is.not(parts.sha256, sha256);
  extraction("parts", [texts(1, 3, 2)], { file: "1-of-2", source: { dtype: "f16" } });
  assert.is(
    await refusal(() => openExtraction(join(folder, "parts"))),
    `The parts in ${join(folder, "parts")} belong to different extractions: dtype is "f32" and "f16".`,
  );
  extraction("parts", [texts(1, 3, 2)], { file: "1-of-2", index: { complete: false } });
  assert.is(
    await refusal(() => openExtraction(join(folder, "parts"))),
    `${join(folder, "parts", "index-1-of-2.json")} is not finished: run the same tapline extract again.`,
  );
  assert.match(await refusal(() => openExtraction(join(folder, "nowhere"))), /cannot be read \(ENOENT\)\.$/);
  const broken = (more: Parameters<typeof extraction>[2]) =>
    refusal(() => openExtraction(extraction("broken", [texts(1, 3)], more)));
  const path = `${join(folder, "broken", "index.json")} is not an extraction index`;
  for (const source of [
    ...[
      { layers: 1 },
      { layers: ["1"] },
      { layers: [-1] },
      { layers: [1.5] },
      { hidden: 0 },
      { hidden: "2" },
    ],
    ...[{ rows: "some" }, { dtype: "f64" }, { point: "nowhere" }, { target: "mid" }],
  ]) {
    assert.is(
      await broken({ source }),
      `${path}: a field is missing or has the wrong type.`,
      JSON.stringify(source),
    );
  }
  for (const index of [
    ...[
      { shards: 1 },
      { shards: [{ file: 1, rows: 1 }] },
      { shards: [{ file: "a", rows: -1 }] },
      { source: null },
    ],
    ...[{ shards: [{ file: "a/b", rows: 1 }] }, { shards: [{ file: "a\\b", rows: 1 }] }],
  ]) {
    assert.is(
      await broken({ index }),
      `${path}: a field is missing or has the wrong type.`,
      JSON.stringify(index),
    );
  }
  assert.is(await broken({ index: { format: "x" } }), `${path}: its format is not "tapline extraction 1".`);
  writeFileSync(join(folder, "broken", "index.json"), "null");
  assert.match(await refusal(() => openExtraction(join(folder, "broken"))), /its format is not/);
  writeFileSync(join(folder, "broken", "index.json"), "{");
  assert.match(await refusal(() => openExtraction(join(folder, "broken"))), /: it is not JSON\.$/);
});

test("a shard that differs from its index is refused", async () => {
  const place = extraction("wrong", [texts(2, 3)]);
  const opened = await openExtraction(place);
  const shard = await readShard(opened, 0);
  assert.equal(
    [shard.rows, [...shard.starts], [...shard.indices], [...shard.offsets.keys()]],
    [6, [0, 3, 6], [0, 1], [1, 5]],
  );
  const path = join(place, "shard-0.safetensors");
  const ints = (...numbers: number[]) => ({ shape: [numbers.length], data: Int32Array.from(numbers) });
  const good = {
    ...{ text_indices: ints(0, 1), text_starts: ints(0, 3, 6), token_ids: ints(1, 2, 3, 4, 5, 6) },
    ...{
      layer_1: { shape: [6, 2], data: new Float32Array(12) },
      layer_5: { shape: [6, 2], data: new Float32Array(12) },
    },
  };
  const says = async (more: object) => {
    const tensors = Object.entries({ ...good, ...more }).filter(([, tensor]) => tensor !== undefined);
    writeFileSync(path, encodeSafetensors(Object.fromEntries(tensors) as never));
    return refusal(() => readShard(opened, 0));
  };
  const wrong = `${path} does not match the index: `;
  const apart = `${wrong}its texts, tokens and rows are inconsistent.`;
  for (const more of [
    ...[{ text_starts: ints(0, 6) }, { text_starts: ints(1, 3, 6) }, { text_starts: ints(0, 3, 5) }],
    ...[{ text_starts: ints(0, 7, 6) }, { token_ids: ints(1, 2, 3, 4, 5) }, { text_indices: ints(0) }],
    { text_starts: ints(0, 3, 5), token_ids: ints(1, 2, 3, 4, 5) },
  ]) {
    assert.is(await says(more), apart, JSON.stringify(more));
  }
  const float = (...shape: number[]) => ({ shape, data: new Float32Array(shape.reduce((a, b) => a * b)) });
  assert.is(await says({ layer_5: float(5, 2) }), `${wrong}layer_5 is F32 [5, 2], not f32 [6, 2].`);
  assert.is(await says({ layer_1: float(6, 3) }), `${wrong}layer_1 is F32 [6, 3], not f32 [6, 2].`);
  assert.is(
    await says({ layer_1: { shape: [6, 2], data: new Int32Array(12) } }),
    `${wrong}layer_1 is I32 [6, 2], not f32 [6, 2].`,
  );
  assert.is(await says({ token_ids: float(6) }), `${wrong}token_ids is of type F32, not I32.`);
  assert.is(await says({ layer_5: undefined }), `${wrong}it has no layer_5.`);
  // A text may be empty.
  writeFileSync(path, encodeSafetensors({ ...good, text_starts: ints(0, 6, 6) } as never));
  assert.equal([...(await readShard(opened, 0)).starts], [0, 6, 6]);
  rmSync(path);
  assert.is(await refusal(() => readShard(opened, 0)), `${path} cannot be read (ENOENT).`);
});

test("whole texts are held out, by their tokens and the seed alone", async () => {
  const place = extraction("many", [texts(40, 4), texts(60, 4, 40)]);
  const ask = (more: object = {}) => trainingRows(place, { layer: 5, rows: undefined, seed: 2, ...more });
  const { pieces, at, extraction: of } = await ask();
  assert.equal(
    pieces.map(({ uses }) => uses.length),
    [160, 240],
  );
  const sides = pieces.flatMap(({ uses }) =>
    Array.from({ length: uses.length / 4 }, (_, text) => [...uses.slice(4 * text, 4 * text + 4)]),
  );
  // The row of the BOS token is neither's.
  for (const side of sides) assert.ok(["0,1,1,1", "0,2,2,2"].includes(side.join()), side.join());
  const out = sides.flatMap((side, text) => (side[1] === 2 ? [text] : []));
  let often = 0;
  for (let seed = 0; seed < 10; seed++) {
    for (const { uses } of (await ask({ seed })).pieces) often += uses.filter((use) => use === 2).length / 3;
  }
  assert.ok(often > 70 && often < 130, `one of ten of a thousand: ${often}`);
  assert.ok(out.length >= 3 && out.length <= 20, `about ten of a hundred: ${out.length}`);
  assert.equal((await ask()).pieces, pieces);
  assert.not.equal(
    (await ask({ seed: 3 })).pieces.map(({ uses }) => [...uses]),
    pieces.map(({ uses }) => [...uses]),
  );
  // As many rows as evaluations read, 16,384, of 409,600 one in 25; of however many one in a hundred at least.
  for (const [rows, share] of [
    [409_600, 0.04],
    [100_000_000, 0.01],
  ] as const) {
    const vast = extraction("vast", [texts(1000, 2)], { index: { rows } });
    let held = 0;
    for (let seed = 0; seed < 10; seed++) {
      const { uses } = (await trainingRows(vast, { layer: 5, rows: undefined, seed })).pieces[0]!;
      held += uses.filter((use) => use === 2).length;
    }
    assert.ok(Math.abs(held - 10_000 * share) < 4 * Math.sqrt(10_000 * share), `${held} of ${rows}`);
  }
  // The same ones for ever, so that a dictionary is judged by what it was not trained on: by a MurmurHash3 elsewhere.
  assert.equal(out, [21, 23, 30, 38, 51, 60, 66, 67, 69, 70, 79, 82, 86]);
  // Cut into other shards, the same texts are held out.
  const whole = await trainingRows(extraction("whole", [texts(100, 4)]), {
    layer: 5,
    rows: undefined,
    seed: 2,
  });
  assert.equal(
    [...whole.pieces[0]!.uses],
    pieces.flatMap(({ uses }) => [...uses]),
  );
  for (const [piece, row, place] of [
    [0, 0, { text: 0, token: 0 }],
    [0, 7, { text: 1, token: 3 }],
    [1, 8, { text: 42, token: 0 }],
    [1, 239, { text: 99, token: 3 }],
  ] as const) {
    assert.equal(at(piece, row), place);
  }
  const { offset, path, type } = pieces[1]!;
  assert.equal(
    [type, of.rows, readFileSync(path).readFloatLE(offset), readFileSync(path).readFloatLE(offset + 12)],
    ["f32", 400, 5, 1],
  );
  const last = await ask({ rows: "last" });
  assert.equal([...last.pieces[0]!.uses.slice(0, 8)], [0, 0, 0, sides[0]![1], 0, 0, 0, sides[1]![1]]);
  const splitOf = (text: number) =>
    (text === 0 ? "test" : text === 41 ? undefined : "train") as "test" | "train" | undefined;
  const told = (await ask({ splitOf })).pieces;
  assert.equal([...told[0]!.uses.slice(0, 8)], [0, 2, 2, 2, 0, 1, 1, 1]);
  assert.equal([...told[1]!.uses.slice(0, 8)], [0, 1, 1, 1, 0, 0, 0, 0]);
  // A text that is its BOS token alone has that row; of two texts one is held out and one is not.
  const short = await trainingRows(extraction("short", [texts(2, 1)]), {
    layer: 1,
    rows: undefined,
    seed: 1,
  });
  assert.equal([...short.pieces[0]!.uses], [1, 1], "equal ones are on one side");
  for (let seed = 0; seed < 20; seed++) {
    const two = await trainingRows(extraction("two", [texts(2, 3)]), { layer: 1, rows: undefined, seed });
    assert.equal([...new Set(two.pieces[0]!.uses)].sort(), [0, 1, 2]);
  }
  const lasts = await trainingRows(extraction("lasts", [texts(2, 3), texts(2, 3, 2)], { rows: "last" }), {
    layer: 1,
    rows: undefined,
    seed: 1,
    splitOf,
  });
  assert.equal(
    lasts.pieces.map(({ uses }) => [...uses]),
    [
      [2, 1],
      [1, 1],
    ],
  );
  assert.equal(
    [lasts.at(0, 0), lasts.at(1, 1)],
    [
      { text: 0, token: 2 },
      { text: 3, token: 2 },
    ],
  );
  const many = join(folder, "many");
  for (const [more, message] of [
    [{ layer: 2 }, `${many} contains block outputs of blocks 1, 5, not of block 2.`],
    [{ point: "mid" }, `${many} contains block_out of blocks 1, 5, not mid.`],
  ] as const) {
    assert.is(await refusal(() => ask(more)), message);
  }
  assert.is(
    await refusal(() => trainingRows(join(folder, "lasts"), { layer: 1, rows: "all", seed: 1 })),
    `${join(folder, "lasts")} contains one row per text (last); rows all needs every token's.`,
  );
  assert.match(
    await refusal(() =>
      trainingRows(extraction("single", [texts(1, 3)], { source: { layers: [1] } }), {
        layer: 5,
        rows: undefined,
        seed: 1,
      }),
    ),
    /contains block outputs of block 1, not of block 5\.$/,
  );
});

test("a transcoder's rows come with their targets, and are refused without", async () => {
  const points = { point: "ffn_in", target: "ffn_out" };
  const ask = (place: string, more: object = {}) =>
    trainingRows(place, { layer: 5, rows: undefined, seed: 2, ...more });
  const both = extraction("both", [texts(20, 4), texts(20, 4, 20)], { source: points });
  const { pieces, extraction: opened } = await ask(both, { target: "ffn_out", point: "ffn_in" });
  assert.equal(opened.form, { ...form, ...points });
  for (const [i, { path, offset, targetOffset, type }] of pieces.entries()) {
    const bytes = readFileSync(path);
    const pairs = (at: number) => [0, 4, 8, 12].map((byte) => bytes.readFloatLE(at + byte));
    assert.equal([pairs(offset), pairs(targetOffset!), type], [[5, 0, 5, 1], [-5, 0, -5, 1], "f32"], `${i}`);
  }
  // An autoencoder of the same extraction leaves them aside, and holds out the same texts.
  const plain = (await ask(both)).pieces;
  assert.equal(
    plain.map(({ uses }) => uses),
    pieces.map(({ uses }) => uses),
  );
  assert.not.ok(plain.some((piece) => "targetOffset" in piece));
  const one = extraction("one-point", [texts(20, 4)], { source: { point: "ffn_in" } });
  assert.is(
    await refusal(() => ask(one, { target: "ffn_out" })),
    `${one} contains ffn_in of blocks 1, 5, without ffn_out, which a transcoder predicts; extract both with --point ffn_in --target ffn_out.`,
  );
  assert.is(
    await refusal(() => ask(both, { point: "mid", target: "ffn_out" })),
    `${both} contains ffn_in of blocks 1, 5, not mid.`,
  );
  assert.is(
    await refusal(() => ask(both, { layer: 2 })),
    `${both} contains ffn_in of blocks 1, 5, not of block 2.`,
  );
  // A part with targets and one without belong to different extractions.
  extraction("mixed", [texts(2, 3)], { file: "0-of-2", source: points });
  extraction("mixed", [texts(1, 3, 2)], { file: "1-of-2", source: { point: "ffn_in" } });
  assert.is(
    await refusal(() => ask(join(folder, "mixed"))),
    `The parts in ${join(folder, "mixed")} belong to different extractions: target is "ffn_out" and undefined.`,
  );
  // Targets of another width, or none at all, are not those of the index.
  const path = join(both, "shard-0.safetensors");
  const shard = decodeSafetensors(readFileSync(path));
  for (const [target, message] of [
    [{ shape: [80, 3], data: new Float32Array(240) }, "target_5 is F32 [80, 3], not f32 [80, 2]"],
    [undefined, "it has no target_5"],
  ] as const) {
    const all = Object.fromEntries(
      [...shard.tensors].flatMap(([name, { shape, data }]) => {
        if (name === "target_5") return target === undefined ? [] : [[name, target]];
        return [[name, { shape, data: /^text|^token/.test(name) ? Int32Array.from(data) : data }]];
      }),
    );
    writeFileSync(path, encodeSafetensors(all as never));
    assert.is(
      await refusal(() => ask(both, { target: "ffn_out" })),
      `${path} does not match the index: ${message}.`,
    );
  }
});

test("a training's settings follow from the request, the rows and the width", () => {
  const said = { features: 1024, steps: 1000, seed: 9 };
  const of = (
    architecture: "relu" | "topk" | "batchtopk" | "jumprelu",
    more: object = {},
    hidden = 64,
    rows = 100_000,
  ) => filledSettings({ ...said, architecture, ...more }, hidden, rows);
  // 2e-4 * sqrt(16384 / 1024) = 8e-4, times sqrt(10000 / 1000) for the few steps; the small one's 0.06 / 8 is greater.
  const { learningRate, ...topk } = of("topk");
  assert.ok(Math.abs(learningRate - 8e-4 * Math.sqrt(10)) < 1e-12, `${learningRate}`);
  assert.equal(topk, {
    ...{
      architecture: "topk",
      hidden: 64,
      features: 1024,
      steps: 1000,
      batch: 2048,
      seed: 9,
      k: 32,
      bandwidth: 0,
    },
    ...{ warmup: 50, decay: 200, sparsity: 0, sparsityWarmup: 50, initialNorm: 0.01, epsilon: 6.25e-10 },
    ...{ initialThreshold: 0, deadAfter: 100, auxK: 32, auxWeight: 0.03125, heldOut: 16_384 },
  });
  const relu = of("relu");
  assert.equal(
    [relu.k, relu.sparsity, relu.initialNorm, relu.bandwidth, relu.initialThreshold],
    [0, 0.88, 0.1, 0, 0],
  );
  const jump = of("jumprelu");
  assert.equal(
    [jump.k, jump.sparsity, jump.initialNorm, jump.bandwidth, jump.initialThreshold],
    [0, 1e-3, 0.1, 0.008, 0.008],
  );
  const batch = of("batchtopk", { features: 10 });
  assert.equal([batch.k, batch.sparsity, batch.initialNorm, batch.auxK], [3, 0, 0.01, 10]);
  const own = of("topk", { k: 5, batch: 64, learning_rate: 0.5, warmup: 0.1, decay: 0, sparsity: 7 });
  assert.equal(
    [own.k, own.batch, own.learningRate, own.warmup, own.decay, own.sparsity],
    [5, 64, 0.5, 100, 0, 7],
  );
  assert.equal([of("topk", {}, 64, 100).batch, of("topk", {}, 1).auxK], [100, 1]);
  // Ten million rows, or a tenth of the steps where those are fewer; at least one.
  assert.equal([of("topk", { steps: 1_000_000 }).deadAfter, of("topk", { steps: 5 }).deadAfter], [4883, 1]);
  assert.ok(
    Math.abs(of("topk", { steps: 20_000 }).learningRate - 8e-4) < 1e-12,
    "no smaller with more steps",
  );
  assert.ok(
    Math.abs(of("topk", { steps: 10 }).learningRate - 0.06 / 8) < 1e-12,
    "nor ever greater than the small one's",
  );
  // Weights and two moments of both matrices, twice; four of a batch; 28 for each of a row's five; 512 a feature and thread.
  const small = { features: 10, hidden: 3, batch: 5 };
  const alone = { threads: 2, resumed: false };
  assert.is(trainingBytes({ ...own, ...small }, alone), 1440 + 240 + 700 + 10_240);
  assert.is(trainingBytes({ ...own, ...small }, { threads: 2, resumed: true }), 2160 + 240 + 700 + 10_240);
  // Transcoders: 28 of a batch, with targets and their panels; a skip term has three numbers for each of its nine, twice.
  const transcoder = of("topk", { k: 5, target: "ffn_out", skip: true });
  assert.equal([transcoder.transcodes, transcoder.skip], [true, true]);
  assert.equal(
    [of("topk", { target: "ffn_out" }).skip, Object.hasOwn(own, "transcodes"), Object.hasOwn(own, "skip")],
    [undefined, false, false],
  );
  assert.is(trainingBytes({ ...transcoder, ...small }, alone), 2 * (720 + 108) + 420 + 700 + 10_240);
  // Dense ones have 20 for each feature of each row.
  assert.is(trainingBytes({ ...relu, ...small }, alone), 1440 + 240 + 20 * 50 + 10_240);
});

test("a checkpoint stores its training's identity and is refused for another", async () => {
  const identity = { seed: 1, layers: [1, 2], name: "x" };
  const place = mkdtempSync(join(folder, "checkpoint-"));
  const of = (own: object = identity) => new Checkpoint(place, 3, own as never);
  assert.is(await of().read(), undefined);
  const history = { losses: [{ step: 1, loss: 2 }], evaluations: [] };
  const state = { a: Float32Array.of(1, 2, 3), progress: Float32Array.of(0, 5) };
  await of().write(state, history);
  assert.equal(await of().read(), { state, history });
  const path = join(place, "checkpoint-layer-3.safetensors");
  assert.is(
    await refusal(() => of({ ...identity, seed: 2 }).read()),
    `${path} belongs to a different training: seed is 1 there and 2 here. Choose another folder, or delete the file.`,
  );
  writeFileSync(`${path}.0123456789ab.tmp`, "");
  await of().removeTorn();
  assert.equal(readdirSync(place), ["checkpoint-layer-3.safetensors"]);
  const damaged = `${path} is damaged; delete it to start the training from scratch.`;
  const whole = readFileSync(path);
  writeFileSync(path, whole.subarray(0, -4));
  assert.is(await refusal(() => of().read()), damaged);
  writeFileSync(path, encodeSafetensors({}, { training: "{" }));
  assert.is(await refusal(() => of().read()), damaged);
  const nowhere = new Checkpoint(join(place, "none"), 3, identity);
  assert.match(
    await refusal(() => nowhere.write(state, history)),
    /^The checkpoint .*checkpoint-layer-3\.safetensors \(\d+ bytes\) cannot be written \(ENOENT\); the previous one is unchanged\.$/,
  );
  // Faults not caused by the disk stay unchanged.
  const open = () => Promise.reject(new TypeError("a fault of ours"));
  const fault = await withFiles({ open }, () =>
    of()
      .write(state, history)
      .catch((error) => error),
  );
  assert.equal([fault.name, fault.message], ["TypeError", "a fault of ours"]);
  await of().remove();
  assert.equal(readdirSync(place), []);
  const says = (there: unknown, here: object) => differenceOf(there, here as never);
  assert.is(says(identity, { ...identity }), undefined);
  assert.is(says({ ...identity, more: 1 }, identity), "the two differ in more");
  assert.is(says(null, identity), "the two differ in seed");
  assert.is(says({ ...identity, name: "y" }, identity), 'name is "y" there and "x" here');
  // Together with their quotation marks 200 characters, and 201.
  assert.match(says({ name: "y".repeat(195) }, { name: "x" })!, /^name is "y{195}" there and "x" here$/);
  assert.is(says({ name: "y".repeat(196) }, { name: "x" }), "the two differ in name");
});

test("least squares: the ridge, rows of zeros, and rows without information", async () => {
  // One number: rows 1, 2 with goals 3, 5 are 2 x + 1, but for the ridge of a ten thousandth of the mean square.
  const squares = new LeastSquares(1);
  for (const [x, y] of [
    [1, 3],
    [2, 5],
    [0, 1],
  ] as const)
    squares.add(Float64Array.of(x), Float64Array.of(y));
  const { matrix, bias } = squares.solve();
  // Normal equations: (5 + 5e-4) a + 3 b = 13, 3 a + 3 b = 9.
  const a = 4 / (2 + 5e-4);
  assert.ok(
    Math.abs(matrix[0]! - a) < 1e-6 && Math.abs(bias[0]! - (3 - a)) < 1e-6,
    `${matrix[0]} ${bias[0]}`,
  );
  // Two numbers, four rows: of squares 2 and 8, ten in all, so that 5e-4 is added to either; the constant has none.
  const two = new LeastSquares(2);
  for (const row of [
    [1, 0],
    [-1, 0],
    [0, 2],
    [0, -2],
  ])
    two.add(Float64Array.from(row), Float64Array.of(row[1]! + 3, row[0]! - 4));
  const found = two.solve();
  for (const [i, value] of [0, 8 / 8.0005, 2 / 2.0005, 0].entries()) {
    assert.ok(Math.abs(found.matrix[i]! - value) < 1e-6, `${i}: ${found.matrix[i]}`);
  }
  assert.equal([...found.bias], [3, -4]);
  for (const row of [Number.NaN, 0]) {
    const none = new LeastSquares(1);
    none.add(Float64Array.of(row), Float64Array.of(1));
    assert.is(await refusal(() => none.solve()), "The rows are not finite, or all are zero.");
  }
});

test.run();
