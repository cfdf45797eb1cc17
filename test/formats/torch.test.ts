import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { FormatError } from "../../src/formats/format-error.js";
import { readTorchPickle } from "../../src/formats/torch.js";
import { Dictionaries } from "../../src/library/index.js";
import { fc } from "../support/fc.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-torch-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const text = (value: string) => {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  return Buffer.concat([Buffer.from("X"), length, Buffer.from(value)]);
};
const global = (module: string, name: string) => Buffer.from(`c${module}\n${name}\n`);
const pickle = (...parts: Array<Buffer | string>) =>
  Buffer.concat([
    Buffer.from([0x80, 2]),
    ...parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)),
    Buffer.from("."),
  ]);

/** {"w": a tensor [2, 3] of float32 at element 1 of a storage of 8, strides (1, 2)}, written opcode by opcode. */
const good = pickle(
  "}",
  text("w"),
  global("torch._utils", "_rebuild_tensor_v2"),
  "((",
  text("storage"),
  global("torch", "FloatStorage"),
  text("0"),
  text("cuda:0"),
  "K\x08tQ", // 8 elements, tuple, persistent id
  "K\x01", // offset
  "K\x02K\x03\x86", // shape
  "K\x01K\x02\x86", // strides
  "\x89", // requires_grad
  global("collections", "OrderedDict"),
  ")R", // hooks
  "tR",
  "s",
);

test("a checkpoint's tensors by name, with storage, offset and strides", () => {
  const { tensors, numbers } = readTorchPickle(good);
  assert.is(numbers.size, 0);
  const { ...found } = tensors.get("w");
  assert.equal(found, {
    file: "data/0",
    dtype: "F32",
    storage: 8,
    offset: 1,
    shape: [2, 3],
    stride: [1, 2],
  });
});

test("a pickle that would run something is refused by the name of what it wants to run", () => {
  const hostile = [
    [pickle(global("os", "system"), "(", text("touch /tmp/x"), "tR"), /"os.system"/],
    [pickle(global("builtins", "eval"), text("1"), "\x85R"), /"builtins.eval"/],
    [pickle(global("torch", "load"), ")R"), /"torch.load"/],
    [pickle(global("collections", "OrderedDict"), "(", text("a"), "tR"), /OrderedDict/],
    [pickle("(", text("x"), "i"), /opcode 0x69/],
    [pickle("}", global("os", "system"), "(K\x01tRs"), /"os.system"/],
  ] as const;
  for (const [bytes, reason] of hostile) {
    assert.throws(
      () => readTorchPickle(bytes),
      (error: Error) => error instanceof FormatError && reason.test(error.message),
    );
  }
});

test("a tensor that does not lie in its storage is refused, one that repeats a number, too", () => {
  const changed = (from: string, to: string) =>
    Buffer.from(good.toString("latin1").replace(from, to), "latin1");
  const beyond = changed("K\x01K\x02K\x03", "K\x03K\x02K\x03"); // from 3 on, the last is element 8 of 8
  assert.throws(
    () => readTorchPickle(beyond),
    (error: Error) => /shape \[2, 3\] does not lie in its storage of 8/.test(error.message),
  );
  const repeated = changed("K\x02K\x03\x86K\x01K\x02\x86", "K\x7fK\x7f\x86K\x00K\x00\x86");
  assert.throws(
    () => readTorchPickle(repeated),
    (error: Error) => /shape \[127, 127\] does not lie in its storage of 8/.test(error.message),
  );
});

test("2,000 damaged checkpoints: read, or refused in a sentence", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }),
      fc.nat(good.length),
      fc.boolean(),
      (changes, length, cut) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of changes) bytes[at] = value;
        try {
          readTorchPickle(cut ? bytes.subarray(0, length) : bytes);
        } catch (error) {
          assert.instance(error, FormatError);
          assert.match((error as Error).message, /^The checkpoint is not read: [^\n]*\.$/);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

test("what is no checkpoint is refused in a sentence", async () => {
  const dictionaries = new Dictionaries(folder);
  for (const [name, bytes] of [
    ["empty.pt", Buffer.alloc(0)],
    ["old.pt", Buffer.from([0x80, 2, 0x8a, 0x0a])],
    ["cut.pt", Buffer.from("PK\x03\x04 and no more", "latin1")],
  ] as const) {
    writeFileSync(join(folder, name), bytes);
    try {
      await dictionaries.add("x", join(folder, name), { layer: 0, k: 1 });
      assert.unreachable();
    } catch (error) {
      assert.match((error as Error).message, /^The file is no (checkpoint|\.pt file)[^\n]*\.$/, name);
    }
  }
});

test.run();
