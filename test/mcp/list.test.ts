/** What tools/list costs a host's model, and that nothing it needs is missing. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { contracts, operations } from "../../src/contracts/index.js";
import { brief } from "../../src/mcp/listed.js";
import { begin, call, closeAll, lab, research } from "./stand-in.js";

test.before.each(begin);
test.after(closeAll);

test("tools/list has at most 25,000 characters", async () => {
  for (const client of [await lab(), await lab("/tmp"), await research()]) {
    const { length } = JSON.stringify(await client.listTools());
    assert.ok(length <= 25_000, `${length}`);
  }
});

test("brief retains bounds and names, and drops fields that only a check needs", () => {
  const far = { type: "number", minimum: -1e6, maximum: 1e6 };
  const given = {
    type: "object",
    additionalProperties: false,
    properties: {
      maximum: { ...far, description: "Both names are kept, and its sense; what follows is left out of it." },
      share: { type: "number", minimum: 0, maximum: 999_999 },
      names: { type: "array", minItems: 1, maxItems: 8, items: { type: "string", pattern: "^a" } },
      pair: { type: "array", additionalItems: false, items: [far, far], minItems: 2 },
      method: { anyOf: [{ type: "string", const: "mean" }, { const: "last" }] },
      vector: {
        anyOf: [
          { type: "string", const: "own" },
          { type: "string", minLength: 1 },
        ],
      },
    },
  };
  assert.equal(brief(given), {
    type: "object",
    additionalProperties: false,
    properties: {
      maximum: { type: "number", description: "Both names are kept, and its sense …" },
      share: { type: "number", minimum: 0, maximum: 999_999 },
      names: { type: "array", maxItems: 8, items: { type: "string" } },
      pair: { type: "array", items: [{ type: "number" }, { type: "number" }] },
      method: { enum: ["mean", "last"] },
      vector: { anyOf: [{ type: "string", const: "own" }, { type: "string" }] },
    },
  });
});

test("lab_submit lists every field, and lab_operation shows each operation's in full", async () => {
  const client = await lab();
  const { tools } = await client.listTools();
  const listed = tools.find(({ name }) => name === "lab_submit")!.inputSchema.properties!;
  for (const operation of operations) {
    const { properties } = contracts[operation].submission;
    for (const field of Object.keys(properties)) assert.ok(field in listed, `${operation}: ${field}`);
    const { structuredContent } = await call(client, "lab_operation", { operation });
    assert.equal(Object.keys(structuredContent.schema.properties), Object.keys(properties));
    const result = await call(client, "lab_operation", { operation, part: "result" });
    assert.ok("provenance" in result.structuredContent.schema.properties, operation);
  }
});

test("a call is checked against the whole schema, not the listed one", async () => {
  const refused = await call(await lab(), "serving_generate", { prompt: "a", max_tokens: 1e9 });
  assert.ok(refused.isError);
  assert.match(refused.content[0]!.text, /max_tokens: at most/);
});

test.run();
