import v8 from "node:v8";
import vm from "node:vm";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startServer, user } from "../../inference/support/serving.js";

const cycles = Number(process.env.TAPLINE_STRESS_CYCLES ?? 100);
/** What is allocated once, whatever comes later. */
const settling = Math.min(20, Math.floor(cycles / 3));

v8.setFlagsFromString("--expose-gc");
const collect = vm.runInNewContext("gc") as () => void;

async function cycle(): Promise<void> {
  const server = await startServer({ parallel: 2 });
  const chat = await server.post("/v1/chat/completions", {
    messages: user("What is the capital of France?"),
    max_tokens: 10,
  });
  assert.is(chat.status, 200);
  const capture = await server.post("/lab/activations", {
    model: server.service.engine.info.id,
    prompt: "The capital of France is",
    layers: [2, 5],
  });
  assert.is(capture.status, 200, capture.bytes.toString());
  await server.close();
}

test(`${cycles} times loading, answering and unloading grow memory by less than 5 %`, async () => {
  let settled = 0;
  for (let i = 0; i < cycles; i++) {
    await cycle();
    collect();
    if (i + 1 === settling) settled = process.memoryUsage.rss();
  }
  const grown = process.memoryUsage.rss() / settled - 1;
  console.log(
    `      ${(settled / 2 ** 20).toFixed(0)} MiB after ${settling}, ${(100 * grown).toFixed(1)} % more after ${cycles}`,
  );
  assert.ok(grown < 0.05, `memory grew by ${(100 * grown).toFixed(1)} %`);
});

test.run();
