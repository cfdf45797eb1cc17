import { request } from "node:http";
import { startServer, type TestServer } from "../../test/inference/support/serving.js";
import { TestRandom } from "../../test/support/random.js";
import { percentile, type Row, row } from "../figures.js";

async function isBusy({ service }: TestServer): Promise<boolean> {
  const { busy_slots, deferred } = await service.engine.metrics();
  return busy_slots > 0 || deferred > 0;
}

/** Milliseconds from a client's going away to its slot being free: 99th percentile, goal of the contract. */
export async function benchCancel({ quick }: { quick: boolean }): Promise<Row[]> {
  const server = await startServer({ parallel: 2, batch: 256 });
  const random = new TestRandom(3);
  const late: number[] = [];
  try {
    for (let i = 0; i < (quick ? 20 : 300); i++) {
      const outgoing = request(`${server.url}/v1/completions`, { method: "POST", agent: false });
      outgoing.on("error", () => {});
      outgoing.on("response", (incoming) => incoming.on("error", () => {}).resume());
      // Half of them leave while a long prompt is read, half while an answer is written.
      const prompt = i % 2 === 0 ? "one two three ".repeat(60) + i : "The";
      outgoing.end(JSON.stringify({ prompt, max_tokens: 300, ignore_eos: true, stream: i % 3 > 0 }));
      await new Promise((resolve) => setTimeout(resolve, random.below(40)));
      outgoing.destroy();
      const left = performance.now();
      while (await isBusy(server)) await new Promise((resolve) => setTimeout(resolve, 2));
      late.push(performance.now() - left);
    }
  } finally {
    await server.close();
  }
  const worst = percentile(late, 0.99);
  return [
    row("demo model, a client goes away: its slot is free, median", late, "ms"),
    row("demo model, a client goes away: its slot is free, 99th percentile", [worst], "ms", { most: 300 }),
  ];
}
