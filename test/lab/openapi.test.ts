import { test } from "uvu";
import * as assert from "uvu/assert";
import { contracts, limits } from "../../src/contracts/index.js";
import { openApiDocument } from "../../src/lab/endpoints.js";
import { assertLinted } from "../support/lint-openapi.js";

// biome-ignore lint/suspicious/noExplicitAny: a JSON document
const document: any = JSON.parse(JSON.stringify(openApiDocument("http://127.0.0.1:8980")));

function* references(node: unknown): Generator<string> {
  if (typeof node !== "object" || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    if (key === "$ref") yield value as string;
    else yield* references(value);
  }
}

test("every reference resolves and every component is used", () => {
  const used = new Set(references(document));
  const names = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  assert.equal([...used].sort(), names.sort());
});

test("every endpoint of the contract is described with its statuses", () => {
  const statuses = (path: string, method: string) => Object.keys(document.paths[path][method].responses);
  assert.equal(statuses("/lab/v1/health", "get"), ["200", "403"]);
  assert.equal(statuses("/lab/v1/openapi.json", "get"), ["200", "403"]);
  assert.equal(statuses("/lab/v1/jobs", "post"), ["202", "400", "403", "409"]);
  assert.equal(statuses("/lab/v1/jobs", "get"), ["200", "403"]);
  assert.equal(statuses("/lab/v1/jobs/{id}", "get"), ["200", "403", "404"]);
  assert.equal(statuses("/lab/v1/jobs/{id}", "delete"), ["200", "403", "404", "409"]);
  assert.equal(statuses("/lab/v1/jobs/{id}/cancel", "post"), ["200", "400", "403", "404"]);
  assert.equal(statuses("/lab/v1/jobs/{id}/artifacts/{name}", "get"), [
    "200",
    "206",
    "304",
    "403",
    "404",
    "416",
  ]);
  for (const path of ["/lab/vectors", "/lab/probes"]) {
    assert.equal(statuses(path, "get"), ["200", "403"]);
    assert.equal(Object.keys(document.paths[path]), ["get"], "made where a model is resident");
    assert.equal(statuses(`${path}/{name}`, "get"), ["200", "400", "403", "404"]);
    assert.equal(statuses(`${path}/{name}`, "put"), ["200", "400", "403"]);
    assert.equal(statuses(`${path}/{name}`, "delete"), ["200", "403", "404"]);
  }
  assert.equal(statuses("/lab/activations", "post"), ["200", "400", "403", "408", "409"]);
});

test("a body is required for submitting a job, not for cancelling one", () => {
  const { paths } = document;
  const required = (path: string) => paths[path].post.requestBody.required;
  assert.equal([required("/lab/v1/jobs"), required("/lab/v1/jobs/{id}/cancel")], [true, false]);
  assert.is(required("/lab/activations"), true);
  const [, name] = paths["/lab/v1/jobs/{id}/artifacts/{name}"].parameters;
  const [range] = paths["/lab/v1/jobs/{id}/artifacts/{name}"].get.parameters;
  assert.equal([name.required, range.required], [true, false]);
});

test("the resident paths have the inference server's URL", () => {
  for (const path of ["/lab/capabilities", "/lab/activations"]) {
    assert.equal(document.paths[path].servers[0].url, "http://127.0.0.1:8971");
  }
  assert.equal(document.servers[0].url, "http://127.0.0.1:8980");
});

test("submissions are distinguished by operation, with limits and defaults", () => {
  const { Submission, InspectSubmission, SaeSubmission } = document.components.schemas;
  assert.equal(Object.keys(Submission.discriminator.mapping), Object.keys(contracts));
  assert.is(InspectSubmission.properties.layers.maxItems, limits.layers);
  assert.equal(InspectSubmission.properties.layers.default, [0]);
  assert.is(InspectSubmission.additionalProperties, false);
  assert.equal(InspectSubmission.required, ["operation", "model"]); // prompt or tokens
  assert.is(SaeSubmission.properties.features.default, 64);
});

test("a linter reports nothing", () => {
  assertLinted(document);
});

test.run();
