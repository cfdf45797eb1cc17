/** .safetensors files by their page, and numbers of every width by IEEE 754. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { floatsOf, narrowExactly } from "../../src/formats/float.js";
import { FormatError } from "../../src/formats/format-error.js";
import {
  decodeSafetensors,
  encodeSafetensors,
  planSafetensors,
  readSafetensorsHead,
} from "../../src/formats/safetensors.js";

/** A file by the format's page alone. */
function file(header: unknown, data: Uint8Array = Buffer.alloc(0)): Buffer {
  const json =
    typeof header === "string" ? Buffer.from(header, "latin1") : Buffer.from(JSON.stringify(header));
  return Buffer.concat([Buffer.from(BigUint64Array.of(BigInt(json.length)).buffer), json, data]);
}

const refused = (bytes: Buffer, message: string) =>
  assert.throws(
    () => decodeSafetensors(bytes),
    (error: Error) => {
      assert.instance(error, FormatError, String(error));
      assert.is(error.message, message);
      return true;
    },
  );

test("every type that is read, wherever it lies", () => {
  const parts = [
    Buffer.from(Float64Array.of(2.5, -1e-3).buffer),
    Buffer.from(BigInt64Array.of(-3n, 2n ** 40n).buffer),
    Buffer.from(Float32Array.of(0.1).buffer),
    Buffer.from(Int32Array.of(-7).buffer),
    Buffer.from(Uint16Array.of(0x3555).buffer),
    Buffer.from(Uint16Array.of(0xc049).buffer),
  ];
  const names = ["F64", "I64", "F32", "I32", "F16", "BF16"];
  const values = [
    [2.5, Math.fround(-1e-3)],
    [-3, 2 ** 40],
    [Math.fround(0.1)],
    [-7],
    [0.333251953125],
    [-3.140625],
  ];
  let at = 0;
  const header: Record<string, unknown> = { empty: { dtype: "F32", shape: [0, 3], data_offsets: [0, 0] } };
  for (const [index, part] of parts.entries()) {
    header[names[index]!] = {
      ...{ dtype: names[index], shape: [values[index]!.length], data_offsets: [at, at + part.length] },
    };
    at += part.length;
  }
  for (const space of ["", " "]) {
    const bytes = file(JSON.stringify({ ...header, __metadata__: {} }) + space, Buffer.concat(parts));
    const { tensors } = decodeSafetensors(bytes);
    assert.equal([...tensors.keys()], ["empty", ...names]);
    assert.equal([...tensors.get("empty")!.data], []);
    for (const [index, name] of names.entries()) {
      assert.equal([...tensors.get(name)!.data], values[index], name);
      assert.equal(tensors.get(name)!.shape, [values[index]!.length]);
    }
  }
});

test("a tensor's place is what its shape and type need, within the file", () => {
  const bytes = Buffer.alloc(8);
  const one = (entry: object) =>
    file({ t: { dtype: "F32", shape: [2], data_offsets: [0, 8], ...entry } }, bytes);
  assert.is(decodeSafetensors(one({})).tensors.size, 1);
  const outside = (shape: string) =>
    `The tensor "t" has offsets that do not match the file and its shape [${shape}].`;
  refused(one({ data_offsets: [1, 9] }), outside("2"));
  refused(one({ data_offsets: [8, 0] }), outside("2"));
  refused(one({ shape: [], data_offsets: [4, 0] }), outside(""));
  refused(one({ shape: [3] }), outside("3"));
  refused(one({ shape: [2, 1, 0] }), outside("2, 1, 0"));
  const placeless = 'The tensor "t" lacks a valid shape or offsets.';
  for (const entry of [
    ...[{ shape: [-2] }, { shape: [1.5] }, { shape: 2 }, { shape: ["2"] }, { shape: null }],
    ...[{ data_offsets: [0] }, { data_offsets: [0, 8, 8] }, { data_offsets: [-8, 0] }, { data_offsets: "0" }],
  ]) {
    refused(one(entry), placeless);
  }
  refused(file({ t: null }), placeless);
  refused(file({ t: 7 }), placeless);
  refused(
    one({ dtype: "F8" }),
    'The tensor "t" is of type "F8"; F64, F32, F16, BF16, I64, I32 are supported.',
  );
});

test("a header that is no object of JSON; metadata that are texts are kept", () => {
  const no = (why: string) => `The file is not a .safetensors file: its header is not ${why}.`;
  refused(file("{nothing"), no("JSON"));
  refused(file('{"\xff":1}'), no("JSON"));
  for (const header of ["null", "[]", "7", '"a"']) refused(file(header.padEnd(10)), no("an object"));
  const said = (metadata: unknown) => decodeSafetensors(file({ __metadata__: metadata })).metadata;
  assert.equal(said({ a: "b", c: 1, d: null }), { a: "b" });
  assert.equal([said(null), said("x"), said(7)], [{}, {}, {}]);
});

test("written data start at a multiple of 8, with each tensor's offset", () => {
  for (let length = 1; length < 18; length++) {
    const [a, b] = ["a".repeat(length), "b"];
    const plan = planSafetensors(
      {
        [a]: { dtype: "F16", shape: [3] },
        [b]: { dtype: "I32", shape: [2, 2] },
        c: { dtype: "BF16", shape: [] },
        d: { dtype: "F32", shape: [0] },
      },
      { of: "x" },
    );
    const { head } = plan;
    assert.is(head.length % 8, 0);
    assert.is(Number(head.readBigUInt64LE()), head.length - 8);
    const text = head.toString("utf8", 8);
    assert.ok(text.length - text.trimEnd().length < 8, "no more spaces than it takes");
    assert.equal(JSON.parse(text), {
      __metadata__: { of: "x" },
      [a]: { dtype: "F16", shape: [3], data_offsets: [0, 6] },
      [b]: { dtype: "I32", shape: [2, 2], data_offsets: [6, 22] },
      c: { dtype: "BF16", shape: [], data_offsets: [22, 24] },
      d: { dtype: "F32", shape: [0], data_offsets: [24, 24] },
    });
    assert.equal(
      [...plan.starts].map(([name, start]) => [name, start - head.length]),
      [
        [a, 0],
        [b, 6],
        ["c", 22],
        ["d", 24],
      ],
    );
    assert.is(plan.bytes, head.length + 24);
    assert.is(readSafetensorsHead(head, plan.bytes).places.get("c")!.end, plan.bytes);
  }
  const whole = encodeSafetensors({
    a: { shape: [2], data: Float32Array.of(1, 2).subarray(0) },
    b: { shape: [1, 2], data: Int32Array.of(0, 3, 4).subarray(1) },
  });
  const { tensors } = decodeSafetensors(whole);
  assert.equal(
    [...tensors].map(([name, { shape, data }]) => [name, shape, [...data]]),
    [
      ["a", [2], [1, 2]],
      ["b", [1, 2], [3, 4]],
    ],
  );
  assert.throws(
    () => encodeSafetensors({ a: { shape: [2, 2], data: new Float32Array(3) } }),
    /^a has 3 values, its shape is \[2, 2\]\.$/,
  );
});

/** The number that 16 bits are, by IEEE 754's own words: sign, exponent of 5 bits, fraction of 10. */
function binary16(bits: number): number {
  const digits = bits.toString(2).padStart(16, "0");
  const sign = digits[0] === "1" ? -1 : 1;
  const exponent = Number.parseInt(digits.slice(1, 6), 2);
  const fraction = Number.parseInt(digits.slice(6), 2);
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? (sign * fraction) / 2 ** 24 : (sign * (1024 + fraction) * 2 ** exponent) / 2 ** 25;
}

test("all 16-bit numbers are read; finite ones are written, others refused", () => {
  const every = Uint16Array.from({ length: 2 ** 16 }, (_, bits) => bits);
  const read = floatsOf("F16", new Uint8Array(every.buffer)) as Float32Array;
  const upper = new Uint32Array((floatsOf("BF16", new Uint8Array(every.buffer)) as Float32Array).buffer);
  const bits = new Uint32Array(read.buffer);
  for (const [half, value] of read.entries()) {
    const wanted = binary16(half);
    if (!Object.is(value, wanted)) assert.unreachable(`${half}: ${value}, not ${wanted}`);
    if (upper[half] !== half * 2 ** 16) assert.unreachable(`BF16 ${half}: ${upper[half]}`);
  }
  const finite = every.filter((half) => Number.isFinite(binary16(half)));
  assert.is(finite.length, 2 * 31 * 1024);
  const kept = narrowExactly(Float32Array.from(finite, binary16));
  assert.equal([kept?.dtype, kept?.data], ["F16", finite]);
  // One bit of a float32 more, or less, is no number of 16 bits.
  for (const half of finite.filter(
    (one) => one % 37 === 0 || (one & 0x7fff) < 3 || (one & 0x3ff) === 0x3ff,
  )) {
    for (const step of [-1, 1]) {
      const beside = new Float32Array(Uint32Array.of((bits[half] as number) + step).buffer);
      if (narrowExactly(beside) !== null) assert.unreachable(`${half} ${step}: ${beside[0]}`);
    }
  }
});

test("numbers that F16 has not, and BF16 has, and those that neither has", () => {
  const kept = (...values: number[]) => narrowExactly(Float32Array.from(values));
  for (const value of [2 ** 16, 2 ** -25, 2 ** 100, Number.POSITIVE_INFINITY, -(2 ** -126), 1.5 * 2 ** -25]) {
    const found = kept(1, value);
    const [bits] = new Uint32Array(Float32Array.of(value).buffer);
    assert.equal([found?.dtype, found?.data], ["BF16", Uint16Array.of(0x3f80, (bits as number) / 2 ** 16)]);
  }
  assert.is(kept(1 + 2 ** -10, 2 ** 16), null, "one is for the one, one for the other");
  assert.is(kept(0.1), null);
  assert.equal(kept(), { dtype: "F16", data: new Uint16Array() });
});

test("integers of all widths, and a type that is none", () => {
  const of = (type: string, numbers: ArrayBufferView) =>
    floatsOf(type, new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
  assert.equal(of("I16", Int16Array.of(-300, 300)), Float32Array.of(-300, 300));
  assert.equal(of("I8", Int8Array.of(-3, 127)), Float32Array.of(-3, 127));
  assert.equal(of("U8", Uint8Array.of(3, 255)), Float32Array.of(3, 255));
  assert.is(of("F8", Uint8Array.of(1)), null);
});

test.run();
