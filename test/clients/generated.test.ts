/** The Python packages' types are what `npm run generate` makes of the contracts. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import Type from "typebox";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { generated } from "../../scripts/generate/packages.js";
import { type Module, pythonModule } from "../../scripts/generate/typed-dicts.js";
import { defaults, limits, ports } from "../../src/contracts/limits.js";
import { studyLimits } from "../../src/contracts/studies/limits.js";
import { saying } from "../support/saying.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const modules = Object.entries(generated());

for (const [path, text] of modules) {
  test(`${path} is up to date with the contracts`, () => {
    const same = readFileSync(root + path, "utf8") === text;
    assert.ok(same, `${path} differs from the schemas; run \`npm run generate\` and commit the result.`);
  });
}

test("clients' signatures and docstrings state the contracts' defaults and limits", () => {
  const [tapline, research] = modules.map(([path]) => root + path.replace("types.py", "")) as [
    string,
    string,
  ];
  const lab = [`"http://127.0.0.1:${ports.lab}"`, `timeout: float = ${limits.worker_deadline_seconds}`];
  const grouped = String(studyLimits.package_bytes).replace(/\B(?=(\d{3})+$)/g, "_");
  const said: Record<string, string[]> = {
    [`${tapline}_lab.py`]: [...lab, `at most ${limits.job_list}, newest first`],
    [`${tapline}_async.py`]: [...lab, `at most ${limits.job_list}, newest first`],
    [`${tapline}_serving.py`]: [
      `port: int = ${ports.inference}`,
      `max_input_tokens: int = ${defaults.capture_input_tokens}`,
      `to ${limits.capture_layers} distinct`,
    ],
    [`${research}_client.py`]: [
      `_PACKAGE_BYTES = ${grouped}`,
      `1 to ${studyLimits.list_limit} (default: ${studyLimits.list_limit_default})`,
    ],
  };
  for (const [file, texts] of Object.entries(said)) {
    const source = readFileSync(file, "utf8");
    for (const text of texts) assert.ok(source.includes(text), `${file} lacks ${text}`);
  }
});

const nothing = { description: "Made for a test.", words: {}, names: {}, types: {} };
const made = (module: Partial<Module>) => pythonModule({ ...nothing, schemas: [], ...module });

test("schemas of every kind become classes, fields, docstrings and aliases", () => {
  const side = Type.Enum(["left", "right"]);
  const Point = Type.Object(
    { x: Type.Number(), label: Type.Union([Type.String(), Type.Null()], { description: "null: no label." }) },
    { title: "Point", description: "One place." },
  );
  const Line = Type.Object(
    {
      ends: Type.Tuple([Point, Point], { description: "First and last." }),
      from: Type.Optional(Type.Integer({ description: "An index." })),
      side: Type.Optional(side),
      tags: Type.Array(Type.String({ description: "One word each." })),
      counts: Type.Record(Type.String(), Type.Integer()),
      inner_part: Type.Optional(Type.Object({ on: Type.Boolean(), kind: Type.Literal("a") })),
      like: Type.Object(Point.properties),
      mixed: Type.Union([side, Type.Array(Type.Union([Type.Integer(), Type.String()]))]),
    },
    { title: "Line" },
  );
  const module = made({
    schemas: [Line],
    words: { Side: ["left", "right"] },
    types: { "Line.counts": "dict[str, float]" },
  });
  assert.is(
    module,
    `"""Made for a test."""

from __future__ import annotations

from typing import Literal, TypedDict

Side = Literal["left", "right"]


class Point(TypedDict):
    """One place."""

    x: float
    label: str | None
    """None: no label."""


class LineInnerPart(TypedDict):
    on: bool
    kind: Literal["a"]


# An index.
_LineFrom = TypedDict("_LineFrom", {"from": int}, total=False)


class _LineRequired(TypedDict):
    ends: list[Point]
    """First and last."""
    tags: list[str]
    """One word each."""
    counts: dict[str, float]
    like: Point
    mixed: Side | list[int | str]


class Line(_LineFrom, _LineRequired, total=False):
    side: Side
    inner_part: LineInnerPart
`,
  );
});

test("two objects with one name, and names of nothing, are errors", () => {
  const part = (field: string) =>
    Type.Object({ [field]: Type.Object({ a: Type.Integer() }) }, { title: field });
  const other = Type.Object({ third: Type.Object({ b: Type.Integer() }) }, { title: "third" });
  const names = { "first.first": "Part", "second.second": "Part", "third.third": "Part" };
  assert.throws(
    () => made({ schemas: [part("first"), part("second"), other], names }),
    saying("Two objects with different fields are called Part."),
  );
  assert.throws(
    () => made({ schemas: [part("first")], names: { "first.frist": "Part" } }),
    saying("Not found in the schemas: first.frist."),
  );
});

test.run();
