import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { httpPage } from "../../scripts/docs/reference/http.js";
import { referencePages, root } from "../../scripts/docs/reference/main.js";
import { pythonPages } from "../../scripts/docs/reference/python.js";
import { fieldsOf, typeText } from "../../scripts/docs/reference/schemas.js";
import { pythonWith } from "../support/python.js";

const stale = "run npm run docs:reference";

test("the pages of the HTTP APIs and of models are up to date", () => {
  for (const [path, text] of Object.entries(referencePages())) {
    assert.is(readFileSync(join(root, path), "utf8"), text, `${path}: ${stale}`);
  }
});

const python = pythonWith();
(python === undefined ? test.skip : test)("the pages of the Python packages are up to date", () => {
  for (const [path, text] of Object.entries(pythonPages(root, python as string))) {
    assert.is(readFileSync(join(root, path), "utf8"), text, `${path}: ${stale}`);
  }
});

test("types have their bounds and default", () => {
  assert.is(
    typeText({ type: "integer", minimum: 1, maximum: 64, default: 8 }),
    "integer (1 to 64); default `8`",
  );
  assert.is(
    typeText({ type: "array", items: { type: "number" }, minItems: 1, maxItems: 9 }),
    "list of numbers (1 to 9 entries)",
  );
  assert.is(
    typeText({ anyOf: [{ $ref: "#/components/schemas/Some_Job" }, { type: "null" }] }),
    "[Some_Job](#some_job) or null",
  );
  assert.is(typeText({ enum: ["last", "all"] }), '`"last"`, `"all"`');
});

test("fields of untitled objects are listed with their path", () => {
  const layer = {
    type: "object",
    required: ["layer"],
    properties: { layer: { type: "integer" }, note: { type: "string", description: "Why." } },
  };
  const fields = fieldsOf({ properties: { layers: { type: "array", items: layer } }, required: ["layers"] });
  assert.equal(
    fields.map(({ name, required, description }) => [name, required, description]),
    [
      ["layers", true, ""],
      ["layers[].layer", true, ""],
      ["layers[].note", false, "Why."],
    ],
  );
});

test("a page lists each endpoint with parameters, bodies and statuses", () => {
  const page = httpPage({
    file: "a.md",
    title: "An API",
    about: "Here.",
    document: {
      info: { title: "A", version: "1", description: "What <b> does." },
      paths: {
        "/things/{id}": {
          parameters: [
            { name: "id", in: "path", required: true, schema: { type: "string" }, description: "A|B" },
          ],
          get: {
            summary: "One thing",
            responses: {
              200: {
                description: "It.",
                content: { "application/json": { schema: { $ref: "#/components/schemas/Thing" } } },
              },
            },
          },
        },
      },
      components: { schemas: { Thing: { type: "object", properties: { name: { type: "string" } } } } },
    },
  });
  assert.match(page, "[`GET /things/{id}`](#get-thingsid) | One thing |");
  assert.match(page, "What \\<b> does.");
  assert.match(page, "| `id` | path | string | A\\|B |");
  assert.match(page, "| 200 | It. | [Thing](#thing) |");
  assert.match(page, "### Thing\n\n| Field | Type |  | Description |");
});

test.run();
