/** What a result shows of a value that does not fit, to the character: the bounds are written out here. */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { excerpt, pageOf, pieceAt, sizeOf } from "../../src/mcp/excerpt.js";
import { fence } from "../../src/mcp/fence.js";

test("a value of exactly the budget is whole; one character more is cut", () => {
  const value = { text: "x".repeat(13_000) };
  const size = '{"text":""}'.length + 13_000 + "[]".length;
  assert.equal(excerpt(value, "", size), { value, cut: [] });
  const { value: shown, cut } = excerpt(value, "", size - 1);
  assert.equal(shown, { text: "x".repeat(12_000) });
  assert.equal(cut, [{ pointer: "/text", total: 13_000, shown: 12_000 }]);
});

test("texts and arrays are shortened in steps, only if longer than the step", () => {
  const steps = [
    [12_000, 100],
    [4000, 50],
    [1000, 20],
    [200, 8],
    [120, 4],
  ] as const;
  for (const [characters, items] of steps) {
    // As many as the step shows, and one more; in characters that are two units each. And some that are far too long.
    const long = ["v", "w", "x", "y", "z"];
    const value = {
      "a/b": "😀".repeat(characters),
      "c~": "😀".repeat(characters + 1),
      many: Array.from({ length: items + 1 }, (_, index) => index),
      few: Array.from({ length: items }, (_, index) => index),
      ...Object.fromEntries(long.map((name) => [name, name.repeat(20_000)])),
    };
    const shown = {
      ...value,
      "c~": "😀".repeat(characters),
      many: value.many.slice(0, items),
      ...Object.fromEntries(long.map((name) => [name, name.repeat(characters)])),
    };
    const cut = [
      { pointer: "/p/c~0", total: characters + 1, shown: characters },
      { pointer: "/p/many", total: items + 1, shown: items },
      ...long.map((name) => ({ pointer: `/p/${name}`, total: 20_000, shown: characters })),
    ];
    // Just enough for this step; those before it would show more, and do not fit.
    assert.equal(
      excerpt(value, "/p", sizeOf(shown) + sizeOf(cut)),
      { value: shown, cut },
      String(characters),
    );
  }
  // What does not fit even then is shown so, and no smaller.
  const wide = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`name${index}`, "y".repeat(121)]),
  );
  const { value, cut } = excerpt(wide, "", 10);
  assert.equal(Object.values(value as object), Array(50).fill("y".repeat(120)));
  assert.is(cut.length, 50);
});

test("in arrays, each item by its place; numbers, nulls and truths as they are", () => {
  const value = [["z".repeat(300), null], { a: [true, 7.5] }];
  assert.equal(excerpt(value, "", 300), {
    value: [["z".repeat(200), null], { a: [true, 7.5] }],
    cut: [{ pointer: "/0/0", total: 300, shown: 200 }],
  });
});

test("a page takes items while they fit with commas, cutting only the first", () => {
  const items = ["aaaa", "bbbb", "cccc"]; // six characters each, and two between
  const places: number[] = [];
  const page = (budget: number) => pageOf(items, (index) => `/${places.push(index) && index}`, budget).items;
  assert.equal(page(24), items);
  assert.equal(page(23), items.slice(0, 2));
  assert.equal(page(16), items.slice(0, 2));
  assert.equal(page(15), items.slice(0, 1));
  assert.equal(page(0), items.slice(0, 1), "the first one always");
  const long = pageOf(["x".repeat(5000), "y"], (index) => `/items/${index}`, 5000);
  assert.equal(long, {
    items: ["x".repeat(4000), "y"],
    cut: [{ pointer: "/items/0", total: 5000, shown: 4000 }],
  });
  assert.equal(pageOf([], String, 100), { items: [], cut: [] });
});

test("pieces of a text count characters, not units, and join without gaps", () => {
  const text = `${"😀".repeat(12_000)}ab`;
  const at = (offset: number) => pieceAt({ text }, "/text", offset);
  const place = { pointer: "/text", cut: [] };
  assert.equal(at(0), {
    ...{ ...place, offset: 0, total: 12_002, next_offset: 12_000, value: "😀".repeat(12_000) },
  });
  assert.equal(at(2), { ...place, offset: 2, total: 12_002, next_offset: null, value: text.slice(4) });
  assert.equal(at(12_001), { ...place, offset: 12_001, total: 12_002, next_offset: null, value: "b" });
  assert.equal(at(12_002)?.value, "");
  const short = pieceAt("😀a", "", 0);
  assert.equal(short, { pointer: "", offset: 0, total: 2, next_offset: null, value: "😀a", cut: [] });
  assert.is(pieceAt("x".repeat(12_000), "", 0)?.next_offset, null);
});

test("a piece of an array: half a page of it, each item where it stands in the whole", () => {
  const rows = Array.from({ length: 30 }, () => "r".repeat(998)); // a thousand characters each, and two between
  const first = pieceAt({ rows }, "/rows", 0);
  assert.equal([(first!.value as string[]).length, first?.next_offset, first?.total], [19, 19, 30]);
  const next = pieceAt({ rows }, "/rows", 19);
  assert.equal([(next!.value as string[]).length, next?.next_offset, next?.offset], [11, null, 19]);
  const long = pieceAt(["a", "x".repeat(30_000)], "", 1);
  assert.equal(long?.cut, [{ pointer: "/1", total: 30_000, shown: 12_000 }]);
  assert.is(long?.next_offset, null);
});

test("anything else at a pointer is an excerpt without a length", () => {
  const root = { object: { text: "t".repeat(20_000) }, number: 7, none: null, "": { "": 1 } };
  assert.equal(pieceAt(root, "/object", 0), {
    ...{ pointer: "/object", offset: 0, total: null, next_offset: null },
    value: { text: "t".repeat(12_000) },
    cut: [{ pointer: "/object/text", total: 20_000, shown: 12_000 }],
  });
  assert.is(pieceAt(root, "/number", 0)?.value, 7);
  assert.is(pieceAt(root, "/none", 0)?.value, null);
  assert.is(pieceAt(root, "//", 0)?.value, 1);
  // An escaped tilde before a 1 is no escaped slash.
  assert.is(pieceAt({ "~1": "right", "/": "wrong" }, "/~01", 0)?.value, "right");
  assert.is(pieceAt(root, "/number/x", 0), undefined);
  assert.is(pieceAt(root, "/none/x", 0), undefined);
});

test("a nonce that stands in the data is drawn anew", () => {
  const { randomBytes } = crypto;
  const drawn = [1, 1, 2].map((byte) => Buffer.alloc(16, byte));
  crypto.randomBytes = (() => drawn.shift()) as unknown as typeof randomBytes;
  syncBuiltinESMExports();
  try {
    const text = fence("Preface.", "01".repeat(16));
    assert.is(
      text,
      [
        "Preface.",
        `----- untrusted data ${"02".repeat(16)} begins -----`,
        `"${"01".repeat(16)}"`,
        `----- untrusted data ${"02".repeat(16)} ends -----`,
      ].join("\n"),
    );
  } finally {
    crypto.randomBytes = randomBytes;
    syncBuiltinESMExports();
  }
});

test.run();
