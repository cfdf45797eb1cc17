import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { FormatError } from "../../src/formats/format-error.js";
import { Global, type PickleWorld, readPickle } from "../../src/formats/pickle.js";
import { gather, readTorchPickle } from "../../src/formats/torch.js";
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

test("a pickle that would run code is refused, naming that code", () => {
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

test("tensors outside their storage or with overlapping elements are refused", () => {
  const changed = (from: string, to: string) =>
    Buffer.from(good.toString("latin1").replace(from, to), "latin1");
  const beyond = changed("K\x01K\x02K\x03", "K\x03K\x02K\x03"); // from 3 on, the last is element 8 of 8
  assert.throws(
    () => readTorchPickle(beyond),
    (error: Error) => /shape \[2, 3\] exceeds its storage of 8/.test(error.message),
  );
  const repeated = changed("K\x02K\x03\x86K\x01K\x02\x86", "K\x7fK\x7f\x86K\x00K\x00\x86");
  assert.throws(
    () => readTorchPickle(repeated),
    (error: Error) => /shape \[127, 127\] exceeds its storage of 8/.test(error.message),
  );
});

/** Calls `m.f`, which gives back what it is called with; a persistent id is told as it is. */
const world: PickleWorld = {
  call: (name, args) => (name === "m.f" ? { called: args } : undefined),
  load: (id) => ({ id }),
};
const unpickled = (...parts: Array<Buffer | string>) => readPickle(pickle(...parts), world);

test("each opcode of a plain checkpoint, by pickletools", () => {
  const double = Buffer.alloc(9);
  double.write("G");
  double.writeDoubleBE(-2.5, 1);
  const cases: [Array<Buffer | string>, unknown][] = [
    [["N"], null],
    [["\x88"], true],
    [["\x89"], false],
    [["K\xff"], 255],
    [["M\x01\x80"], 0x8001],
    [["J\xfe\xff\xff\xff"], -2],
    [["\x8a\x00"], 0],
    [["\x8a\x01\xff"], -1],
    [["\x8a\x01\x7f"], 127],
    [["\x8a\x01\x80"], -128],
    [["\x8a\x02\xff\x00"], 255],
    [["\x8a\x03\x01\x02\x03"], 0x030201],
    [["\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"], -(2n ** 63n)],
    [["\x8a\x07\x01\x00\x00\x00\x00\x00\x20"], 2n ** 53n + 1n],
    [[double], -2.5],
    [[text("ab")], "ab"],
    [["]"], []],
    [[")"], []],
    [["}"], new Map()],
    [["K\x01\x85"], [1]],
    [["K\x01K\x02\x86"], [1, 2]],
    [["K\x01K\x02K\x03\x87"], [1, 2, 3]],
    [["(K\x01(K\x02K\x03tt"], [1, [2, 3]]],
    [["(t"], []],
    [["]K\x01aK\x02a"], [1, 2]],
    [["]K\x00a(K\x01K\x02e"], [0, 1, 2]],
    [["}K\x01K\x02s"], new Map([[1, 2]])],
    [
      ["}(K\x01K\x02K\x03Nu"],
      new Map<unknown, unknown>([
        [1, 2],
        [3, null],
      ]),
    ],
    [["}Nb"], new Map()],
    [["]q\x05K\x07ah\x05K\x08a"], [7, 8]],
    [["K\x09r\x04\x03\x02\x01j\x04\x03\x02\x01\x86"], [9, 9]],
    [["K\x03Q"], { id: 3 }],
    [[global("m", "f"), "K\x01K\x02\x86R"], { called: [1, 2] }],
    [[global("m", "g")], new Global("m.g")],
  ];
  for (const [parts, value] of cases) assert.equal(unpickled(...parts), value, JSON.stringify(parts));
});

test("a pickle that says what cannot be is told why", () => {
  const refused = (bytes: Uint8Array, why: string) =>
    assert.throws(
      () => readPickle(bytes, world),
      (error: Error) => {
        assert.instance(error, FormatError, String(error));
        assert.is(error.message, `The checkpoint cannot be read: ${why}.`);
        return true;
      },
    );
  for (const bytes of [Buffer.of(0x80, 3, 0x4e, 0x2e), Buffer.of(0x81, 2, 0x4e, 0x2e)])
    refused(bytes, "it is not a pickle of protocol 2");
  const [below, missing] = ["it pops more values than it pushed", "it reads an empty stack"];
  for (const [code, why] of [
    ["", below],
    ["(", below],
    ["K\x01\x86", below],
    ["K\x01t", "it closes a group that was never opened"],
    ["a", below],
    ["K\x01a", missing],
    ["(K\x01a", missing],
    ["NK\x01a", "it appends to something that is not a list"],
    ["}(K\x01e", "it appends to something that is not a list"],
    ["]K\x01K\x02s", "it sets items of something that is not a dict"],
    ["}(K\x01u", "it sets items of something that is not a dict"],
    ["]Nb", "it sets the state of an object that is not a dict"],
    ["q\x00", missing],
    ["h\x07", "it reads memo 7, which is empty"],
    ["NNR", "it calls something that is not a name"],
    ["cm\nf\nNR", "it calls something that is not a name"],
    ["N)R", "it calls something that is not a name"],
    ["cm\ng\n)R", 'it names "m.g"; only tensors, numbers, strings, lists and dicts are supported'],
    ["\x01", "it has the opcode 0x01, which plain checkpoints do not need"],
    ["X\x01\x00\x00\x00\xff", "it has a string that is not UTF-8"],
    [`c${"m".repeat(257)}\nf\n`, "it has an unterminated name"],
    ["cm", "it has an unterminated name"],
  ] as const) {
    refused(pickle(code), why);
  }
  assert.equal(unpickled(`c${"m".repeat(256)}\nf\n`), new Global(`${"m".repeat(256)}.f`));
  for (let length = 2; length < good.length; length++) {
    assert.throws(
      () => readTorchPickle(good.subarray(0, length)),
      /: it (is truncated|has an unterminated name)\.$/,
    );
  }
  const steps = (count: number) => pickle("}", "Nb".repeat((count - 2) / 2));
  assert.equal(readPickle(steps(1_000_000), world), new Map());
  refused(steps(1_000_002), "it has more than 1000000 steps");
});

test("dicts are read four levels deep by path; so are a lone tensor or parameter", () => {
  const tensor = good.subarray(2 + 1 + 6, -2).toString("latin1"); // without its dict and name
  const found = readTorchPickle(pickle(tensor));
  assert.equal([...found.tensors.keys()], ["tensor"]);
  const parameter = [
    global("torch._utils", "_rebuild_parameter"),
    "(",
    tensor,
    "\x88",
    global("collections", "OrderedDict"),
    ")RtR",
  ];
  assert.equal([...readTorchPickle(pickle(...parameter)).tensors.keys()], ["tensor"]);
  const dict = (...items: Array<Buffer | string>) =>
    Buffer.concat(
      ["}(", ...items, "u"].map((item) => (typeof item === "string" ? Buffer.from(item, "latin1") : item)),
    );
  const fifth = dict(text("g"), "K\x06");
  const fourth = dict(text("d"), "K\x05", text("f"), fifth);
  const nested = dict(text("b"), dict("K\x07", fourth, "N", "K\x01"));
  const { numbers, texts, tensors } = readTorchPickle(
    pickle(dict(text("a"), nested, text("n"), "K\x09", text("t"), text("said"), text("none"), "N")),
  );
  assert.equal(
    [...numbers],
    [
      ["a.b.7.d", 5],
      ["n", 9],
    ],
    "five deep is not looked at, nor what has no name",
  );
  assert.equal([[...texts], [...tensors]], [[["t", "said"]], []]);
  const no = pickle(global("torch._utils", "_rebuild_parameter"), "(NtR");
  assert.throws(() => readTorchPickle(no), /it names "torch\._utils\._rebuild_parameter"/);
});

test("names up to a thousand characters and a hundred thousand names are read", () => {
  const refusal = (bytes: Buffer) => {
    try {
      readTorchPickle(bytes);
    } catch (error) {
      return (error as Error).message;
    }
    return "none";
  };
  const told =
    "The checkpoint cannot be read: it has more than 100000 names, or a name of more than 1000 characters.";
  const dict = (...items: Buffer[]) => Buffer.concat([Buffer.from("}("), ...items, Buffer.from("u")]);
  const named = (length: number) => pickle(dict(text("a"), dict(text("n".repeat(length)), Buffer.from("N"))));
  // A path: the outer name, a dot, the inner one.
  assert.is(refusal(named(998)), "none");
  assert.is(refusal(named(999)), told);
  // 100 dicts with 999 names each, and their own.
  const key = (at: number) => Buffer.from([0x4d, at & 255, at >> 8]);
  const full = dict(...Array.from({ length: 999 }, (_, at) => [key(at), Buffer.from("N")]).flat());
  const dicts = Array.from({ length: 100 }, (_, at) => [key(at), full]).flat();
  assert.is(refusal(pickle(dict(...dicts))), "none");
  assert.is(refusal(pickle(dict(...dicts, key(100), Buffer.from("N")))), told);
});

test("a storage or a tensor that is said in an unknown way", () => {
  const changed = (from: string, to: string) => () =>
    readTorchPickle(Buffer.from(good.toString("latin1").replace(from, to), "latin1"));
  const says = (work: () => unknown, message: string) =>
    assert.throws(work, (error: Error) => error.message === `The checkpoint cannot be read: ${message}.`);
  const unknown = "it has an invalid reference to a storage";
  says(changed("storage", "STORAGE"), unknown);
  says(changed("X\x01\x00\x00\x000", "X\x01\x00\x00\x00/"), unknown);
  says(changed("X\x01\x00\x00\x000", "K\x00"), unknown);
  says(changed("K\x08tQ", "NtQ"), unknown);
  says(changed("K\x08tQ", "J\xff\xff\xff\xfftQ"), unknown);
  says(changed("FloatStorage", "ComplexStorage"), 'its storage type "torch.ComplexStorage" is not supported');
  const shapeless = "a tensor lacks a storage, an offset or a shape";
  says(changed("K\x01K\x02K\x03\x86", "NK\x02K\x03\x86"), shapeless);
  says(changed("K\x02K\x03\x86", "K\x02"), shapeless);
  says(changed("K\x01K\x02\x86", "K\x01"), shapeless);
  const outside = (shape: string) => `a tensor of the shape [${shape}] exceeds its storage of 8 numbers`;
  says(changed("K\x02K\x03\x86", "K\x02\x85"), outside("2"));
  const ones = (count: number) => `(${"K\x01".repeat(count)}t`;
  const shaped = (count: number) => {
    const text = good.toString("latin1").replace("K\x02K\x03\x86", ones(count));
    return () => readTorchPickle(Buffer.from(text.replace("K\x01K\x02\x86", ones(count)), "latin1"));
  };
  assert.is(shaped(8)().tensors.get("w")?.shape.length, 8);
  says(shaped(9), shapeless);
  // Nothing of it is read, so that it may lie anywhere.
  const empty = changed("K\x01K\x02K\x03", "K\x63K\x00K\x03");
  assert.equal(empty().tensors.get("w")?.shape, [0, 3]);
});

test("a tensor's numbers in C order, whatever its strides", () => {
  const numbers = Float32Array.from({ length: 60 }, (_, index) => index);
  const of = (shape: number[], stride: number[]) => [...gather(numbers, { shape, stride } as never)];
  assert.equal(of([2, 3], [3, 1]), [0, 1, 2, 3, 4, 5]);
  assert.equal(of([3, 2], [1, 3]), [0, 3, 1, 4, 2, 5]);
  assert.equal(of([2, 1, 3], [3, 99, 1]), [0, 1, 2, 3, 4, 5], "an axis of one has any stride");
  assert.equal(of([2, 3], [10, 2]), [0, 2, 4, 10, 12, 14]);
  assert.equal(of([], []), [0]);
  assert.equal(of([2, 2, 3], [1, 30, 4]), [0, 4, 8, 30, 34, 38, 1, 5, 9, 31, 35, 39]);
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
          assert.match((error as Error).message, /^The checkpoint cannot be read: [^\n]*\.$/);
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
      assert.match(
        (error as Error).message,
        /^The file is not a (checkpoint of torch\.save|\.pt file)[^\n]*\.$/,
        name,
      );
    }
  }
});

test.run();
