/** Small functions of the contracts: filters, tuples in OpenAPI, points, blocks of code. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isBlockPoint, pointField } from "../../src/contracts/names.js";
import { withReferences } from "../../src/contracts/openapi.js";
import { blocksOf } from "../../src/contracts/studies/fences.js";
import { brokenFilter } from "../../src/contracts/studies/filters.js";

test("titled schemas become components, and tuples become prefixItems", () => {
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

test("points and blocks of code in words", () => {
  assert.equal(["mid", "block_out", "attention", "head_out", "", undefined].map(isBlockPoint), [
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
  assert.equal(
    [pointField(undefined), pointField("block_out"), pointField("mid")],
    [{}, {}, { point: "mid" }],
  );
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

test.run();
