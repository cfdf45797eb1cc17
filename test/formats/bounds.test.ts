/** Where files end, what is just too much, and what generators give: by the formats' pages and published numbers. */
import { gzipSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { randomVector, uniformNumbers } from "../../src/findings/random.js";
import { decodeControlVector } from "../../src/formats/control-vector.js";
import { readLabels } from "../../src/formats/neuronpedia.js";
import { encodeNpz } from "../../src/formats/npz-writer.js";
import { safetensorsHeadLength } from "../../src/formats/safetensors.js";
import { readVector } from "../../src/library/files.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { saying } from "../support/saying.js";

test("a .safetensors header fits into its file, and into 16 MiB", () => {
  const length = (header: bigint, size: number) => {
    const first = Buffer.alloc(8);
    first.writeBigUInt64LE(header);
    return safetensorsHeadLength(first, size);
  };
  assert.is(length(92n, 100), 100, "the header alone");
  assert.throws(() => length(93n, 100), saying("its header of 93 bytes is larger than the file"));
  const most = 16n * 1024n ** 2n;
  assert.is(length(most, 2 ** 40), 8 + Number(most));
  assert.throws(
    () => length(most + 1n, 2 ** 40),
    saying("its header of 16777217 bytes exceeds the limit of 16777216."),
  );
  assert.throws(
    () => length(2n ** 63n, 2 ** 40),
    saying(`its header of ${2n ** 63n} bytes is larger than the file.`),
  );
  assert.is(length(2n, 10), 10);
  assert.throws(() => length(0n, 9), saying("it has 9 bytes"));
  assert.throws(() => safetensorsHeadLength(Buffer.alloc(7), 100), saying("it has 100 bytes"));
});

test("a control vector may end with its last number, and not before", async () => {
  const number = (value: number, bytes: 4 | 8) => {
    const buffer = Buffer.alloc(bytes);
    if (bytes === 4) buffer.writeUInt32LE(value);
    else buffer.writeBigUInt64LE(BigInt(value));
    return buffer;
  };
  const text = (value: string) => Buffer.concat([number(value.length, 8), Buffer.from(value)]);
  const head = Buffer.concat([
    Buffer.from("GGUF"),
    ...[number(3, 4), number(1, 8), number(1, 8)],
    ...[text("general.architecture"), number(8, 4), text("controlvector")],
    ...[text("direction.4"), number(1, 4), number(3, 8), number(0, 4), number(0, 8)],
  ]);
  const padded = Buffer.concat([head, Buffer.alloc((32 - (head.length % 32)) % 32)]);
  const file = Buffer.concat([padded, Buffer.from(Float32Array.of(1, 2, 3).buffer)]);
  assert.equal(
    [...(await decodeControlVector(file))].map(([layer, data]) => [layer, ...data]),
    [[4, 1, 2, 3]],
  );
  const cut = await decodeControlVector(file.subarray(0, -1)).catch((error: Error) => error.message);
  assert.match(cut as string, "lies outside the file");
});

test("an .npz file is of 1 January 1980, in every entry, as ZIP writes it", async () => {
  const one = { dtype: "f4", shape: [2], data: Float32Array.of(1, 2) } as never;
  const bytes = await encodeNpz({ a: one, b: one });
  let entries = 0;
  // Version needed, flags and method, then time and date: in a local header from byte 4 on, in the directory from 6.
  for (let at = 0; at < bytes.length - 4; at++) {
    const [signature, from] = [bytes.readUInt32LE(at), { 67324752: 4, 33639248: 6 }];
    const start = from[signature as keyof typeof from];
    if (start === undefined) continue;
    entries++;
    assert.equal(
      [0, 2, 4, 6, 8].map((field) => bytes.readUInt16LE(at + start + field)),
      [20, 0, 0, 0, (0 << 9) | (1 << 5) | 1],
    );
  }
  assert.is(entries, 4);
});

test("labels: exports of Neuronpedia's, packed or not, and answers of its API", () => {
  const lines = ['{"index":"3","description":" a name "}', "", '{"index":4,"description":"x"}', ""];
  const expected = [
    [3, "a name"],
    [4, "x"],
  ];
  const of = (text: string | Buffer) => [...readLabels(Buffer.from(text))];
  assert.equal(of(lines.join("\n")), expected);
  assert.equal(of(gzipSync(lines.join("\n"))), expected);
  const answer = { index: 7, explanations: [{ description: "first" }, { description: "second" }] };
  assert.equal(of(JSON.stringify(answer)), [[7, "first"]]);
  assert.equal(of(JSON.stringify([answer, { index: 7, description: "later" }])), [[7, "first"]]);
  assert.equal(of(`[{"index":0,"description":"${"y".repeat(501)}"}]`), [[0, "y".repeat(500)]]);
  for (const index of ["-1", -1, 1.5, "1234567890", null, "x"])
    assert.equal(of(JSON.stringify({ index, description: "no feature's" })), [], String(index));
  for (const description of ["  ", 7, null]) assert.equal(of(JSON.stringify({ index: 1, description })), []);
  assert.equal(of("[null, 7, []]"), []);
  assert.throws(() => of(`${lines[0]}\n\nno JSON\n`), saying("Line 3 of the labels is not JSON."));
  const broken = gzipSync(lines.join("\n")).subarray(0, 20);
  assert.throws(() => readLabels(broken), /^The labels cannot be unpacked \(Z_BUF_ERROR\)\.$/);
});

test("numbers by a seed are mulberry32's, each in the middle of its 2^-32", () => {
  // The published output of the generator for seed 1.
  const published = [0.6270739405881613, 0.002735721180215478, 0.5274470399599522];
  const next = uniformNumbers(1);
  assert.equal(
    published.map(() => next()),
    published.map((value) => value + 0.5 / 2 ** 32),
  );
  // Box and Muller's of each two.
  const uniform = uniformNumbers(5);
  const normal = Array.from({ length: 4 }, () => {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    return radius * Math.cos(2 * Math.PI * uniform());
  });
  const length = Math.hypot(...normal);
  const vector = randomVector(4, 3, 5);
  for (const [i, value] of normal.entries()) assert.ok(Math.abs(vector[i]! - (3 * value) / length) < 1e-6);
});

test("a vector file needs a layer, one array, and the matching operation and point", async () => {
  const array = (name: string) => zipOf({ [name]: npyFile(Float32Array.of(1, 2), [2]) });
  const model = { id: "m", fingerprint: "f", nEmbd: 2, nLayer: 8 };
  const read = (bytes: Buffer, layer?: number) =>
    readVector(bytes, { model, layer, restamp: false }).then(
      ({ layers }) => [...layers].map(([at, data]) => [at, ...data]),
      (error: Error) => error.message,
    );
  const unsaid =
    "The file does not record its layers: name its arrays layer_<n>, or send one array with ?layer=<n>.";
  assert.equal(await read(array("layer_5")), [[5, 1, 2]]);
  assert.equal(await read(array("layer_5"), 3), [[5, 1, 2]]);
  assert.equal(await read(array("direction"), 3), [[3, 1, 2]]);
  assert.is(await read(array("direction")), unsaid);
  const two = zipOf({ a: npyFile(Float32Array.of(1), [1]), b: npyFile(Float32Array.of(2), [1]) });
  assert.is(await read(two, 3), unsaid);
  const said = (metadata: object) => {
    const json = Buffer.from(
      JSON.stringify({ __metadata__: metadata, layer_5: { dtype: "F32", shape: [1], data_offsets: [0, 4] } }),
    );
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(json.length));
    return read(Buffer.concat([length, json, Buffer.from(Float32Array.of(7).buffer)]));
  };
  assert.equal(await said({}), [[5, 7]]);
  assert.equal(await said({ operation: "add", point: "block_out" }), [[5, 7]]);
  assert.is(await said({ operation: "ablate" }), "The file is for the operation ablate, not add.");
  assert.is(await said({ point: "mid" }), "The file is for the point mid; only block_out is supported.");
});

test.run();
