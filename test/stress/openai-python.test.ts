import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startServer } from "../inference/support/serving.js";
import { toolTemplate } from "../inference/support/tool-template.js";
import { runProgram } from "../support/real/cache.js";
import { environment } from "../support/real/environments.js";

const script = fileURLToPath(new URL("./support/openai_client.py", import.meta.url));

/** The interpreter of the client's environment; undefined where no Python index answers. */
const python = await environment("openai").catch((error: Error) => {
  if (!/No matching distribution|connection|timed out|No Python/i.test(error.message)) throw error;
  console.error(`Skipped: ${error.message.split("\n")[0]}`);
  return undefined;
});

(python === undefined ? test.skip : test)("OpenAI's Python client, with its own defaults", async () => {
  const server = await startServer({ chatTemplate: toolTemplate });
  try {
    const saw = JSON.parse(await runProgram(python as string, [script, `${server.url}/v1`]));
    assert.equal(saw.models, ["tapline-demo"]);
    assert.match(saw.chat, "Paris");
    assert.is(saw.streamed, saw.chat);
    assert.equal([saw.usage, saw.streamed_usage], [true, true]);
    assert.equal([saw.tool, saw.arguments], [["heat"], [["on"]]]);
    assert.match(saw.response, "Paris");
    assert.is(saw.response_streamed, saw.response);
    assert.equal(saw.events, ["response.created", "response.completed"]);
    assert.is(saw.embedding, 128); // the demo model's width
    // The second time the cached beginning is not computed again: other batches, other roundings in f16.
    assert.ok(saw.embeddings_differ_by < 1e-3, String(saw.embeddings_differ_by));
    assert.is(saw.watched, true);
    assert.is(saw.refused, "temperature");
    assert.equal(server.faults, []);
  } finally {
    await server.close();
  }
});

test.run();
