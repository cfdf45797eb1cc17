import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { serve } from "../../../src/inference/process/supervisor.js";
import { user } from "../../inference/support/serving.js";
import { TestRandom } from "../../support/random.js";
import { send } from "../../support/request.js";
import { until } from "../../support/until.js";

const kills = Number(process.env.TAPLINE_STRESS_KILLS ?? 200);

async function healthy(url: string): Promise<boolean> {
  return send(`${url}/health`, "GET").then(
    ({ status }) => status === 200,
    () => false,
  );
}

/** One answer after the other; how each ended. */
async function load(url: string, ended: () => boolean, seen: Map<string, number>): Promise<void> {
  const count = (how: string) => seen.set(how, (seen.get(how) ?? 0) + 1);
  while (!ended()) {
    await new Promise<void>((resolve) => {
      const outgoing = request(`${url}/v1/chat/completions`, { method: "POST", agent: false }, (incoming) => {
        let text = "";
        incoming.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        incoming.on("error", () => {});
        incoming.on("close", () => {
          if (incoming.statusCode !== 200) count(String(incoming.statusCode));
          else count(text.endsWith("data: [DONE]\n\n") ? "whole" : "cut");
          resolve();
        });
      });
      outgoing.on("error", () => {
        count("no answer");
        resolve();
      });
      outgoing.end(JSON.stringify({ messages: user("Where is Paris?"), stream: true }));
    });
    await sleep(25);
  }
}

test(`${kills} kills of the serving process under load: it answers again, each time`, async () => {
  const random = new TestRandom(12);
  const serving = await serve({ model: "demo", host: "127.0.0.1", port: 0, parallel: 4 });
  let ended = false;
  const seen = new Map<string, number>();
  const clients = Array.from({ length: 4 }, () => load(serving.url, () => ended, seen));
  const back: number[] = [];
  try {
    for (let kill = 0; kill < kills; kill++) {
      // Every other kill comes wherever loading and first answers are, the others only after a whole answer.
      const whole = seen.get("whole") ?? 0;
      if (kill % 2 === 0) await until(() => (seen.get("whole") ?? 0) > whole, "an answer after a kill");
      await sleep(random.below(300));
      const { pid } = serving;
      assert.type(pid, "number");
      process.kill(pid as number, "SIGKILL");
      const killed = performance.now();
      await until(
        async () => serving.pid !== pid && (await healthy(serving.url)),
        `back from kill ${kill}`,
        5,
      );
      back.push(performance.now() - killed);
    }
  } finally {
    ended = true;
    await Promise.all(clients);
    await serving.close();
  }
  const [usual, longest] = [back.toSorted((a, b) => a - b)[back.length >> 1] as number, Math.max(...back)];
  console.log(
    `      back after ${usual.toFixed(0)} ms, at most ${longest.toFixed(0)} ms; ${JSON.stringify([...seen])}`,
  );
  const odd = [...seen.keys()].filter((how) => !["whole", "cut", "502", "503", "no answer"].includes(how));
  assert.equal(odd, []);
});

test.run();
