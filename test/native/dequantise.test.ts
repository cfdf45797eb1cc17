/** Weights of a file as floats: blocks written by hand after ggml's formats. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { dequantise } from "../../src/native/index.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-weights-"));
const [from, to] = [join(folder, "weights"), join(folder, "floats")];

/** Q8_0: a scale in half precision, 32 signed bytes. */
const block = (scale: number, first: number) => {
  const bytes = Buffer.alloc(34);
  bytes.writeUInt16LE(scale);
  for (let i = 0; i < 32; i++) bytes.writeInt8(first + i, 2 + i);
  return bytes;
};
const [half, two] = [0x3800, 0x4000];
const count = (first: number, factor: number) => Array.from({ length: 32 }, (_, i) => (first + i) * factor);

test("Q8_0 blocks become floats after what the file has", async () => {
  writeFileSync(from, Buffer.concat([Buffer.alloc(8), block(half, -16), block(two, 3)]));
  writeFileSync(to, "head");
  await dequantise({ from, to, offset: 8, type: 8, row: 32, rows: 2 });
  const written = readFileSync(to);
  assert.is(written.toString("latin1", 0, 4), "head");
  assert.equal(
    Array.from({ length: 64 }, (_, i) => written.readFloatLE(4 + 4 * i)),
    [...count(-16, 0.5), ...count(3, 2)],
  );
});

test("float32 weights are copied", async () => {
  const values = Float32Array.from({ length: 6 }, (_, i) => i / 3);
  writeFileSync(from, Buffer.from(values.buffer));
  writeFileSync(to, "");
  await dequantise({ from, to, offset: 8, type: 0, row: 2, rows: 2 });
  assert.equal([...readFileSync(to)], [...new Uint8Array(values.buffer.slice(8))]);
});

test("unknown types, partial blocks and short files are refused", async () => {
  writeFileSync(from, block(half, 0));
  const refusal = async (options: object) => {
    const whole = { from, to, offset: 0, type: 8, row: 32, rows: 1, ...options };
    const error = await dequantise(whole).then(
      () => undefined,
      (found: Error & { code: string }) => found,
    );
    assert.is(error?.code, "INVALID_ARGUMENT");
    return error?.message;
  };
  assert.is(await refusal({ type: 999 }), "ggml has no type 999.");
  assert.is(
    await refusal({ row: 31 }),
    "Weights of type q8_0 with rows of 31 cannot be converted to floats.",
  );
  assert.match((await refusal({ rows: 2 })) as string, /^68 numbers .* do not lie in a file of 34 bytes\.$/);
  assert.match((await refusal({ from: join(folder, "none") })) as string, /cannot be read/);
  assert.match((await refusal({ to: join(folder, "none/none") })) as string, /cannot be written/);
});

test.after(() => rmSync(folder, { recursive: true }));
test.run();
