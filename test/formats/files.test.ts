import { test } from "uvu";
import * as assert from "uvu/assert";
import { decodeControlVector, encodeControlVector } from "../../src/formats/control-vector.js";
import { FormatError } from "../../src/formats/format-error.js";
import { decodeNpz } from "../../src/formats/npz.js";
import { decodeSafetensors } from "../../src/formats/safetensors.js";
import { fc } from "../support/fc.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";

/** A .safetensors file by the format's page alone. */
function safetensors(header: object, data: Buffer): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, data]);
}

test("safetensors: numbers of 16, 32 and 64 bits, metadata, several tensors", () => {
  const f16 = Buffer.from([0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00]); // 1, -2, 2^-24
  const bf16 = Buffer.from([0x80, 0x3f, 0x49, 0xc0]); // 1, -3.140625
  const f32 = Buffer.alloc(8);
  f32.writeFloatLE(0.1, 0);
  f32.writeFloatLE(-7, 4);
  const f64 = Buffer.alloc(8);
  f64.writeDoubleLE(2.5);
  const file = safetensors(
    {
      __metadata__: { model: "m", count: 3 },
      a: { dtype: "F16", shape: [3], data_offsets: [0, 6] },
      b: { dtype: "BF16", shape: [2], data_offsets: [6, 10] },
      c: { dtype: "F32", shape: [2, 1], data_offsets: [10, 18] },
      d: { dtype: "F64", shape: [], data_offsets: [18, 26] },
    },
    Buffer.concat([f16, bf16, f32, f64]),
  );
  const { tensors, metadata } = decodeSafetensors(file);
  assert.equal(metadata, { model: "m" });
  assert.equal([...tensors.get("a")!.data], [1, -2, 2 ** -24]);
  assert.equal([...tensors.get("b")!.data], [1, -3.140625]);
  assert.equal([...tensors.get("c")!.data], [Math.fround(0.1), -7]);
  assert.equal(tensors.get("c")!.shape, [2, 1]);
  assert.equal([...tensors.get("d")!.data], [2.5]);
});

test("npz: arrays as NumPy saves them, and a file that unpacks to more than is wanted", () => {
  const file = zipOf({
    layer_3: npyFile(Float32Array.of(1, 2, 3), [3]),
    bias: npyFile(Float32Array.of(4), []),
  });
  const arrays = decodeNpz(file, 10_000);
  assert.equal([...arrays.get("layer_3")!.data], [1, 2, 3]);
  assert.equal(arrays.get("bias")!.shape, []);
  assert.throws(() => decodeNpz(file, 100), /more than 100 bytes/);
});

/** A control vector by ggml's page alone: direction.2 = [1, 2, 3] and direction.7 = [4, 5, 6]. */
function controlVector(names: [string, string]): Buffer {
  const parts: Buffer[] = [Buffer.from("GGUF")];
  const u32 = (value: number) => parts.push(Buffer.from(Uint32Array.of(value).buffer));
  const u64 = (value: number) => parts.push(Buffer.from(BigUint64Array.of(BigInt(value)).buffer));
  const text = (value: string) => {
    u64(value.length);
    parts.push(Buffer.from(value));
  };
  u32(3);
  u64(2);
  u64(2);
  text("general.architecture");
  u32(8);
  text("controlvector");
  text("some.list");
  u32(9);
  u32(4);
  u64(2);
  u32(1);
  u32(2);
  for (const [index, name] of names.entries()) {
    text(name);
    u32(1);
    u64(3);
    u32(0);
    u64(index * 32);
  }
  const head = Buffer.concat(parts);
  const pad = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc((32 - (bytes.length % 32)) % 32)]);
  const data = (...values: number[]) => pad(Buffer.from(Float32Array.from(values).buffer));
  return Buffer.concat([pad(head), data(1, 2, 3), data(4, 5, 6)]);
}

test("control vectors: direction.N is block N's; layer 0 is ignored", async () => {
  const read = await decodeControlVector(controlVector(["direction.2", "direction.7"]));
  assert.equal(
    [...read].map(([layer, data]) => [layer, ...data]),
    [
      [2, 1, 2, 3],
      [7, 4, 5, 6],
    ],
  );
  assert.equal(await decodeControlVector(encodeControlVector(read, "llama")), read);
  for (const [names, sentence] of [
    [["direction.0", "direction.1"], /llama\.cpp never applies direction\.0/],
    [
      ["direction.1", "direction.1000"],
      /The tensor name "direction\.1000" does not match direction\.<layer>\./,
    ],
  ] as const) {
    const error = await decodeControlVector(controlVector([...names])).catch((fault: Error) => fault);
    assert.instance(error, FormatError);
    assert.match((error as Error).message, sentence);
  }
  assert.throws(() => encodeControlVector(new Map([[0, new Float32Array(3)]]), ""), /Layer 0/);
});

test("damaged files are refused in a sentence, whatever is damaged", async () => {
  const whole: [Buffer, (bytes: Uint8Array) => unknown][] = [
    [
      safetensors({ a: { dtype: "F32", shape: [4], data_offsets: [0, 16] } }, Buffer.alloc(16)),
      decodeSafetensors,
    ],
    [zipOf({ a: npyFile(Float32Array.of(1, 2, 3, 4), [4]) }), (bytes) => decodeNpz(bytes, 4096)],
    [controlVector(["direction.2", "direction.7"]), decodeControlVector],
  ];
  for (const [file, decode] of whole) {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(file.length - 1),
        fc.nat(255),
        fc.nat(file.length),
        async (at, value, length) => {
          const damaged = Buffer.from(file.subarray(0, length));
          if (at < damaged.length) damaged[at] = value;
          try {
            await decode(damaged);
          } catch (error) {
            assert.instance(error, FormatError);
            assert.match((error as Error).message, /^[A-Z"'d].*\.$/);
          }
        },
      ),
      { numRuns: 700 },
    );
  }
});

test.run();
