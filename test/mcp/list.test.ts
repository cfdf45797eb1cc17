/** What tools/list costs a host's model, and that nothing it needs is missing. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { operations, submissions } from "../../src/contracts/index.js";
import { begin, call, closeAll, lab, research } from "./stand-in.js";

test.before.each(begin);
test.after(closeAll);

test("tools/list has at most 25,000 characters", async () => {
  for (const client of [await lab(), await lab("/tmp"), await research()]) {
    const { length } = JSON.stringify(await client.listTools());
    assert.ok(length <= 25_000, `${length}`);
  }
});

test("lab_submit lists every field, and lab_operation shows each operation's in full", async () => {
  const client = await lab();
  const { tools } = await client.listTools();
  const listed = tools.find(({ name }) => name === "lab_submit")!.inputSchema.properties!;
  for (const operation of operations) {
    const { properties } = submissions[operation];
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
