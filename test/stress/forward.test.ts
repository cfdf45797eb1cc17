/**
 * Forward calls beside chats: many mixed ones, a third of them cancelled. The chats' plain tokens stay as they are without them, and
 * nothing is left in shared memory or in the addon. TAPLINE_STRESS_FORWARD sets the number of calls.
 */
import { readdirSync, unlinkSync } from "node:fs";
import { request as open } from "node:http";
import { dirname } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startServer, type TestServer, untilIdle } from "../inference/support/serving.js";
import { alive } from "../support/alive.js";
import { TestRandom } from "../support/random.js";
import { until } from "../support/until.js";

const calls = Number(process.env.TAPLINE_STRESS_FORWARD ?? 2000);
const prompts = ["France", "Japan", "Egypt", "Spain"].map((country) => `The capital of ${country} is`);

const edits = [
  {
    kind: "steer",
    at: "block_out.3",
    strength: 4,
    strength_unit: "vector",
    vector: { values: Array(128).fill(0.1) },
  },
  { kind: "ablate", at: "ffn_out.2", sequences: [0] },
];
/** Bodies of all kinds; a long one takes several batches, so that cancelling meets it in between. */
const bodies: object[] = [
  { sequences: prompts, capture: ["block_out.*"], logits: "last" },
  { sequences: prompts.slice(0, 1), logits: "all" },
  { sequences: [[1, 2, 3]], capture: ["head_out.2"], positions: [-1] },
  { sequences: prompts, capture: ["block_out.7", "mid.7"], logits: "last", edits },
  { sequences: prompts.slice(0, 2), capture: ["attention.4"], logits: "last" },
  { sequences: prompts, capture: ["block_in.4"], stop_at_layer: 4 },
  { sequences: Array(64).fill(prompts[0]!.repeat(20)), logits: "last" },
  { sequences: prompts, capture: ["block_out.*"], logits: "all", precision: "f16" },
];

/** Sends a call and disconnects after some milliseconds, before or while it is computed. */
function leave(url: string, body: object, after: number): Promise<void> {
  return new Promise((resolve) => {
    const request = open(`${url}/lab/forward`, {
      method: "POST",
      agent: false,
      headers: { "Content-Type": "application/json" },
    });
    request.on("response", (response) => response.on("error", () => {}).resume());
    request.on("error", () => {}).on("close", resolve);
    request.end(JSON.stringify(body), () => setTimeout(() => request.destroy(), after));
  });
}

/** Greedy tokens of plain completions. */
async function answers(server: TestServer): Promise<string[]> {
  const found: string[] = [];
  for (const prompt of prompts) {
    const { status, body } = await server.post("/v1/completions", { prompt, max_tokens: 12, temperature: 0 });
    assert.is(status, 200, JSON.stringify(body));
    found.push(body.choices[0].text);
  }
  return found;
}

test(`${calls} mixed calls beside chats, a third cancelled, leave nothing behind`, async () => {
  const server = await startServer({ parallel: 4 });
  const random = new TestRandom(34);
  try {
    const expected = await answers(server);
    const first = await server.post("/lab/forward", { ...bodies[0], transfer: "file" });
    const folder = dirname(first.body.path);
    unlinkSync(first.body.path);
    // Every kind once, so that contexts which stay open are not counted.
    for (const body of bodies) assert.is((await server.post("/lab/forward", body)).status, 200);
    await untilIdle(server.service);
    const before = alive();
    const started = Date.now();
    let remaining = calls;
    const counted = { answered: 0, left: 0, busy: 0, chats: 0 };
    const problems: string[] = [];
    const caller = async () => {
      while (remaining-- > 0) {
        const body = {
          ...bodies[random.below(bodies.length)],
          transfer: random.below(2) === 0 ? "file" : "stream",
        };
        if (random.below(3) === 0) {
          counted.left++;
          await leave(server.url, body, random.below(12));
          continue;
        }
        const { status, body: answer } = await server.post("/lab/forward", body);
        if (status === 429) counted.busy++;
        else if (status !== 200) problems.push(`${status}: ${JSON.stringify(answer).slice(0, 200)}`);
        else {
          counted.answered++;
          if (body.transfer === "file") unlinkSync(answer.path);
        }
      }
    };
    const chatter = async () => {
      while (remaining > 0) {
        counted.chats++;
        const found = await answers(server);
        if (!isDeepStrictEqual(found, expected)) problems.push(`${JSON.stringify(found)}`);
      }
    };
    await Promise.all([...Array.from({ length: 8 }, caller), chatter(), chatter()]);
    await untilIdle(server.service);
    console.log(
      `      ${counted.answered} answered, ${counted.left} left, ${counted.busy} turned away (429), ${problems.length} problems; ` +
        `${counted.chats} rounds of ${prompts.length} chats; ${Math.round((Date.now() - started) / 1000)} s`,
    );
    assert.equal(problems.slice(0, 3), [], `${problems.length} problems`);
    assert.equal(server.faults, []);
    assert.ok(
      counted.chats > 2 && counted.answered > calls / 3 && counted.left > calls / 5,
      JSON.stringify(counted),
    );
    await until(() => isDeepStrictEqual(alive(), before), "the addon's counts are the former ones");
    // A client that left while its file was written cannot delete it: the server does.
    await until(() => readdirSync(folder).length === 0, "the shared memory is free");
    assert.equal(await answers(server), expected);
  } finally {
    await server.close();
  }
});

test.run();
