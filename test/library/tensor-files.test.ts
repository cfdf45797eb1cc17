/** Files of arrays as they are published, and dictionaries made of them: written by hand. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { FormatError } from "../../src/formats/format-error.js";
import { decodeSafetensors, encodeSafetensors } from "../../src/formats/safetensors.js";
import { modelFingerprint } from "../../src/library/fingerprint.js";
import { Dictionaries, randomVector } from "../../src/library/index.js";
import { pulledBack } from "../../src/library/lens-vectors.js";
import { Lenses } from "../../src/library/lenses.js";
import { openTensors, readBytes, torchTensors } from "../../src/library/tensor-files.js";
import { npyFile, storedZip, zipOf } from "../support/npz-bytes.js";
import { refusalBy } from "../support/refusal.js";
import { torchFile } from "../support/torch-file.js";

const home = mkdtempSync(join(tmpdir(), "tapline-tensor-files-"));
test.after(() => rmSync(home, { recursive: true, force: true }));

const of = (...numbers: number[]) => Float32Array.from(numbers);
const array = (...numbers: number[]) => npyFile(of(...numbers), [numbers.length]);
const refusal = refusalBy(UserError, FormatError);
/** `sha256sum` of a .safetensors file without its head. */
const sha256OfNumbers = (file: Buffer) =>
  createHash("sha256")
    .update(file.subarray(8 + Number(file.readBigUInt64LE(0))))
    .digest("hex");

test("a fingerprint covers size, first megabyte and 256 sampled blocks", async () => {
  const path = join(home, "model.gguf");
  const all = Buffer.alloc(2 ** 20 + 256 * 4097 + 7);
  for (let i = 0; i < all.length; i++) all[i] = (i * 7 + (i >> 8)) & 0xff;
  for (const size of [100, 2 ** 20, 2 ** 20 + 256 * 4096 + 255, all.length]) {
    const bytes = all.subarray(0, size);
    writeFileSync(path, bytes);
    const hash = createHash("sha256")
      .update(`${size}\n`)
      .update(bytes.subarray(0, 2 ** 20));
    if (bytes.length === all.length) {
      for (let i = 0; i < 256; i++)
        hash.update(bytes.subarray(2 ** 20 + i * 4097, 2 ** 20 + i * 4097 + 4096));
    }
    assert.is(await modelFingerprint(path), hash.digest("hex"), String(size));
  }
});

test("arrays of the three kinds of files, and an empty file", async () => {
  const write = (name: string, bytes: Uint8Array) => {
    writeFileSync(join(home, name), bytes);
    return join(home, name);
  };
  const safe = await openTensors(
    write("a.safetensors", encodeSafetensors({ w: { shape: [2], data: of(1, 2) } }, { x: "y" })),
  );
  assert.equal([safe.metadata, [...safe.shapes], await safe.read("w")], [{ x: "y" }, [["w", [2]]], of(1, 2)]);
  assert.is(await refusal(() => safe.read("v")), "The file has no array v.");
  const npz = await openTensors(write("a.npz", zipOf({ w: array(3, 4) })));
  assert.equal([[...npz.shapes], await npz.read("w"), await npz.read("v")], [[["w", [2]]], of(3, 4), of()]);
  const nested = {
    w: { shape: [2], data: of(5, 6) },
    n: 7,
    name: "said",
    half: { shape: [1], data: Uint16Array.of(0x3c00) },
  };
  for (const kind of ["pt", "pth"]) {
    const torch = await openTensors(write(`a.${kind}`, torchFile(nested)));
    assert.equal(torch.metadata, { name: "said" });
    assert.equal(Object.fromEntries(torch.shapes), { n: [], w: [2], half: [1] });
    assert.equal(
      [await torch.read("w"), await torch.read("n"), await torch.read("half")],
      [of(5, 6), of(7), of(1)],
    );
    assert.ok(Number.isNaN((await torch.read("nobody"))[0]));
  }
  const named = write("a.bin", Buffer.alloc(3));
  assert.is(
    await refusal(() => openTensors(named)),
    `${named} has an unsupported format; supported are .safetensors, .npz, .pt and .pth.`,
  );
  assert.equal(await readBytes(named, 1, 3), new Uint8Array(2));
  assert.is(await refusal(() => readBytes(named, 1, 4)), "The file ends at byte 3, before 4.");
});

test("unreadable checkpoints are named: packed, big-endian, cut, old, names only", async () => {
  const good = torchFile({ w: { shape: [2], data: of(5, 6) }, none: { shape: [0, 2], data: of() } });
  const open = (bytes: Uint8Array, size = bytes.length) =>
    torchTensors(size, async (start, end) => bytes.subarray(start, end));
  assert.equal([await (await open(good)).read("w"), await (await open(good)).read("none")], [of(5, 6), of()]);
  const old = "The file is not a checkpoint of torch.save from PyTorch 1.6 or later.";
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from("PK\x03"),
    Buffer.from("\x80\x02\x8a\x0a", "latin1"),
    Buffer.from("PX with more than four"),
  ]) {
    assert.is(await refusal(() => open(bytes)), old);
  }
  assert.is(await refusal(() => open(storedZip({ "x/data.pk": Buffer.from("N.") }))), old);
  const pickle = Buffer.from("\x80\x02N.", "latin1");
  const ordered = (order: string) =>
    open(storedZip({ "x/data.pkl": pickle, "x/byteorder": Buffer.from(order) }));
  assert.equal([...(await ordered("little")).shapes], []);
  const big = "The .pt file has big-endian numbers; only little-endian is supported.";
  for (const order of ["big", "littles", "little".padEnd(40)])
    assert.is(await refusal(() => ordered(order)), big);
  // Of a large file only its end is looked at for the directory, whatever it begins with.
  const large = storedZip({ "x/data/0": Buffer.alloc(70_000), "x/data.pkl": pickle });
  large[0] = 0;
  assert.equal([...(await open(large)).shapes], []);
  const packed = storedZip({ "x/data.pkl": pickle });
  packed.writeUInt16LE(8, packed.indexOf("PK\x01\x02") + 10);
  assert.is(
    await refusal(() => open(packed)),
    '"x/data.pkl" in the .pt file is compressed; only uncompressed files are supported.',
  );
  const great = storedZip({ "x/data.pkl": pickle });
  great.writeUInt32LE(16 * 1024 ** 2 + 1, great.indexOf("PK\x01\x02") + 24);
  assert.is(
    await refusal(() => open(great)),
    "The .pt file's pickle has 16777217 bytes; the limit is 16777216.",
  );
  // One byte less is not too many; it ends where the pickle says.
  great.writeUInt32LE(16_777_216, great.indexOf("PK\x01\x02") + 24);
  assert.equal([...(await open(great)).shapes], []);
  // Its storage has 8 bytes; the directory says 7.
  const cut = Buffer.from(good);
  cut.writeUInt32LE(7, cut.lastIndexOf("lens/data/0") - 46 + 24);
  assert.is(await refusal(async () => (await open(cut)).read("w")), '"w" in the .pt file is damaged.');
});

test("a dictionary's block comes from its file or caller, once and unchanged", async () => {
  const published = (name: string, hook: string) => {
    const place = join(home, name);
    mkdirSync(place);
    const tensor = (...shape: number[]) => ({
      shape,
      data: randomVector(
        shape.reduce((a, b) => a * b),
        1,
        3,
      ),
    });
    const weights = { W_enc: tensor(4, 3), W_dec: tensor(3, 4), b_enc: tensor(3), b_dec: tensor(4) };
    writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(weights));
    const metadata = { hook_name: hook, model_name: "toy" };
    writeFileSync(join(place, "cfg.json"), JSON.stringify({ architecture: "topk", k: 2, metadata }));
    return { place, decoder: weights.W_dec.data };
  };
  const dictionaries = new Dictionaries(home);
  const { place, decoder } = published("block-2", "blocks.2.hook_resid_post");
  const { created: _, bytes, sha256, ...stored } = await dictionaries.add("own", place, { layer: 2 });
  assert.equal(stored, {
    ...{
      name: "own",
      layout: "SAELens",
      activation: "topk",
      features: 3,
      n_embd: 4,
      layer: 2,
      point: "block_out",
      k: 2,
    },
    ...{ row_scaling: "none", subtracts_bias: true, trained_on: "toy", hook: "blocks.2.hook_resid_post" },
    ...{ prepend_bos: true, notes: [], source: null },
  });
  const file = readFileSync(join(home, "library", "dictionaries", "own.safetensors"));
  assert.equal([bytes, sha256], [file.length, sha256OfNumbers(file)]);
  assert.is(
    await refusal(() => dictionaries.add("x", place, { layer: 1 })),
    "According to the file it reads block 2, not 1.",
  );
  assert.is(
    await refusal(() => dictionaries.add("x", published("block-256", "blocks.256.hook_resid_post").place)),
    "According to the file it reads block 256; it must be from 0 to 255.",
  );
  const fits = { nEmbd: 4, nLayer: 3 };
  const { vector, feature } = await dictionaries.direction("own", 2, 2, fits);
  assert.equal([vector, feature.index], [decoder.slice(8, 12), 2]);
  for (const [work, message] of [
    [() => dictionaries.direction("own", 3, 2, fits), "The dictionary own has 3 features, 0 to 2; got 3."],
    [
      () => dictionaries.direction("own", 0, 1, fits),
      "The dictionary own reads block 2, not 1; its features are directions in that block only.",
    ],
    [
      () => dictionaries.fitting("own", { nEmbd: 3, nLayer: 3 }),
      "The dictionary own reads activations of 4 values; the model's hidden size is 3.",
    ],
    [
      () => dictionaries.fitting("own", { nEmbd: 4, nLayer: 2 }),
      "The dictionary own reads block 2; the model has blocks 0 to 1.",
    ],
    [() => dictionaries.fitting("none", fits), "There is no dictionary named none; there are own."],
  ] as const) {
    assert.is(await refusal(work), message);
  }
  const path = join(home, "library", "dictionaries", "spoilt.safetensors");
  writeFileSync(path, encodeSafetensors({}, { dictionary: "{" }));
  assert.match(await refusal(() => dictionaries.get("spoilt")), /^The dictionary spoilt cannot be read: /);
  // Other content of a folder: oversized settings, malformed settings.
  writeFileSync(join(place, "cfg.json"), "{");
  assert.is(await refusal(() => dictionaries.add("x", place)), "cfg.json is not JSON.");
  writeFileSync(join(place, "cfg.json"), Buffer.alloc(16 * 1024 ** 2 + 1, " "));
  assert.is(
    await refusal(() => dictionaries.add("x", place)),
    "cfg.json has 16777217 bytes; the limit is 16777216.",
  );
  assert.is(
    await refusal(() => dictionaries.add("x", join(home, "nowhere"))),
    `No file or folder ${join(home, "nowhere")}.`,
  );
  assert.is(decodeSafetensors(encodeSafetensors({})).tensors.size, 0);
});

test("a lens is saved by name, in 16 bits if lossless, listed, read, deleted", async () => {
  const square = (...data: number[]) => ({ shape: [2, 2], data: Float32Array.from(data) });
  const path = join(home, "toy_jacobian_lens.pt");
  writeFileSync(
    path,
    torchFile({ J: { 0: square(1, 2, 3, 4), 2: square(0.1, 0, 0, 1) }, d_model: 2, n_prompts: 9 }),
  );
  const lenses = new Lenses(home);
  const { created: _, sha256, bytes, ...stored } = await lenses.add("own", path);
  assert.equal(stored, {
    ...{
      name: "own",
      layout: "Jacobian lens",
      kind: "jacobian",
      n_embd: 2,
      model_layers: null,
      layers: [0, 2],
    },
    ...{ residual: false, trained_on: null, texts: 9, fit: null, notes: [], source: null },
  });
  const file = readFileSync(join(home, "library", "lenses", "own.safetensors"));
  assert.equal([sha256, bytes], [sha256OfNumbers(file), file.length]);
  const opened = await lenses.fitting("own", { nEmbd: 2, nLayer: 3 });
  const [first, wide] = [opened.translator(0)!, opened.translator(2)!];
  assert.equal(
    [first.half, wide.half, first.bias, opened.translator(1)],
    [true, false, undefined, undefined],
  );
  // 4 in 16 bits, and 0.1 in 32.
  assert.equal(
    [file.readUInt16LE(first.matrix + 6), file.readFloatLE(wide.matrix)],
    [0x4400, Math.fround(0.1)],
  );
  assert.equal(
    (await lenses.list()).map(({ name }) => name),
    ["own"],
  );
  for (const [model, message] of [
    [{ nEmbd: 3, nLayer: 3 }, "The lens own reads activations of 2 values; the model's hidden size is 3."],
    [{ nEmbd: 2, nLayer: 2 }, "The lens own reads block 2; the model has blocks 0 to 1."],
  ] as const) {
    assert.is(await refusal(() => lenses.fitting("own", model)), message);
  }
  const infinite = join(home, "infinite_jacobian_lens.pt");
  writeFileSync(infinite, torchFile({ J: { 1: square(1, Number.POSITIVE_INFINITY, 0, 0) } }));
  const no = "The lens's translation of block 1 contains numbers that are not finite.";
  assert.is(await refusal(() => lenses.add("x", infinite)), no);
  const deep = join(home, "deep_jacobian_lens.pt");
  writeFileSync(deep, torchFile({ J: { 256: square(1, 0, 0, 1) } }));
  assert.is(
    await refusal(() => lenses.add("x", deep)),
    "The lens reads block 256; the largest supported index is 255.",
  );
  assert.equal([await lenses.remove("own"), await lenses.remove("own")], [true, false]);
  assert.is(await refusal(() => lenses.get("own")), "There is no lens named own; there are no lenses yet.");
});

test("a lens from the hub reports its source", async () => {
  const path = join(home, "hub_jacobian_lens.pt");
  writeFileSync(path, torchFile({ J: { 0: { shape: [2, 2], data: of(1, 0, 0, 1) } } }));
  const source = "owner/name/hub_jacobian_lens.pt@c0ffee";
  const stored = await new Lenses(home).add("hub", "owner/name", async () => ({ path, source }));
  assert.is(stored.source, source);
});

test("a direction is mapped through a lens's transpose; residual lenses add it", async () => {
  const path = join(home, "matrix");
  writeFileSync(
    path,
    Buffer.concat([
      Buffer.alloc(4),
      Buffer.from(of(1, 2, 3, 4).buffer),
      Buffer.from([0, 0x3c, 0, 0x40, 0, 0x42, 0, 0x44]),
    ]),
  );
  const directions = [Float64Array.of(1, 2), Float64Array.of(0, 1)];
  const led = async (translator?: Parameters<typeof pulledBack>[0]) =>
    (await pulledBack(translator, directions)).map((row) => [...row]);
  // (1, 2) times the rows (1, 2) and (3, 4); in 32 bits, and the same numbers in 16.
  for (const [matrix, half] of [
    [4, false],
    [20, true],
  ] as const) {
    assert.equal(await led({ path, half, matrix, residual: false }), [
      [7, 10],
      [3, 4],
    ]);
    assert.equal(await led({ path, half, matrix, residual: true }), [
      [8, 12],
      [3, 5],
    ]);
  }
  assert.equal(await led(), [
    [1, 2],
    [0, 1],
  ]);
});

test("links to folders and dangling links are not opened as weights", async () => {
  const place = join(home, "linked");
  mkdirSync(place);
  const dictionaries = new Dictionaries(home);
  const [settings, weights] = [join(place, "cfg.json"), join(place, "sae_weights.safetensors")];
  writeFileSync(settings, JSON.stringify({ architecture: "standard", d_in: 3, d_sae: 2 }));
  for (const target of [home, join(home, "nobody")]) {
    symlinkSync(target, weights);
    assert.is(
      await refusal(() => dictionaries.add("x", place, { layer: 0 })),
      '"sae_weights.safetensors" is not a regular file.',
    );
    rmSync(weights);
  }
  rmSync(settings);
  writeFileSync(weights, encodeSafetensors({}));
  symlinkSync(home, settings);
  assert.is(
    await refusal(() => dictionaries.add("x", place, { layer: 0 })),
    '"cfg.json" is not a regular file.',
  );
});

test("invalid repository names are never sent to the hub", async () => {
  const asked: string[] = [];
  const fromHub = async (place: string) => {
    asked.push(place);
    return undefined;
  };
  const add = (place: string) => refusal(() => new Dictionaries(home).add("x", place, { layer: 0 }, fromHub));
  assert.match(
    await add("google/gemma-scope-2b-pt-att/layer_3"),
    "google/gemma-scope-2b-pt-att has dictionaries of att, judging by its name",
  );
  assert.equal(asked, []);
  for (const kind of ["mlp", "res"]) {
    const place = `google/gemma-scope-2b-pt-${kind}/layer_3`;
    assert.is(await add(place), `No file or folder ${place}.`);
    assert.is(asked.pop(), place);
  }
});

test.run();
