import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { floatsOf, narrowExactly } from "../../src/formats/float.js";
import { encodeSafetensors, type Tensor } from "../../src/formats/safetensors.js";
import { Dictionaries } from "../../src/library/index.js";
import {
  type Context,
  type DictionaryPlaces,
  decodeRows,
  encodeRows,
  Model,
  narrow,
  type WeightType,
} from "../../src/native/index.js";
import { demo } from "../native/demo-model.js";
import { TestRandom } from "../support/random.js";

const hidden = 128;
const features = 70;
const folder = mkdtempSync(join(tmpdir(), "tapline-weights-"));
const activations = ["relu", "jumprelu", "topk", "topk_raw", "gated"] as const;
const scalings = ["none", "constant_norm", "layer_norm"] as const;

let model: Model;
let context: Context;
test.before(async () => {
  model = await Model.open(demo);
  context = await model.createContext({ threads: 1 });
});
test.after(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Parts {
  encoder: Float32Array;
  decoder: Float32Array;
  [name: string]: Float32Array;
}

function someParts(seed: number): Parts {
  const random = new TestRandom(seed);
  const some = (count: number, size: number) =>
    Float32Array.from({ length: count }, () => size * random.normal());
  return {
    encoder: some(features * hidden, 0.1),
    decoder: some(features * hidden, 0.3),
    encoderBias: some(features, 0.3),
    decoderBias: some(hidden, 0.1),
    threshold: some(features, 0.2),
    gain: some(features, 0.5).map(Math.exp),
    magnitudeBias: some(features, 0.2),
  };
}

/** Writes the arrays into one file, its matrices in a type. */
async function write(
  name: string,
  parts: Parts,
  type: WeightType,
): Promise<
  (
    activation: DictionaryPlaces["activation"],
    rowScaling?: DictionaryPlaces["rowScaling"],
  ) => DictionaryPlaces
> {
  // biome-ignore format: one line
  const path = join(folder, name);
  const pieces: Uint8Array[] = [];
  const places: Record<string, number> = {};
  let at = 0;
  for (const [part, values] of Object.entries(parts)) {
    const wide = type === "f32" || (part !== "encoder" && part !== "decoder");
    const numbers = wide ? values : await narrow(values, type);
    places[part] = at;
    pieces.push(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
    at += numbers.byteLength;
  }
  writeFileSync(path, Buffer.concat(pieces));
  return (activation, rowScaling = "none") => ({
    ...{ path, activation, rowScaling, subtractBias: true, hidden, features },
    k: activation.startsWith("topk") ? 6 : 0,
    ...{ encoderType: type, decoderType: type },
    ...(places as Pick<DictionaryPlaces, "encoder" | "encoderBias" | "decoder" | "decoderBias">),
  });
}

test("weights of 16 bits give the same bits as the same numbers in 32", async () => {
  const random = new TestRandom(3);
  const rows = Float32Array.from({ length: 9 * hidden }, () => random.normal());
  for (const type of ["f16", "bf16"] as const) {
    const parts = someParts(7);
    for (const part of ["encoder", "decoder"] as const) {
      const bytes = new Uint8Array((await narrow(parts[part], type)).buffer);
      parts[part] = floatsOf(type.toUpperCase(), bytes) as Float32Array;
    }
    const wide = await write("wide", parts, "f32");
    const half = await write("half", parts, type);
    for (const activation of activations) {
      for (const scaling of scalings) {
        const [one, other] = [wide(activation, scaling), half(activation, scaling)];
        const sparse = await encodeRows(one, rows, { threads: 2 });
        assert.ok(sparse.indices.length > 20, activation);
        assert.equal(
          await encodeRows(other, rows, { threads: 1 }),
          sparse,
          `${type} ${activation} ${scaling}`,
        );
        assert.equal(await decodeRows(other, sparse, rows), await decodeRows(one, sparse, rows));
      }
    }
  }
});

test("numbers are kept in 16 bits only where all of them are there as they are", async () => {
  const random = new TestRandom(1);
  const bits = Float32Array.from({ length: 4000 }, () => random.normal() * 10 ** (8 * random.uniform() - 6));
  const edges = [0, -0, 65504, -65504, 2 ** -24, 3 * 2 ** -24, 2 ** -14, 1023 * 2 ** -24, 1];
  const halves = floatsOf("F16", new Uint8Array((await narrow(bits, "f16")).buffer)) as Float32Array;
  const exact = Float32Array.from([...edges, ...halves]);
  const kept = narrowExactly(exact);
  assert.is(kept?.dtype, "F16");
  assert.equal(kept?.data, await narrow(exact, "f16"));
  for (const beyond of [65536, 2 ** -25, 1 + 2 ** -12, 3 * 2 ** -25, 1e-30, 0.1]) {
    const found = narrowExactly(Float32Array.of(1, beyond));
    const upper = Math.fround(beyond) === (floatsOf("BF16", new Uint8Array((await narrow(Float32Array.of(beyond), "bf16")).buffer)) as Float32Array)[0]; // biome-ignore format: one line
    assert.is(found?.dtype, upper ? "BF16" : undefined, String(beyond));
  }
});

test("a 16-bit dictionary stays in 16 bits and steers with the same row", async () => {
  const parts = someParts(5);
  const random = new TestRandom(2);
  const rows = Float32Array.from({ length: 3 * hidden }, () => random.normal());
  const found = [];
  for (const type of ["f32", "f16"] as const) {
    const place = mkdtempSync(join(folder, "saelens-"));
    const rounded = (values: Float32Array) => values.map((value) => Math.round(value * 256) / 256);
    const spoil = type === "f32" ? 1e-7 : 0;
    const tensors: Record<string, Tensor> = {
      W_enc: { shape: [hidden, features], data: rounded(parts.encoder) },
      W_dec: { shape: [features, hidden], data: rounded(parts.decoder) },
      b_enc: { shape: [features], data: parts.encoderBias as Float32Array },
      b_dec: { shape: [hidden], data: parts.decoderBias as Float32Array },
    };
    // One number that no 16 bits hold keeps a matrix as it is.
    for (const name of ["W_enc", "W_dec"]) (tensors[name] as Tensor).data[5] = 0.25 + spoil;
    writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(tensors));
    writeFileSync(
      join(place, "cfg.json"),
      JSON.stringify({ architecture: "standard", metadata: { hook_name: "blocks.5.hook_resid_post" } }),
    );
    const dictionaries = new Dictionaries(folder);
    const { bytes } = await dictionaries.add(type, place);
    const { places } = await dictionaries.open(type);
    assert.equal([places.encoderType, places.decoderType], [type, type]);
    const { vector } = await dictionaries.direction(type, 9, 5, { nEmbd: hidden, nLayer: 8 });
    assert.equal(vector, rounded(parts.decoder).slice(9 * hidden, 10 * hidden));
    found.push({ bytes, sparse: await encodeRows(places, rows) });
  }
  const [wide, half] = found as [(typeof found)[0], (typeof found)[0]];
  assert.ok(half.bytes < wide.bytes / 1.9, `${half.bytes} of ${wide.bytes}`);
  assert.equal(half.sparse.indices, wide.sparse.indices);
});

test("a killed writer's partial files are hidden and deleted later", async () => {
  const home = mkdtempSync(join(folder, "home-"));
  const shelf = join(home, "library", "dictionaries");
  mkdirSync(shelf, { recursive: true });
  for (const name of ["old", "fresh"])
    writeFileSync(join(shelf, `${name}.safetensors.0123456789ab.tmp`), "half");
  const yesterday = Date.now() / 1000 - 86_400;
  utimesSync(join(shelf, "old.safetensors.0123456789ab.tmp"), yesterday, yesterday);
  const dictionaries = new Dictionaries(home);
  assert.equal(await dictionaries.list(), []);
  const place = mkdtempSync(join(folder, "small-"));
  const zeros = (...shape: number[]): Tensor => ({
    shape,
    data: new Float32Array(shape.reduce((a, b) => a * b)),
  });
  const tensors = { W_enc: zeros(4, 3), W_dec: zeros(3, 4), b_enc: zeros(3), b_dec: zeros(4) };
  writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: "blocks.1.hook_resid_post" };
  writeFileSync(join(place, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await dictionaries.add("small", place);
  assert.equal(readdirSync(shelf).sort(), ["fresh.safetensors.0123456789ab.tmp", "small.safetensors"]);
});

test("a hold moves a row by what the activation lacks, along the decoder's row", async () => {
  const parts = someParts(11);
  const places = await write("held", parts, "f32");
  const layer = 5;
  const tokens = await model.tokenize("The capital of France is");
  await context.reset();
  const { layers } = await context.advance({ tokens, layers: [layer], rows: "last" });
  const row = layers[0]?.states?.data as Float32Array;
  for (const activation of activations) {
    for (const scaling of scalings) {
      const dictionary = places(activation, scaling);
      const { indices, values } = await encodeRows(dictionary, row);
      const firing = new Map(Array.from(indices, (index, i) => [index, values[i] as number]));
      assert.ok(firing.size > 2 && firing.size < features, `${activation} ${scaling}: ${firing.size}`);
      const some = [...new Set([...indices.slice(0, 3), 0, 1, 2, features - 1])];
      for (const index of some) {
        const vector = parts.decoder.slice(index * hidden, (index + 1) * hidden);
        const held = async (min: number, max: number) => {
          await context.reset();
          const { effects } = await context.advance({
            ...{ tokens, layers: [layer] },
            edits: [{ layer, kind: "hold", vector, feature: { dictionary, index }, min, max }],
          });
          return effects?.[0]?.changeLength as number;
        };
        const own = firing.get(index) ?? 0;
        const one = unitOf(row, scaling) * Math.hypot(...vector);
        const what = `${activation} ${scaling} ${index}`;
        const close = (found: number, wanted: number) =>
          assert.ok(Math.abs(found - wanted) <= 1e-4 * (1 + wanted), `${what}: ${found}, ${wanted}`);
        close(await held(own + 2, own + 2), 2 * one);
        close(await held(own - 3, own + 1e-3), 0);
        close(await held(Number.NEGATIVE_INFINITY, own - 0.5), 0.5 * one);
      }
    }
  }
});

/** What one unit of a decoded row is in the row as it was. */
function unitOf(row: Float32Array, scaling: (typeof scalings)[number]): number {
  if (scaling === "none") return 1;
  const mean = scaling === "layer_norm" ? row.reduce((a, b) => a + b, 0) / hidden : 0;
  const squares = row.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (scaling === "layer_norm" ? hidden - 1 : hidden));
}

test("a hold of another width, or of a feature that is not there, is refused", async () => {
  const dictionary = (await write("refused", someParts(1), "f32"))("relu");
  const tokens = Int32Array.of(1, 2, 3);
  const refused = async (
    feature: { dictionary: DictionaryPlaces; index: number } | undefined,
    says: RegExp,
  ) => {
    await context.reset();
    const edits = [
      { layer: 0, kind: "hold" as const, vector: new Float32Array(hidden), ...(feature && { feature }) },
    ];
    const error = await context.advance({ tokens, layers: [0], edits }).then(
      () => undefined,
      (reason) => reason,
    );
    assert.match(error?.message ?? "", says);
  };
  await refused(
    { dictionary, index: features },
    /Feature 70 does not exist: the dictionary has features 0 to 69\./,
  );
  await refused({ dictionary: { ...dictionary, hidden: 64 }, index: 0 }, /width/);
  await refused(undefined, /A hold needs a feature\./);
});

test.run();
