import { request } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startServer, untilIdle, user } from "../../inference/support/serving.js";
import { TestRandom } from "../../support/random.js";

const aborts = Number(process.env.TAPLINE_STRESS_ABORTS ?? 1000);

test(`${aborts} clients that go away at random moments leave no busy slot`, async () => {
  const server = await startServer({ parallel: 4, batch: 256 });
  const random = new TestRandom(11);
  const bodies = [
    () => ["/v1/completions", { prompt: "The", max_tokens: 400, ignore_eos: true, stream: true }] as const,
    () => ["/v1/completions", { prompt: "The", max_tokens: 400, ignore_eos: true, n: 2 }] as const,
    () =>
      ["/v1/chat/completions", { messages: user("What is the capital of France?"), stream: true }] as const,
    () =>
      [
        "/v1/completions",
        { prompt: "a b c d e f g h ".repeat(1 + random.below(20)), max_tokens: 30 },
      ] as const,
  ];
  const goAway = async () => {
    const [path, body] = (bodies[random.below(bodies.length)] as (typeof bodies)[number])();
    const outgoing = request(`${server.url}${path}`, { method: "POST", agent: false });
    outgoing.on("error", () => {});
    outgoing.on("response", (incoming) => incoming.on("error", () => {}).resume());
    const text = JSON.stringify(body);
    // Now and then in the middle of the body.
    if (random.below(10) === 0) {
      outgoing.setHeader("Content-Length", Buffer.byteLength(text));
      outgoing.write(text.slice(0, random.below(text.length)));
    } else {
      outgoing.end(text);
    }
    await new Promise((resolve) => setTimeout(resolve, random.below(40)));
    outgoing.destroy();
  };
  try {
    let left = aborts;
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (left-- > 0) await goAway();
      }),
    );
    await untilIdle(server.service);
    assert.equal(server.faults, []);
    const answer = await server.post("/v1/completions", { prompt: "The", max_tokens: 3 });
    assert.is(answer.status, 200);
  } finally {
    await server.close();
  }
});

test.run();
