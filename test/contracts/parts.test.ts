/** What the contracts' small functions say: origins, positions, filters, tuples in OpenAPI, sizes. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { bytesText } from "../../src/text/bytes-text.js";
import { lineOf } from "../../src/text/hidden.js";
import { readMarks } from "../../src/operations/patch_sweep/contract-marked-text.js";
import { isBlockPoint, saidPoint } from "../../src/contracts/names.js";
import { withReferences } from "../../src/contracts/openapi.js";
import { readOrigin } from "../../src/contracts/origin.js";
import { positionText } from "../../src/operations/compare/contract-position-text.js";
import { blocksOf } from "../../src/contracts/studies/fences.js";
import { brokenFilter } from "../../src/contracts/studies/filters.js";
import { saying } from "../support/saying.js";

test("an origin is a scheme and a host, as browsers send it", () => {
  for (const [text, origin] of [
    ["*", "*"],
    ["http://localhost:3000", "http://localhost:3000"],
    ["https://A.example/", "https://a.example"],
    ["http://[::1]:80", "http://[::1]"],
  ] as const)
    assert.is(readOrigin(text), origin);
  for (const text of [
    "",
    "localhost:3000",
    "ftp://a.example",
    "https://a.example/b",
    "https://a.example/?",
    "https://me@a.example",
    "**",
    "null",
  ])
    assert.throws(
      () => readOrigin(text),
      saying(`An origin looks like http://localhost:3000, or * for every one; got ${text}.`),
    );
});

test("which rows are changed, in words", () => {
  for (const [positions, words] of [
    [undefined, "last token"],
    ["last", "last token"],
    ["all", "all tokens"],
    ["prompt", "the prompt's tokens"],
    ["generated", "generated tokens"],
    [[[3, 3]], "token 3"],
    [[[3, 5]], "tokens 3 to 5"],
    [[[-1, -1]], "token -1"],
    [
      [
        [3, 3],
        [5, 5],
      ],
      "tokens 3, 5",
    ],
    [
      [
        [0, 1],
        [4, 4],
      ],
      "tokens 0 to 1, 4",
    ],
  ] as const)
    assert.is(positionText(positions as never), words);
});

test("titled schemas become components, tuples what OpenAPI 3.1 calls them", () => {
  const components: Record<string, unknown> = {};
  const tuple = {
    type: "array",
    items: [{ type: "string" }, { type: "integer" }],
    additionalItems: false,
    minItems: 2,
  };
  const inner = {
    title: "Inner",
    type: "object",
    properties: { pair: tuple, all: { type: "array", items: { type: "null" } } },
  };
  assert.equal(withReferences({ anyOf: [inner, { type: "null" }], default: null }, components), {
    anyOf: [{ $ref: "#/components/schemas/Inner" }, { type: "null" }],
    default: null,
  });
  assert.equal(components, {
    Inner: {
      type: "object",
      properties: {
        pair: {
          type: "array",
          prefixItems: [{ type: "string" }, { type: "integer" }],
          items: false,
          minItems: 2,
        },
        all: { type: "array", items: { type: "null" } },
      },
    },
  });
  assert.equal(inner.properties.pair.items.length, 2, "the schema stays as it was");
});

test("a filter's rule that a value breaks", () => {
  for (const [name, value, rule] of [
    ["model", "x", null],
    ["model", "😀".repeat(300), null],
    ["model", "", "must have 1 to 300 characters"],
    ["model", "x".repeat(301), "must have 1 to 300 characters"],
    ["license", "CC0-1.0", null],
    ["license", "MIT", "must be one of CC-BY-4.0, CC0-1.0"],
    ["author", "ada-2", null],
    ["author", "Ada", "must be a handle"],
    ["author", "a".repeat(101), "must be a handle"],
    ["year", "2026", null],
    ["year", "3026", "must be a year of four digits"],
    ["year", "20261", "must be a year of four digits"],
    ["reproduced", "yes", null],
    ["reproduced", "no", "must be one of yes"],
    ["sort", "top", null],
    ["sort", "old", "must be one of relevance, new, top, discussed"],
  ] as const)
    assert.is(brokenFilter(name, value), rule, `${name} ${value.slice(0, 9)}`);
});

test("sizes, points and lines as they are told", () => {
  assert.equal([0, 1, 999, 1000, 1049, 99_949, 100_000, 999_499, 1e6, 1.5e9, 1e12, 1e15].map(bytesText), [
    "0 bytes",
    "1 bytes",
    "999 bytes",
    "1.0 kB",
    "1.0 kB",
    "99.9 kB",
    "100 kB",
    "999 kB",
    "1.0 MB",
    "1.5 GB",
    "1.0 TB",
    "1000 TB",
  ]);
  assert.equal(["mid", "block_out", "attention", "head_out", "", undefined].map(isBlockPoint), [
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
  assert.equal([saidPoint(undefined), saidPoint("block_out"), saidPoint("mid")], [{}, {}, { point: "mid" }]);
  assert.is(lineOf("a\r\n\u202e\0b\tc\u0378d"), "a b c d");
  assert.equal(
    blocksOf("a\n```x \n1\n``\n```\n~~~\n2\n```").map(({ code, label, text }) => [code, label, text]),
    [
      [false, "", "a"],
      [true, "x", "1\n``"],
      [true, "", "2\n```"],
    ],
  );
  assert.equal(blocksOf("```\n```\n".repeat(201)).length, 201, "two hundred, and the rest as prose");
});

test("marked spans: what stands between the marks, and where each ends without them", () => {
  assert.equal(readMarks("[[The]] capital of [[France ]][[is]]", "x"), {
    text: "The capital of France is",
    spans: [
      { text: "The", end: 3 },
      { text: "France ", end: 22 },
      { text: "is", end: 24 },
    ],
  });
  assert.equal(readMarks("a [b] [[[c]]]", "x"), { text: "a [b] [c]", spans: [{ text: "[c", end: 8 }] });
  for (const [marked, sentence] of [
    ["a", "pairs[0].clean marks no span: with aligned positions, write what is patched between [[ and ]]."],
    ["", "pairs[0].clean marks no span: with aligned positions, write what is patched between [[ and ]]."],
    ["[[a", "pairs[0].clean opens a span with [[ that is not closed."],
    ["[[a]] [[", "pairs[0].clean opens a span with [[ that is not closed."],
    ["a]]", "pairs[0].clean has ]] where no span was opened with [[."],
    ["[[a]]]]", "pairs[0].clean has ]] where no span was opened with [[."],
    ["[[a [[b]]", "pairs[0].clean opens a span with [[ inside of another."],
    ["[[a]][[]]", "pairs[0].clean marks a span without any text: [[]]."],
    ["[[a]]".repeat(65), "pairs[0].clean marks 65 spans; at most 64 are aligned."],
  ] as const) {
    assert.throws(() => readMarks(marked, "pairs[0].clean"), saying(sentence), marked);
  }
  assert.is(readMarks("[[a]]".repeat(64), "x").spans.length, 64);
});

test.run();
