/** Vectors, probes and what keeps them: without a model, a server or a file of somebody else's. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import promises from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { FormatError } from "../../src/formats/format-error.js";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { readProbe, readVector, writeProbe, writeVector } from "../../src/library/files.js";
import { checkModel, hashTensors, ownerOf, pointOf } from "../../src/library/identity.js";
import { Dictionaries, Lenses, Probes, Profiles, Vectors } from "../../src/library/index.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { refusalBy } from "../support/refusal.js";
import { askingTooLate, withFiles } from "../support/with-files.js";

const home = mkdtempSync(join(tmpdir(), "tapline-kept-"));
test.after(() => rmSync(home, { recursive: true, force: true }));

const model = { id: "toy", fingerprint: "f".repeat(64), nEmbd: 2, nLayer: 3 };
const other = { ...model, id: "other", fingerprint: "0".repeat(64) };
const vectors = new Vectors(home);
const probes = new Probes(home);
const of = (...numbers: number[]) => Float32Array.from(numbers);
const array = (...numbers: number[]) => npyFile(of(...numbers), [numbers.length]);
const refusal = refusalBy(UserError, FormatError);

test("a saved vector has ascending layers, their norms and its description", async () => {
  const before = Date.now() / 1000;
  const layers = new Map([
    [2, of(3, 4)],
    [0, of(1, 0)],
  ]);
  const reports = new Map([[2, { typical_row: 7, separation: null, shuffled_separation: null }]]) as never;
  const stored = await vectors.put("polite", layers, model, { note: "said", reports });
  const { created, sha256, ...rest } = stored;
  assert.equal(rest, {
    ...{
      name: "polite",
      model: { id: "toy", fingerprint: model.fingerprint },
      n_embd: 2,
      point: "block_out",
    },
    operation: "add",
    layers: [
      { layer: 0, length: 1 },
      { layer: 2, length: 5, typical_row: 7, separation: null, shuffled_separation: null },
    ],
    note: "said",
  });
  assert.ok(created > before - 10 && created < Date.now() / 1000 + 10);
  // Each tensor by name, shape and numbers.
  const hash = createHash("sha256");
  for (const [name, data] of [
    ["layer_0", of(1, 0)],
    ["layer_2", of(3, 4)],
  ] as const) {
    hash.update(`${name}[2]\n`).update(new Uint8Array(data.buffer));
  }
  assert.is(sha256, hash.digest("hex"));
  assert.equal(await vectors.layers("polite"), [0, 2]);
  assert.equal(await vectors.layer("polite", 2, model), { vector: of(3, 4), sha256 });
  assert.equal([await vectors.get("polite"), await vectors.list()], [stored, [stored]]);
  assert.is(
    await refusal(() => vectors.layer("polite", 1, model)),
    "The vector polite has no layer 1; it has 0, 2.",
  );
  assert.is(
    await refusal(() => vectors.layer("polite", 2, { ...model, nEmbd: 3 })),
    "The vector polite has 2 values; the model's hidden size is 3.",
  );
  assert.is(
    await refusal(() => vectors.layer("polite", 2, { ...model, nEmbd: 1 })),
    "The vector polite has 2 values; the model's hidden size is 1.",
  );
  assert.is(
    await refusal(() => vectors.layer("polite", 2, other)),
    "The vector polite was made for toy (ffffffffffffffff), not for other (0000000000000000).",
  );
});

test("an item replaced by another process is read again", async () => {
  await vectors.put("changing", new Map([[0, of(1, 1)]]), model, { note: "first" });
  assert.is((await vectors.get("changing")).note, "first");
  await new Vectors(home).put("changing", new Map([[1, of(2, 2)]]), model, { note: "second" });
  assert.equal([(await vectors.get("changing")).note, await vectors.layers("changing")], ["second", [1]]);
  // With the same length and time it is another file all the same.
  const path = join(home, "library", "vectors", "changing.safetensors");
  utimesSync(path, 1_700_000_000, 1_700_000_000);
  assert.equal((await vectors.layer("changing", 1, model)).vector, of(2, 2));
  await new Vectors(home).put("changing", new Map([[1, of(3, 3)]]), model, { note: "second" });
  utimesSync(path, 1_700_000_000, 1_700_000_000);
  assert.equal((await vectors.layer("changing", 1, model)).vector, of(3, 3));
  assert.equal([await vectors.remove("changing"), await vectors.remove("changing")], [true, false]);
  assert.is(
    await refusal(() => vectors.get("changing")),
    "There is no vector named changing; there are polite.",
  );
});

test("projections of a vector's texts are in its description, not in lists", async () => {
  const projections = { positive: [1, 2], negative: [-1, -2] };
  const report = { typical_row: 7, separation: 1, shuffled_separation: 0.5, projections };
  const reports = new Map([
    [0, report],
    [1, { ...report, typical_row: 8 }],
  ]);
  const layers = new Map([0, 1].map((layer) => [layer, of(3, 4)] as const));
  const stored = await vectors.put("projected", layers, model, { note: "", reports });
  const told = { length: 5, typical_row: 7, separation: 1, shuffled_separation: 0.5 };
  assert.equal(stored.layers, [
    { layer: 0, ...told },
    { layer: 1, ...told, typical_row: 8 },
  ]);
  assert.equal((await vectors.get("projected")).layers, [
    { layer: 0, ...told, projections },
    { layer: 1, ...told, typical_row: 8, projections },
  ]);
  assert.equal(
    (await vectors.list()).find(({ name }) => name === "projected"),
    stored,
  );
  await vectors.remove("projected");
});

test("a vector file is at block_out, additive, with a layer for a lone array", async () => {
  const tensors = { layer_1: { shape: [2], data: of(1, 2) } };
  const read = (bytes: Uint8Array, layer?: number) => readVector(bytes, { model, restamp: false, layer });
  const said = (metadata: Record<string, string>) => read(encodeSafetensors(tensors, metadata));
  assert.equal(
    [...(await said({ operation: "add", point: "block_out", note: "n" })).layers],
    [[1, of(1, 2)]],
  );
  assert.is(
    await refusal(() => said({ operation: "probe" })),
    "The file is for the operation probe, not add.",
  );
  assert.is(
    await refusal(() => said({ point: "mid" })),
    "The file is for the point mid; only block_out is supported.",
  );
  const unsaid =
    "The file does not record its layers: name its arrays layer_<n>, or send one array with ?layer=<n>.";
  assert.equal([...(await read(zipOf({ a: array(5, 6) }), 2)).layers], [[2, of(5, 6)]]);
  assert.is(await refusal(() => read(zipOf({ a: array(5, 6) }))), unsaid);
  assert.is(await refusal(() => read(zipOf({ a: array(5, 6), b: array(7, 8) }), 2)), unsaid);
  // Its directory says that the array has a byte more than half a gigabyte.
  const great = zipOf({ a: array(5, 6) });
  great.writeUInt32LE(2 ** 29 + 1, great.indexOf("PK\x01\x02") + 24);
  assert.is(
    await refusal(() => read(great, 2)),
    "The arrays of the .npz file have more than 536870912 bytes.",
  );
});

test("a vector's file is read whatever the length of its header", async () => {
  // The first byte is the head's length by 256: 128 is what an old PyTorch file begins with.
  const begun = new Set<number>();
  for (let length = 0; length < 800; length += 8) {
    const tensors = { layer_1: { shape: [2], data: of(1, 2) } };
    const file = encodeSafetensors(tensors, { note: "n".repeat(length) });
    begun.add(file[0] as number);
    const { layers, note } = await readVector(file, { model, restamp: false, layer: undefined });
    assert.equal([[...layers], note.length], [[[1, of(1, 2)]], length]);
  }
  assert.ok(begun.has(0x80));
});

test("a vector without a fitting block, or with non-finite numbers", async () => {
  const put = (...layers: [number, Float32Array][]) =>
    refusal(() => vectors.put("x", new Map(layers), model, { note: "" }));
  assert.is(await put([3, of(1, 2)]), "The vector has layer 3; the model has layers 0 to 2.");
  assert.is(await put([2, of(1)]), "The vector has 1 values per layer; the model's hidden size is 2.");
  assert.is(await put(), "The file has no vector for any layer.");
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.is(await put([0, of(1, value)]), "The vector x: layer_0 contains numbers that are not finite.");
  }
});

test("a saved probe has its description and folds in its standardisation", async () => {
  const numbers = { weight: of(6, -2), mean: of(1, 10), std: of(2, 4), bias: 0.5 };
  const report = { separation: 0.75, shuffled_separation: 0.5 };
  const stored = await probes.put("truth", 2, numbers, model, { note: "said", report });
  const { created: _, sha256, ...rest } = stored;
  assert.equal(rest, {
    ...{ name: "truth", model: { id: "toy", fingerprint: model.fingerprint }, n_embd: 2, point: "block_out" },
    ...{ operation: "probe", layer: 2, ...report, note: "said" },
  });
  const { weight, ...folded } = await probes.folded("truth", model);
  // (h - mean) / std . weight + bias: 3 h0 - 0.5 h1 - 3 + 5 + 0.5
  assert.equal([[...weight], folded], [[3, -0.5], { layer: 2, point: "block_out", bias: 2.5, sha256 }]);
  assert.match(await refusal(() => probes.folded("truth", other)), /^The probe truth was made for toy/);
  await probes.put("inner", 1, numbers, model, { note: "", point: "mid" });
  assert.is((await probes.get("inner")).point, "mid");
  assert.is(
    await refusal(() => probes.ofBlockOutput("inner", model)),
    "The probe inner reads mid of block 1; only block outputs are supported here.",
  );
  assert.equal(
    (await probes.list()).map(({ name }) => name),
    ["inner", "truth"],
  );
  assert.equal([await probes.remove("inner"), await probes.remove("inner")], [true, false]);
  const put = (layer: number, more: object) =>
    refusal(() => probes.put("x", layer, { ...numbers, ...more }, model, { note: "" }));
  assert.is(await put(3, {}), "The probe is for layer 3; the model has layers 0 to 2.");
  for (const field of ["weight", "mean", "std"]) {
    assert.is(
      await put(0, { [field]: of(1) }),
      `The probe's ${field} has 1 values; the model's hidden size is 2.`,
    );
  }
  for (const std of [of(1, 0), of(-1, 1)])
    assert.is(await put(0, { std }), "The probe x: std must be above 0.");
  assert.is(await put(0, { bias: Number.NaN }), "The probe x: bias contains numbers that are not finite.");
});

test("a probe file needs a layer, its own or a given one, and all four arrays", async () => {
  const arrays = { weight: array(6, -2), mean: array(1, 10), std: array(2, 4), bias: npyFile(of(0.5), []) };
  const read = (bytes: Uint8Array, layer?: number) => readProbe(bytes, { model, restamp: false, layer });
  const found = read(zipOf(arrays), 1);
  assert.equal(found, {
    ...{ layer: 1, model, note: "", point: "block_out" },
    probe: { weight: of(6, -2), mean: of(1, 10), std: of(2, 4), bias: 0.5 },
  });
  const unsaid = "The file does not record its layer: add ?layer=<n>.";
  assert.is(await refusal(() => read(zipOf(arrays))), unsaid);
  const tensors = {
    ...{ weight: { shape: [2], data: of(6, -2) }, mean: { shape: [2], data: of(1, 10) } },
    ...{ std: { shape: [2], data: of(2, 4) }, bias: { shape: [0], data: of() } },
  };
  const said = (metadata: Record<string, string>) => encodeSafetensors(tensors, metadata);
  const own = read(said({ layer: "2", note: "noted", point: "mid", operation: "probe" }));
  assert.equal([own.layer, own.note, own.point, own.probe.bias], [2, "noted", "mid", 0]);
  assert.is(read(said({ layer: "2" }), 0).layer, 0, "the caller's layer wins");
  assert.is(read(said({ layer: "0" })).layer, 0);
  for (const layer of ["x", "1.5", "-1"]) assert.is(await refusal(() => read(said({ layer }))), unsaid);
  const report = { separation: 0.9, shuffled_separation: 0.5, excluded: { bos: 2, outliers: 0 } };
  assert.equal(read(said({ layer: "0", report: JSON.stringify(report) })).report, report);
  for (const wrong of [
    "[",
    "7",
    "null",
    '{"separation":"1"}',
    '{"separation":2}',
    '{"other":1}',
    '{"excluded":{"bos":-1}}',
  ])
    assert.is(
      await refusal(() => read(said({ layer: "0", report: wrong }))),
      `The file's report is invalid: ${JSON.stringify(wrong)}.`,
    );
  assert.is(
    await refusal(() => read(said({ operation: "add" }))),
    "The file is for the operation add, not probe.",
  );
  assert.is(
    await refusal(() => read(said({ point: "nowhere" }))),
    'The file reads the unknown point "nowhere".',
  );
  for (const name of Object.keys(arrays)) {
    const { [name as "weight"]: _, ...rest } = arrays;
    assert.is(
      await refusal(() => read(zipOf(rest), 1)),
      `The file has no array ${name}; probes have weight, bias, mean and std.`,
    );
  }
});

test("exported files import unchanged, a vector in llama.cpp's form as well", async () => {
  const reading = { model: undefined, restamp: false, layer: undefined };
  const file = await vectors.file("polite");
  const back = await readVector(writeVector(file, "safetensors"), reading);
  assert.equal(
    [...back.layers],
    [
      [0, of(1, 0)],
      [2, of(3, 4)],
    ],
  );
  assert.equal([back.note, back.model.fingerprint, back.model.nEmbd], ["said", model.fingerprint, 2]);
  assert.match(
    await refusal(() => writeVector(file, "gguf")),
    /^Layer 0 cannot be written as a control vector/,
  );
  const tensors = new Map([
    ["layer_2", { shape: [2], data: of(3, 4) }],
    ["other", { shape: [1], data: of(9) }],
  ]);
  const control = await readVector(writeVector({ tensors, metadata: {} }, "gguf"), { ...reading, model });
  assert.equal([...control.layers], [[2, of(3, 4)]]);
  assert.is(control.note, "From a control vector's GGUF file.");
  const named = writeVector({ tensors, metadata: { model: "a model's name" } }, "gguf");
  assert.ok(named.includes("a model's name"), "the file says whose it is");
  const probe = await probes.file("truth");
  assert.is(readProbe(writeProbe(probe, "safetensors"), reading).layer, 2);
  assert.is(await refusal(() => writeProbe(probe, "gguf")), "Probes have no GGUF format; use safetensors.");
  // One word after another of an .npz that says whose it is.
  const words = await readVector(
    zipOf({
      layer_1: array(5, 6),
      model: word("toy"),
      model_fingerprint: word(model.fingerprint),
      note: word("of it"),
    }),
    reading,
  );
  assert.equal([...words.layers, words.note, words.model.id], [[1, of(5, 6)], "of it", "toy"]);
});

/** An .npy file of one text. */
function word(text: string): Buffer {
  const header = `{'descr': '<U${text.length}', 'fortran_order': False, 'shape': (), }`.padEnd(117);
  const codes = Uint32Array.from([...text], (character) => character.codePointAt(0) as number);
  const length = Buffer.from(Uint16Array.of(118).buffer);
  const magic = Buffer.from("\x93NUMPY\x01\x00", "latin1");
  return Buffer.concat([magic, length, Buffer.from(`${header}\n`), Buffer.from(codes.buffer)]);
}

test("a file's model is the one it records, else the one named", async () => {
  const said = { model: "toy", model_fingerprint: model.fingerprint };
  const owner = (metadata: Record<string, string>, named: typeof model | undefined, restamp: boolean) =>
    ownerOf(metadata, 2, { model: named, restamp });
  assert.equal(owner({}, model, false), model);
  assert.equal(owner(said, model, false), model);
  assert.equal(owner(said, other, true), other);
  assert.match(
    await refusal(() => owner(said, other, false)),
    /^The file was made for toy \(f{16}\), not for other \(0{16}\)\.$/,
  );
  const { nLayer, ...own } = owner(said, undefined, false);
  assert.equal(own, { id: "toy", fingerprint: model.fingerprint, nEmbd: 2 });
  assert.is(nLayer, 256, "whatever layer the contract knows");
  assert.equal(owner({ model_fingerprint: "a" }, undefined, false).id, "");
  for (const restamp of [true, false]) {
    assert.match(
      await refusal(() => owner({ model: "toy" }, undefined, restamp)),
      /does not record its model/,
    );
  }
  assert.match(await refusal(() => owner(said, undefined, true)), /does not record its model/);
  const nameless = { model_fingerprint: "a".repeat(64) };
  assert.match(
    await refusal(() => checkModel("It", nameless, model)),
    /^It was made for another model \(a{16}\)/,
  );
  checkModel("It", {}, model);
  assert.equal([pointOf("It", undefined), pointOf("It", "mid")], ["block_out", "mid"]);
  const tensors = (names: string[]) => new Map(names.map((name) => [name, { shape: [1], data: of(1) }]));
  assert.is(hashTensors(tensors(["a", "b"])), hashTensors(tensors(["b", "a"])));
  assert.is.not(hashTensors(tensors(["a", "b"])), hashTensors(tensors(["a", "c"])));
});

test("a thousand can be saved and replaced; unfinished files go after an hour", async () => {
  const full = mkdtempSync(join(home, "full-"));
  const shelf = join(full, "library", "vectors");
  mkdirSync(shelf, { recursive: true });
  for (let i = 0; i < 1000; i++) writeFileSync(join(shelf, `v${i}.safetensors`), "");
  const kept = new Vectors(full);
  const put = (name: string) => kept.put(name, new Map([[0, of(1, 2)]]), model, { note: "" });
  assert.is(await refusal(() => put("new")), "At most 1000 vectors can be saved; delete one first.");
  assert.is((await put("v7")).name, "v7");
  rmSync(join(shelf, "v8.safetensors"));
  const at = Date.now() / 1000;
  for (const [name, seconds] of [
    ["old", 3700],
    ["young", 3400],
  ] as const) {
    writeFileSync(join(shelf, `${name}.tmp`), "");
    utimesSync(join(shelf, `${name}.tmp`), at - seconds, at - seconds);
  }
  await put("new");
  assert.equal(
    readdirSync(shelf)
      .filter((name) => !/^v\d/.test(name))
      .sort(),
    ["new.safetensors", "young.tmp"],
  );
  assert.match(
    await refusal(() => kept.get("none")),
    /^There is no vector named none; there are new, v0, v1, v10, (\w+, ){15}v\d+\.$/,
  );
  assert.match(
    await refusal(() => kept.get("v9")),
    /^The vector v9 cannot be read: The file is not a \.safetensors file/,
  );
  assert.is(
    await refusal(() => new Probes(full).get("none")),
    "There is no probe named none; there are no probes yet.",
  );
  if (process.platform !== "win32") assert.is(statSync(join(shelf, "v7.safetensors")).mode & 0o777, 0o600);
});

test("an item that two processes remove at the same time is gone for both", async () => {
  const shared = mkdtempSync(join(home, "shared-"));
  const shelf = join(shared, "library", "vectors");
  const kept = new Vectors(shared);
  const put = (name: string) => kept.put(name, new Map([[0, of(1, 2)]]), model, { note: "" });
  await put("both");
  writeFileSync(join(shelf, "old.tmp"), "");
  utimesSync(join(shelf, "old.tmp"), 1, 1);
  const { rm } = promises;
  const second: typeof rm = async (path, options) => {
    await rm(path); // the other process is first
    return rm(path, options);
  };
  await withFiles({ rm: second }, async () => {
    await put("other");
    assert.is(await kept.remove("both"), true);
  });
  assert.equal(readdirSync(shelf), ["other.safetensors"]);
  // While all are listed, one goes: before it is looked for, and before it is read.
  const { readFile, stat } = promises;
  const both = join(shelf, "both.safetensors");
  for (const others of [{ stat: askingTooLate(both, stat) }, { readFile: askingTooLate(both, readFile) }]) {
    await put("both");
    const listed = await withFiles(others, () => new Vectors(shared).list());
    assert.equal(
      listed.map(({ name }) => name),
      ["other"],
    );
  }
  // One that is there and cannot be read is not left out.
  writeFileSync(join(shelf, "damaged.safetensors"), "");
  assert.match(await refusal(() => kept.list()), /^The vector damaged cannot be read/);
});

test("a profile is read once, and again after another process has saved it", async () => {
  const shared = mkdtempSync(join(home, "profiles-"));
  const open = () => {
    const parts = {
      ...{ vectors: new Vectors(shared), probes: new Probes(shared) },
      ...{ dictionaries: new Dictionaries(shared), lenses: new Lenses(shared) },
    };
    return new Profiles(shared, parts);
  };
  const [here, there] = [open(), open()];
  const scaled = (strength: number) => ({
    tapline: { interventions: [{ kind: "scale" as const, layer: 1, strength }] },
  });
  const { readFile } = promises;
  let read = 0;
  const counting = ((path: string) => {
    read++;
    return readFile(path);
  }) as typeof readFile;
  await there.put("loud", scaled(2), null);
  await withFiles({ readFile: counting }, async () => {
    const strength = async () => (await here.fitting("loud", model)).tapline.interventions?.[0]?.strength;
    assert.equal([await strength(), await strength(), read], [2, 2, 1]);
    await there.put("loud", scaled(3), null);
    read = 0;
    assert.equal([await strength(), await strength(), read], [3, 3, 1]);
  });
});

test.run();
