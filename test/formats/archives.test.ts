/** Zip archives and the arrays in them, by PKWARE's APPNOTE and NumPy's NEP 1 alone. */

import { crc32, deflateRawSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { FormatError } from "../../src/formats/format-error.js";
import { decodeNpz, npzWords } from "../../src/formats/npz.js";
import { encodeNpz, type NpzArray, NpzWriter } from "../../src/formats/npz-writer.js";
import { type ZipEntry, zipDataStart, zipDirectory, zipEntries } from "../../src/formats/zip.js";
import { saying } from "../support/saying.js";

const u16 = (...values: number[]) => Buffer.from(Uint16Array.from(values).buffer);
const u32 = (...values: number[]) => Buffer.from(Uint32Array.from(values).buffer);

interface Packed {
  name: string;
  data: Buffer;
  /** Deflated. */
  packed?: Buffer;
  method?: number;
  size?: number;
  crc?: number;
  /** Bytes of the fields that nobody reads. */
  extra?: number;
  comment?: number;
}

/** An archive with what its writers may put between the parts. */
function archive(files: readonly Packed[], { comment = "", count = files.length } = {}): Buffer {
  const parts: Buffer[] = [];
  const listed: Buffer[] = [];
  let at = 0;
  for (const { name, data, packed, extra = 0, ...file } of files) {
    const stored = packed ?? data;
    const fields = Buffer.concat([
      u16(20, 0, file.method ?? (packed === undefined ? 0 : 8), 0, 0),
      u32(file.crc ?? crc32(data), stored.length, file.size ?? data.length),
    ]);
    // The extra fields of the two headers need not be as long.
    const local = [
      u32(0x04034b50),
      fields,
      u16(name.length, extra + 3),
      Buffer.from(name),
      Buffer.alloc(extra + 3),
    ];
    listed.push(
      ...[u32(0x02014b50), u16(20), fields, u16(name.length, extra, file.comment ?? 0, 0, 0), u32(0, at)],
      ...[Buffer.from(name), Buffer.alloc(extra), Buffer.alloc(file.comment ?? 0)],
    );
    parts.push(...local, stored);
    at += Buffer.concat(local).length + stored.length;
  }
  const directory = Buffer.concat(listed);
  const end = [u32(0x06054b50), u16(0, 0, count, count), u32(directory.length, at), u16(comment.length)];
  return Buffer.concat([...parts, directory, ...end, Buffer.from(comment)]);
}

function npy(descr: string, shape: string, data: Buffer, { version = 1, order = "False" } = {}): Buffer {
  const header = Buffer.from(`{'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}, }\n`);
  const length = version === 1 ? u16(header.length) : u32(header.length);
  return Buffer.concat([Buffer.from("\x93NUMPY", "latin1"), Buffer.of(version, 0), length, header, data]);
}

const floats = (...values: number[]) => Buffer.from(Float32Array.from(values).buffer);
const plain = (bytes: Buffer, most = 1e6) =>
  [...decodeNpz(bytes, most)].map(([name, { shape, data }]) => [name, [...shape], [...data]]);
const refused = (work: () => unknown, message: string) =>
  assert.throws(work, (error: Error) => {
    assert.instance(error, FormatError, String(error));
    assert.is(error.message, message);
    return true;
  });

test("arrays in Fortran order are read as NumPy reads them", () => {
  const order = "True";
  // numpy.arange(24).reshape(2, 3, 4), its bytes as numpy.asfortranarray keeps them.
  const kept = [0, 12, 4, 16, 8, 20, 1, 13, 5, 17, 9, 21, 2, 14, 6, 18, 10, 22, 3, 15, 7, 19, 11, 23];
  const files = [
    { name: "cube.npy", data: npy("<f4", "(2, 3, 4)", floats(...kept), { order }) },
    { name: "flat.npy", data: npy("<f4", "(3,)", floats(7, 8, 9), { order }) },
    { name: "one.npy", data: npy("<f4", "()", floats(5), { order }) },
    { name: "none.npy", data: npy("<f4", "(0, 3)", floats(), { order }) },
  ];
  assert.equal(plain(archive(files)), [
    ["cube", [2, 3, 4], Array.from({ length: 24 }, (_, i) => i)],
    ["flat", [3], [7, 8, 9]],
    ["one", [], [5]],
    ["none", [0, 3], []],
  ]);
});

test("zip entries are found after extra fields and archive comments", () => {
  const files = [
    { name: "a", data: Buffer.from("first"), extra: 20, comment: 7 },
    { name: "folder/b.txt", data: Buffer.from("second"), packed: deflateRawSync(Buffer.from("second")) },
    { name: "", data: Buffer.alloc(0) },
  ];
  for (const comment of ["", "said of the whole", "x".repeat(65_535)]) {
    const bytes = archive(files, { comment });
    const { start, length, count } = zipDirectory(bytes.subarray(-65_557), ".pt");
    assert.is(count, 3);
    assert.is(start + length, bytes.length - 22 - comment.length);
    const entries = zipEntries(bytes.subarray(start, start + length), count, ".pt");
    assert.equal(
      entries.map(({ name, method, packed, size, crc }) => ({ name, method, packed, size, crc })),
      files.map(({ name, data, packed }) => ({
        ...{ name, method: packed === undefined ? 0 : 8, packed: (packed ?? data).length },
        ...{ size: data.length, crc: crc32(data) },
      })),
    );
    for (const [index, { data, packed }] of files.entries()) {
      const entry = entries[index] as ZipEntry;
      const from = zipDataStart(entry, bytes.subarray(entry.header, entry.header + 30), ".pt");
      assert.equal(bytes.subarray(from, from + entry.packed), packed ?? data);
    }
  }
});

test("an archive without a directory, with a cut one, or of more than 4 GiB", () => {
  const none = "The file is not a .npz file: it has no directory.";
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(21), Buffer.alloc(22), Buffer.alloc(70_000)]) {
    refused(() => zipDirectory(bytes, ".npz"), none);
  }
  const bytes = archive([{ name: "a", data: Buffer.from("x") }]);
  // Farther from the end than any comment reaches.
  refused(() => zipDirectory(Buffer.concat([bytes, Buffer.alloc(65_536)]), ".npz"), none);
  assert.is(zipDirectory(Buffer.concat([bytes, Buffer.alloc(65_535)]), ".npz").count, 1);
  const cut = "The file is not a .npz file: its directory is truncated.";
  const { start, length } = zipDirectory(bytes, ".npz");
  const directory = bytes.subarray(start, start + length);
  refused(() => zipEntries(directory, 2, ".npz"), cut);
  refused(() => zipEntries(directory.subarray(0, 45), 1, ".npz"), cut);
  refused(() => zipEntries(Buffer.alloc(60), 1, ".npz"), cut);
  assert.equal(zipEntries(directory, 0, ".npz"), []);
  const large = "The .npz file is a zip64 archive (over 4 GiB), which is not supported.";
  for (const [at, width] of [
    [10, 2],
    [16, 4],
  ] as const) {
    const marked = Buffer.from(bytes);
    marked.fill(0xff, marked.length - 22 + at, marked.length - 22 + at + width);
    refused(() => zipDirectory(marked, ".npz"), large);
  }
  const [entry] = zipEntries(directory, 1, ".npz");
  refused(
    () => zipDataStart(entry as ZipEntry, Buffer.alloc(29), ".npz"),
    '"a" in the .npz file is damaged.',
  );
});

test("npz arrays: stored and deflated, 16 to 64 bits, both header lengths, empty", () => {
  const data = floats(1, -2, 3, 4, 5, 6);
  const packed = npy("<f4", "(3, 2)", data);
  const doubles = Buffer.from(Float64Array.of(0.5, -7).buffer);
  const bytes = archive([
    { name: "stored.npy", data: npy("<f4", "(2, 3)", data), extra: 20 },
    { name: "packed.npy", data: packed, packed: deflateRawSync(packed) },
    { name: "long.npy", data: npy("<f8", "(2,)", doubles, { version: 2 }) },
    { name: "half.npy", data: npy("<f2", "(1, 1, 2)", u16(0x3c00, 0xc000)) },
    { name: "one.npy", data: npy("<f4", "()", floats(9)) },
    { name: "none.npy", data: npy("<f4", "(0, 5)", Buffer.alloc(0)) },
  ]);
  assert.equal(plain(bytes), [
    ["stored", [2, 3], [1, -2, 3, 4, 5, 6]],
    ["packed", [3, 2], [1, -2, 3, 4, 5, 6]],
    ["long", [2], [0.5, -7]],
    ["half", [1, 1, 2], [1, -2]],
    ["one", [], [9]],
    ["none", [0, 5], []],
  ]);
  assert.equal(plain(archive([])), []);
});

test("no more is unpacked than is wanted, and not one byte less", () => {
  const a = npy("<f4", "(2,)", floats(1, 2));
  const b = npy("<f4", "(3,)", floats(3, 4, 5));
  const bytes = archive([
    { name: "a.npy", data: a, packed: deflateRawSync(a) },
    { name: "b.npy", data: b },
  ]);
  const most = a.length + b.length;
  assert.is(plain(bytes, most).length, 2);
  refused(() => decodeNpz(bytes, most - 1), `The arrays of the .npz file have more than ${most - 1} bytes.`);
});

test("damaged, compressed, Fortran-ordered or odd-typed arrays are refused by name", () => {
  const good = npy("<f4", "(2,)", floats(1, 2));
  const damaged = '"a.npy" in the .npz file is damaged.';
  const of = (file: Partial<Packed>) => () =>
    decodeNpz(archive([{ name: "a.npy", data: good, ...file }]), 1e6);
  refused(of({ crc: 1 }), damaged);
  refused(of({ size: good.length + 1 }), damaged);
  refused(of({ packed: deflateRawSync(good), size: good.length - 1 }), damaged);
  refused(of({ packed: Buffer.from("no deflated bytes") }), damaged);
  refused(of({ method: 12 }), '"a.npy" in the .npz file is packed with method 12; 0 and 8 are supported.');
  // It says that it goes on behind the end of the file.
  const bytes = archive([{ name: "a.npy", data: good }]);
  const { start } = zipDirectory(bytes, ".npz");
  bytes.writeUInt32LE(bytes.length, start + 20);
  refused(() => decodeNpz(bytes, 1e6), damaged);

  const said = (data: Buffer, why: string) => refused(of({ data }), `"a.npy" in the .npz file ${why}.`);
  said(Buffer.from("\x93NUMPX"), "is not an array");
  said(Buffer.from("\x93NUMPY\x01\x00", "latin1"), "is not an array");
  said(Buffer.from("NUMPY, and some more"), "is not an array");
  said(good.subarray(0, 40), "is truncated");
  said(npy("<f4", "(2,)", floats(1, 2), { order: "None" }), "lacks its shape or order");
  said(npy("<f4", "2", floats(1, 2)), "lacks its shape or order");
  said(npy("<i8", "(1,)", Buffer.alloc(8)), 'is of type "<i8"; <f4, <f8, <f2 are supported');
  said(npy("", "(1,)", Buffer.alloc(8)), 'is of type "unknown"; <f4, <f8, <f2 are supported');
  said(npy("<f4", "(3,)", floats(1, 2)), "has a size that does not match its shape");
  said(npy("<f8", "(2,)", floats(1, 2)), "has a size that does not match its shape");
});

test("words: texts without a shape, as NumPy keeps them; what is no word is an array", () => {
  const characters = (value: string, length: number) => {
    const codes = new Uint32Array(length);
    codes.set([...value].map((character) => character.codePointAt(0) as number));
    return Buffer.from(codes.buffer);
  };
  const bytes = archive([
    { name: "model.npy", data: npy("<U5", "()", characters("späß", 5)) },
    { name: "sign.npy", data: npy("<U1", "()", characters("\u{1f600}", 1)) },
    { name: "nothing.npy", data: npy("<U3", "()", characters("", 3)) },
    { name: "a.npy", data: npy("<f4", "(1,)", floats(7)) },
  ]);
  assert.equal(npzWords(bytes, 1e6), { model: "späß", sign: "\u{1f600}", nothing: "" });
  assert.equal(plain(bytes), [["a", [1], [7]]]);
  const typed = (file: Buffer) => () => decodeNpz(archive([{ name: "a.npy", data: file }]), 1e6);
  const none = '"a.npy" in the .npz file is of type "<U1"; <f4, <f8, <f2 are supported.';
  refused(typed(npy("<U1", "(1,)", characters("x", 1))), none);
  refused(typed(npy("<U1", "()", u32(0x110000))), none);
  assert.equal(npzWords(archive([{ name: "w.npy", data: npy("<U1", "()", u32(0x10ffff)) }]), 1e6), {
    w: "\u{10ffff}",
  });
});

test("written archives follow the format: offsets, lengths, 64-byte headers", async () => {
  const shapes = [[], [3], [1, 2], [12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]];
  for (const shape of shapes) {
    const count = shape.reduce((product, length) => product * length, 1);
    const values = Array.from({ length: count }, (_, index) => index - 1);
    const arrays = {
      f: { shape, data: Float32Array.from(values) },
      d: { shape, data: Float64Array.from(values) },
      i: { shape, data: Int32Array.from(values) },
      word: "a \u{1f600}",
    };
    const bytes = await encodeNpz(arrays);
    const { start, length, count: listed } = zipDirectory(bytes, ".npz");
    assert.equal([start + length + 22, listed], [bytes.length, 4]);
    // One disk, the first, which has all four entries of the four.
    assert.equal(
      [4, 6, 8, 10].map((field) => bytes.readUInt16LE(start + length + field)),
      [0, 0, 4, 4],
    );
    const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
    for (const { name, header, size, packed, crc } of zipEntries(bytes.subarray(start), 4, ".npz")) {
      assert.is(bytes.readUInt32LE(header), 0x04034b50);
      const from = header + 30 + name.length;
      const file = bytes.subarray(from, from + size);
      const head = 10 + file.readUInt16LE(8);
      assert.equal([head % 64, file.toString("latin1", 0, 8)], [0, "\x93NUMPY\x01\x00"]);
      const [descr, size_] = ({ f: ["<f4", 4], d: ["<f8", 8], i: ["<i4", 4], w: ["<U3", 12] } as const)[
        name[0] as "f"
      ];
      assert.is(
        file.toString("latin1", 10, head).trimEnd(),
        `{'descr': '${descr}', 'fortran_order': False, 'shape': ${name[0] === "w" ? "()" : tuple}, }`,
      );
      assert.is(file[head - 1], 10, "a line");
      assert.equal(
        [file.length - head, packed, crc],
        [name[0] === "w" ? 12 : count * size_, size, crc32(file)],
      );
    }
    assert.equal(npzWords(bytes, 1e6), { word: "a \u{1f600}" });
  }
});

test("an array takes as many numbers as its shape has, and an archive less than 4 GiB", async () => {
  const written: [number, number][] = [];
  const file = { write: async (bytes: Uint8Array, at: number) => void written.push([at, bytes.length]) };
  const npz = new NpzWriter(file, [{ name: "a", shape: [2, 2] }]);
  await npz.append(0, Float32Array.of(1, 2, 3));
  const said = (work: Promise<void>) => work.then(() => "written", String);
  assert.is(
    await said(npz.append(0, Float32Array.of(4, 5))),
    "RangeError: a holds 16 bytes; 8 more do not fit.",
  );
  assert.is(await said(npz.finish()), "RangeError: a has 12 of 16 bytes.");
  await npz.append(0, Float32Array.of(4));
  assert.equal(written, [
    [163, 12],
    [175, 4],
  ]);
  await npz.finish();
  // With its headers: 30 and the name's, 128 of .npy.
  const of = (shape: number[], dtype: NpzArray["dtype"]) =>
    new NpzWriter(file, [{ name: "a", shape, dtype }] as never);
  const room = 2 ** 32 - 1 - 163;
  assert.throws(
    () => of([Math.ceil(room / 8) + 1], "f8"),
    /^An \.npz of 4294967\d+ bytes would need zip64\.$/,
  );
  of([Math.floor(room / 8)], "f8");
  of([Math.floor(room / 4)], "i4");
  assert.throws(() => of([Math.floor(room / 12) + 1], "U3"), saying("would need zip64"));
});

test.run();
