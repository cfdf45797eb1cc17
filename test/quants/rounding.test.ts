/** Forms rounded to nearest: rows by hand, whole files against their originals, and 16-bit numbers. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { bytesOf, floatsOf, toBf16, toHalf } from "../../src/formats/float.js";
import { readWeightPlaces } from "../../src/models/gguf-header.js";
import { openFile } from "../../src/quants/files.js";
import { roundToNf4 } from "../../src/quants/nf4.js";
import { describeRounded, roundRow, writeRounded } from "../../src/quants/rounding.js";
import { writeTinyModel } from "../inference/support/tiny-models.js";
import { temporaryFolder } from "../support/temporary.js";

const folder = temporaryFolder("quants-rounding");
const never = new AbortController().signal;

test("a row is rounded to steps of its greatest magnitude, ties to even", () => {
  // 3 bits: 3 steps of 0.5 on either side.
  const row = Float32Array.of(-1.5, 0.2, 0.25, 0.75, 1.2, -0.3);
  roundRow(row, { bits: 3, group: null });
  assert.equal(
    [...row].map((value) => value + 0),
    [-1.5, 0, 0, 1, 1, -0.5],
  );
});

test("groups have their own steps, and a last short group too", () => {
  const row = Float32Array.of(4, 1, 0.5, 0.2, 8);
  roundRow(row, { bits: 2, group: 2 });
  // 2 bits: one step on either side.
  assert.equal([...row], [4, 0, 0.5, 0, 8]);
  const zeros = new Float32Array(3);
  roundRow(zeros, { bits: 4, group: null });
  assert.equal([...zeros], [0, 0, 0]);
});

test("a scale is a binary16 number", () => {
  // 1 / 7 lies between two; the nearest is 1170 / 2^13.
  const row = Float32Array.of(1, -1 / 7);
  roundRow(row, { bits: 4, group: null });
  assert.equal([...row], [(7 * 1170) / 2 ** 13, -1170 / 2 ** 13]);
});

test("nf4: shares of a group's greatest magnitude become the nearest of 16 values", () => {
  // Of two groups: 64 weights, of which the greatest is 2, and the rest.
  const row = new Float32Array(66);
  row.set([2, -2, 0.24, 0.242, -0.46, -0.48, 1.7, 1.75]);
  row.set([0.5, -0.1], 64);
  roundToNf4(row);
  // The middles: 0.1202 between 0.0796 and 0.1609, -0.2346 between -0.2844 and -0.1848, 0.8615 between 0.7230 and 1.
  const wanted = [2, -2, 0.0795803 * 2, 0.1609302 * 2, -0.1847734 * 2, -0.2844414 * 2, 0.7229568 * 2, 2, 0];
  for (const [i, value] of wanted.entries()) assert.ok(Math.abs(row[i]! - value) < 1e-6, `${i}: ${row[i]}`);
  // -0.2 of the second group's 0.5.
  assert.equal([row[64], Math.abs(row[65]! + 0.1847734 * 0.5) < 1e-6], [0.5, true]);
  const zeros = new Float32Array(64);
  roundToNf4(zeros);
  assert.ok(zeros.every((value) => Object.is(value, 0)));
});

test("an nf4 file differs in its linear layers alone, with 4 bits and a scale in 32", async () => {
  const [from, to] = [join(folder, "linear.gguf"), join(folder, "nf4.gguf")];
  await writeTinyModel(from);
  await writeRounded(from, to, { format: "nf4" }, never);
  const { weights } = await readWeightPlaces([from]);
  const [one, two] = [readFileSync(from), readFileSync(to)];
  let [matrices, rows, others] = [0, 0, 0];
  for (const [name, { offset, shape }] of weights) {
    const count = shape.reduce((product, length) => product * length, 1);
    const same = one.subarray(offset, offset + 4 * count).equals(two.subarray(offset, offset + 4 * count));
    const is = /^blk\.\d\.(attn_(q|k|v|output)|ffn_(gate|up|down))\.weight$/.test(name);
    assert.is(same, !is, name);
    if (is) [matrices, rows] = [matrices + count, rows + count / shape[0]!];
    else others += count;
  }
  assert.ok(matrices > 0 && weights.has("token_embd.weight"));
  const before = await openFile(from);
  const found = await describeRounded(await openFile(to), { format: "nf4" });
  assert.is(found.name, "NF4");
  // Rows have 16 or 32 weights: one scale each.
  assert.is(found.bytes, before.bytes - 4 * matrices + (4 * matrices + 32 * rows) / 8);
  assert.equal(
    found.types.map(({ type, weights: count }) => [type, count]),
    [
      ["4-bit NormalFloat, a scale per 64 weights", matrices],
      ["F32", others],
    ].sort((a, b) => (b[1] as number) - (a[1] as number)),
  );
});

test("a rounded file differs in its matrices alone, and has the size of its bits", async () => {
  const [from, to] = [join(folder, "from.gguf"), join(folder, "to.gguf")];
  await writeTinyModel(from);
  await writeRounded(from, to, { bits: 4, group: 16 }, never);
  const { weights } = await readWeightPlaces([from]);
  const [one, two] = [readFileSync(from), readFileSync(to)];
  assert.is(one.length, two.length);
  let [matrices, scales, others] = [0, 0, 0];
  for (const [name, { offset, shape, type }] of weights) {
    assert.is(type, 0);
    const count = shape.reduce((product, length) => product * length, 1);
    const part = (bytes: Buffer) => floatsOf("F32", bytes.subarray(offset, offset + 4 * count))!;
    const [before, after] = [part(one), part(two)];
    if (shape.length === 1) {
      assert.equal(after, before, name);
      others += count;
      continue;
    }
    const width = shape[0]!;
    for (let at = 0; at < count; at += 16) {
      const most = Math.max(...before.subarray(at, at + 16).map(Math.abs));
      const values = new Set([...after.subarray(at, at + 16)].map(Math.abs));
      assert.ok(values.size <= 8, `${name} has ${values.size} magnitudes in a group`);
      before.subarray(at, at + 16).forEach((value, i) => {
        assert.ok(Math.abs(value - after[at + i]!) <= (most / 7) * 0.51, `${name} ${at + i}`);
      });
    }
    matrices += count;
    scales += (count / width) * Math.ceil(width / 16);
  }
  assert.ok(matrices > 0 && others > 0);
  const before = await openFile(from);
  const found = await describeRounded(await openFile(to), { bits: 4, group: 16 });
  assert.is(found.name, "RTN4x16");
  assert.is(found.bytes, Math.round(before.bytes - 4 * matrices + (4 * matrices + 16 * scales) / 8));
  const bits = (4 * matrices + 16 * scales + 32 * others) / (matrices + others);
  assert.ok(Math.abs(found.bits_per_weight - (bits + before.bits_per_weight - 32)) < 1e-9);
  assert.equal(
    found.types.map(({ type, weights: count }) => [type, count]),
    [
      ["4-bit round-to-nearest, a scale per 16 weights", matrices],
      ["F32", others],
    ],
  );
  assert.is.not(found.fingerprint, before.fingerprint);
});

test("every binary16 number is written as itself, and ties go to even", () => {
  const all = Uint16Array.from({ length: 2 ** 16 }, (_, bits) => bits);
  const finite = all.filter((bits) => (bits & 0x7c00) !== 0x7c00);
  const floats = floatsOf("F16", bytesOf(finite))!;
  assert.equal(toHalf(floats), finite);
  // Halfway between neighbours of one sign: the even one.
  const [positive] = [finite.filter((bits) => bits < 0x7bff)];
  const middles = Float32Array.from(positive, (bits) => {
    const [low, high] = floatsOf("F16", bytesOf(Uint16Array.of(bits, bits + 1)))!;
    return (low! + high!) / 2;
  });
  assert.equal(
    toHalf(middles),
    positive.map((bits) => bits + (bits & 1)),
  );
  assert.equal([...toHalf(Float32Array.of(65520, -1e9, 1e-9, Number.NaN))], [0x7c00, 0xfc00, 0, 0x7e00]);
  // 1 + 2^-8 lies between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
  assert.equal([...toBf16(Float32Array.of(1, 1 + 2 ** -8, 1 + 3 * 2 ** -8))], [0x3f80, 0x3f80, 0x3f82]);
});

test.run();
