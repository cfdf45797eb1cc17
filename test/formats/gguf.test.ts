/** GGUF headers and control vectors, byte by byte after ggml's gguf.md: every type of value, every bound, every cut. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { decodeControlVector, encodeControlVector } from "../../src/formats/control-vector.js";
import { FormatError } from "../../src/formats/format-error.js";
import {
  type ByteSource,
  GgufHeaderReader,
  type GgufTensor,
  type GgufValue,
  sourceOf,
} from "../../src/formats/gguf.js";
import { refusalBy } from "../support/refusal.js";

const u32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value: number | bigint) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const text = (value: string) => Buffer.concat([u64(value.length), Buffer.from(value)]);
const header = (tensors: number, pairs: number, ...parts: Buffer[]) =>
  Buffer.concat([Buffer.from("GGUF"), u32(3), u64(tensors), u64(pairs), ...parts]);
const tensor = (name: string, dimensions: number[], type: number, offset: number) =>
  Buffer.concat([text(name), u32(dimensions.length), ...dimensions.map(u64), u32(type), u64(offset)]);

async function read(source: ByteSource) {
  const reader = await GgufHeaderReader.open(source);
  const pairs: [string, GgufValue | undefined][] = [];
  for await (const pair of reader.pairs()) pairs.push(pair);
  const tensors: GgufTensor[] = [];
  for await (const one of reader.tensors()) tensors.push(one);
  return { pairs, tensors, position: reader.position, counts: reader.counts };
}

const refusal = refusalBy(FormatError);

/** Each type of value by its number in the format, and its bytes; texts and arrays aside. */
const scalars = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

test("values of every type: texts, numbers and flags are returned, others skipped", async () => {
  const parts: Buffer[] = [];
  const expected: [string, GgufValue | undefined][] = [];
  const say = (key: string, type: number, bytes: Buffer, value?: GgufValue) => {
    parts.push(text(key), u32(type), bytes);
    expected.push([key, value]);
  };
  for (const [type, bytes] of Object.entries(scalars)) {
    if (["0", "1", "2", "3"].includes(type)) say(`one ${type}`, Number(type), Buffer.alloc(bytes, 1));
    say(`three ${type}`, 9, Buffer.concat([u32(Number(type)), u64(3), Buffer.alloc(3 * bytes, 1)]));
  }
  say("a text", 8, text("its content"), "its content");
  say("unsigned", 4, u32(4_000_000_000), 4_000_000_000);
  say("signed", 5, Buffer.from(Int32Array.of(-5).buffer), -5);
  say("long", 10, u64(2 ** 53 - 1), 2 ** 53 - 1);
  say("signed long", 11, Buffer.from(BigInt64Array.of(-7n).buffer), -7);
  say("texts", 9, Buffer.concat([u32(8), u64(2), text("one"), text("another")]));
  // Longer than one read: the text after it begins in a missing block and ends the file.
  say("bytes", 9, Buffer.concat([u32(0), u64(3 * 2 ** 20), Buffer.alloc(3 * 2 ** 20)]));
  say("a flag", 7, Buffer.of(1), true);
  say("another flag", 7, Buffer.of(0), false);
  say("a float", 6, Buffer.from("0000c0bf", "hex"), -1.5);
  say("a double", 12, Buffer.from("000000000000f83f", "hex"), 1.5);
  say("the last", 8, text("x".repeat(2 ** 20 + 5)), "x".repeat(2 ** 20 + 5));
  const file = header(0, expected.length, ...parts);
  const found = await read(sourceOf(file));
  assert.equal(found.pairs, expected);
  assert.equal([found.position, found.tensors], [file.length, []]);
});

test("tensors: the product of up to four dimensions, type and offset", async () => {
  const file = header(
    3,
    1,
    Buffer.concat([text("general.architecture"), u32(8), text("llama")]),
    tensor("one", [], 0, 0),
    tensor("three", [7, 5, 3], 8, 32),
    tensor("four", [2, 3, 5, 7], 1, 2 ** 40),
  );
  const { tensors, counts, position } = await read(sourceOf(file));
  assert.equal(tensors, [
    { name: "one", length: 1, shape: [], type: 0, offset: 0 },
    { name: "three", length: 105, shape: [7, 5, 3], type: 8, offset: 32 },
    { name: "four", length: 210, shape: [2, 3, 5, 7], type: 1, offset: 2 ** 40 },
  ]);
  assert.equal([counts, position], [{ tensors: 3, pairs: 1 }, file.length]);
  const five = header(1, 0, tensor("five", [1, 1, 1, 1, 1], 0, 0));
  assert.is(await refusal(() => read(sourceOf(five))), "A tensor has 5 dimensions.");
});

test("a header that ends early is truncated, for files and readers", async () => {
  const file = header(
    1,
    5,
    ...[text("a"), u32(7), Buffer.of(1)],
    ...[text("b"), u32(9), u32(8), u64(2), text("p"), text("qq")],
    ...[text("c"), u32(8), text("d")],
    ...[text("e"), u32(9), u32(2), u64(3), Buffer.alloc(6)],
    ...[text("f"), u32(12), Buffer.alloc(8)],
    tensor("t", [3], 0, 0),
  );
  const withoutTensor = Buffer.concat([file.subarray(0, 8), u64(0), file.subarray(16, -33)]);
  assert.is((await read(sourceOf(withoutTensor))).position, withoutTensor.length);
  for (const whole of [file, withoutTensor]) {
    for (let length = 0; length < whole.length; length++) {
      const short = whole.subarray(0, length);
      assert.is(await refusal(() => read(sourceOf(short))), "The GGUF file is truncated.", `${length} bytes`);
    }
  }
  // It was as long when it was opened, and is shorter now.
  const lost = { size: file.length, read: async (to: Buffer, from: number) => file.copy(to, 0, from, 50) };
  assert.is(await refusal(() => read(lost)), "The GGUF file is truncated.");
});

test("headers of other versions or with impossible names are refused", async () => {
  const open = (bytes: Buffer) => refusal(() => read(sourceOf(bytes)));
  const good = header(0, 0);
  assert.is((await read(sourceOf(good))).position, 24);
  for (const version of [2, 3]) {
    good.writeUInt32LE(version, 4);
    assert.equal((await read(sourceOf(good))).pairs, []);
  }
  for (const version of [1, 4]) {
    good.writeUInt32LE(version, 4);
    assert.is(await open(good), `GGUF version ${version} is not supported; 2 and 3 are.`);
  }
  assert.is(await open(Buffer.from("GGUX".padEnd(24))), "The file is not a GGUF file.");
  for (const parts of [u32(13), Buffer.concat([u32(9), u32(13), u64(0)])]) {
    const said = header(0, 1, text("k"), parts, Buffer.alloc(64));
    assert.is(await open(said), "The GGUF file has a value of unknown type 13.");
  }
  assert.is(await open(header(0, 1, text("k"), u32(10), u64(2n ** 53n))), "The GGUF file is truncated.");
  // A key of more than 64 MiB is damage, even where the file would hold it.
  const long = header(0, 1, u64(2 ** 26 + 1));
  const endless = {
    size: 2 ** 40,
    async read(buffer: Buffer) {
      long.copy(buffer);
      return buffer.length;
    },
  };
  assert.is(await refusal(() => read(endless)), "The GGUF file is truncated.");
});

const architecture = [text("general.architecture"), u32(8), text("controlvector")];
const padded = (bytes: Buffer, to: number) =>
  Buffer.concat([bytes, Buffer.alloc((to - (bytes.length % to)) % to)]);
const numbers = (...values: number[]) => Buffer.from(Float32Array.from(values).buffer);
const plain = (layers: ReadonlyMap<number, Float32Array>) =>
  [...layers].map(([layer, data]) => [layer, ...data]);

test("a control vector's data use the file's alignment, by default 32", async () => {
  for (const [said, alignment] of [
    [256, 256],
    [0, 32],
    [undefined, 32],
  ] as const) {
    const more = said === undefined ? [] : [text("general.alignment"), u32(4), u32(said)];
    const head = header(
      2,
      said === undefined ? 1 : 2,
      ...[...architecture, ...more, tensor("direction.4", [3], 0, 32), tensor("direction.1", [2], 0, 0)],
    );
    const file = Buffer.concat([padded(head, alignment), padded(numbers(5, 6), 32), numbers(1, 2, 3)]);
    const expected = [
      [4, 1, 2, 3],
      [1, 5, 6],
    ];
    assert.equal(plain(await decodeControlVector(file)), expected, `${said}`);
    // Wherever the bytes lie in memory.
    const moved = Buffer.concat([Buffer.alloc(3), file]).subarray(3);
    assert.equal(plain(await decodeControlVector(moved)), expected);
    const cut = file.subarray(0, -1);
    assert.is(await refusal(() => decodeControlVector(cut)), "direction.4 lies outside the file.");
  }
});

test("a control vector has at most 1,024 tensors and 4,096 keys, in float32", async () => {
  const of = (bytes: Buffer) => refusal(() => decodeControlVector(bytes));
  const cut = "The GGUF file is truncated.";
  assert.is(await of(header(1024, 0)), 'The GGUF file has the architecture "", not controlvector.');
  assert.is(await of(header(1025, 0)), "The GGUF file lists 1025 entries; at most 1024 are supported.");
  assert.is(await of(header(0, 4096)), cut);
  assert.is(await of(header(0, 4097)), "The GGUF file lists 4097 entries; at most 4096 are supported.");
  const llama = header(0, 1, text("general.architecture"), u32(8), text("llama"));
  assert.is(await of(llama), 'The GGUF file has the architecture "llama", not controlvector.');
  const one = (name: string, type: number) => header(1, 1, ...architecture, tensor(name, [1], type, 0));
  assert.is(await of(one("direction.2", 1)), "direction.2 is not float32.");
  assert.is(await of(one("layer.2", 0)), 'The tensor name "layer.2" does not match direction.<layer>.');
  assert.match(await of(one("direction.0", 0)), /^llama\.cpp never applies direction\.0/);
});

test("a control vector is written as llama.cpp reads it: ascending, aligned to 32", async () => {
  const given = new Map([
    [12, Float32Array.of(4, 5, 6, 7, 8, 9, 10, 11, 12)],
    [3, Float32Array.of(1, 2, 3)],
  ]);
  const head = padded(
    Buffer.concat([
      header(2, 3, ...architecture, text("controlvector.model_hint"), u32(8), text("llama")),
      ...[text("controlvector.layer_count"), u32(4), u32(2)],
      ...[tensor("direction.3", [3], 0, 0), tensor("direction.12", [9], 0, 32)],
    ]),
    32,
  );
  const data = [padded(numbers(1, 2, 3), 32), padded(numbers(4, 5, 6, 7, 8, 9, 10, 11, 12), 32)];
  assert.equal(encodeControlVector(given, "llama"), Buffer.concat([head, ...data]));
});

test.run();
