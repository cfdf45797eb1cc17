import { test } from "uvu";
import * as assert from "uvu/assert";
import { mcpLimits } from "../../src/contracts/mcp.js";
import { type Cut, excerpt, pageOf, pieceAt, sizeOf } from "../../src/mcp/excerpt.js";
import { fence } from "../../src/mcp/fence.js";
import { reveal, revealAll } from "../../src/mcp/reveal.js";
import { packages } from "../studies/support/packages.js";
import { character, fc } from "../support/fc.js";
import { injections } from "./injections.js";
import { unfence } from "./session.js";

/** Texts as an attacker writes them: whole, cut, joined with others, with a fence seen in another answer. */
const hostileText = fc
  .array(
    fc.oneof(
      fc.constantFrom(...injections),
      fc.string({ unit: character, maxLength: 30 }),
      fc.string({ unit: "grapheme", maxLength: 30 }),
      fc.constant(fence("seen before", { a: 1 })),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .chain((parts) => fc.constantFrom("", "\n", "\r\n", "\u2028", '"', "\\").map((glue) => parts.join(glue)));

const hostileValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    hostileText,
    fc.double(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(hostileText, tie("value"), { maxKeys: 3 }),
  ),
})).value;

test("no text ends its fence, adds a line or hides a character", () => {
  fc.assert(
    fc.property(hostileValue, (value) => {
      const { value: revealed } = revealAll(value);
      const text = fence("Preface.", revealed);
      const { preface, data } = unfence(text);
      assert.is(preface, "Preface.");
      assert.equal(data, JSON.parse(JSON.stringify(revealed)));
      assert.is(text.match(/^-{5} untrusted data/gm)?.length, 2);
      assert.not.match(
        text,
        /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Surrogate}\p{Default_Ignorable_Code_Point}\u2028\u2029]/u,
      );
      for (const line of text.split("\n").slice(2, -1)) assert.match(line, /^ *["[{\]}\d\-tfn]/);
    }),
    { numRuns: 600, endOnFailure: true },
  );
});

test("every fence has a different nonce", () => {
  const nonces = new Set(Array.from({ length: 200 }, () => unfence(fence("", "x")).nonce));
  assert.is(nonces.size, 200);
});

test("a revealed character names its place, and nothing else changes", () => {
  assert.is(reveal("a\u202eb\u{e0041}\u200d\ud800 東\n\t"), "a\\u{202E}b\\u{E0041}\\u{200D}\\u{D800} 東\n\t");
  const { value, hidden } = revealAll({ "k\u200b": ["\u0000x", 1, null, { deep: "\u2028\ufeff" }] });
  assert.equal(value, { "k\\u{200B}": ["\\u{0000}x", 1, null, { deep: "\\u{2028}\\u{FEFF}" }] });
  assert.is(hidden, 4);
  fc.assert(
    fc.property(fc.string({ unit: "grapheme-ascii" }), (text) => {
      assert.is(reveal(text), text);
    }),
  );
});

test("an excerpt fits, preserves the shape, and names its omissions", () => {
  fc.assert(
    fc.property(packages, fc.integer({ min: 3000, max: 30_000 }), (study, budget) => {
      const { value, cut } = excerpt(study, "", budget);
      if (sizeOf(study) + 2 <= budget)
        assert.equal(JSON.stringify([value, cut]), JSON.stringify([study, []]));
      for (const { pointer, total, shown } of cut) {
        const piece = pieceAt(study, pointer, 0);
        assert.is(piece?.total, total);
        assert.ok(shown < total);
      }
    }),
    { endOnFailure: true },
  );
  const large = {
    long: "é".repeat(100_000),
    many: Array.from({ length: 5000 }, (_, index) => [index, "x".repeat(20)]),
  };
  const { value, cut } = excerpt(large);
  assert.ok(sizeOf(value) <= mcpLimits.page_characters);
  assert.equal(
    cut.map(({ pointer, total }) => [pointer, total]),
    [
      ["/long", 100_000],
      ["/many", 5000],
    ],
  );
});

test("pieces, read one after the other, are the whole text and the whole array", () => {
  const text = `${"😀 word ".repeat(9000)}end`;
  const rows = Array.from({ length: 3000 }, (_, index) => ({ index, text: "y".repeat(index % 90) }));
  const root = { "a/b": { "~": text }, rows };
  const read = (pointer: string) => {
    const pieces = [];
    for (let offset: number | null = 0; offset !== null; ) {
      const piece: NonNullable<ReturnType<typeof pieceAt>> = pieceAt(root, pointer, offset)!;
      assert.ok(sizeOf(piece) <= mcpLimits.page_characters);
      pieces.push(piece.value);
      offset = piece.next_offset;
    }
    return pieces;
  };
  assert.is(read("/a~1b/~0").join(""), text);
  assert.equal(read("/rows").flat(), rows);
  for (const nowhere of ["/x", "rows", "/rows/3000", "/rows/length", "/constructor", "/a~1b/toString"]) {
    assert.is(pieceAt(root, nowhere, 0), undefined, nowhere);
  }
});

test("a page has as many items as fit, in order, and never zero", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 400 }), { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 300, max: 3000 }),
      (items, budget) => {
        const page = pageOf(items, (index) => `/${index}`, budget);
        assert.ok(page.items.length >= 1);
        assert.equal(page.items.slice(1), items.slice(1, page.items.length));
        const next = items[page.items.length];
        const size = page.items.reduce((sum, item) => sum + sizeOf(item) + 2, 0);
        if (next !== undefined) assert.ok(size + sizeOf(next) + 2 > budget);
        if (page.items.length > 1) assert.ok(size <= budget);
        const named: Cut[] = page.cut;
        assert.ok(named.every(({ pointer }) => pointer === "/0"));
      },
    ),
  );
});

test.run();
