import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job } from "../../src/contracts/index.js";
import { type Serving, type ServingEvent, serve } from "../../src/inference/process/supervisor.js";
import { nameOf } from "../../src/models/rpc.js";
import { demoInspect, openHarness } from "../lab/harness.js";
import { send } from "../support/request.js";
import { until } from "../support/until.js";
import { assertEqualNumbers } from "./support/equal-numbers.js";
import { type RunningRpcServer, startRpcServer } from "./support/rpc-server.js";

let servers: RunningRpcServer[];
test.before.each(async () => {
  servers = [await startRpcServer(), await startRpcServer()];
});
test.after.each(async () => {
  for (const server of servers) await server.kill();
});

const rpc = () => servers.map(({ host, port }) => ({ host, port }));

test("a Lab with RPC servers gives the same results; a dead one fails only the job", async () => {
  const local = await openHarness();
  const remote = await openHarness({ load: { rpc: rpc() } });
  try {
    const compare = {
      ...demoInspect,
      operation: "compare",
      layers: [4],
      strengths: [0, 1, 2],
      max_tokens: 8,
    };
    for (const body of [{ ...demoInspect, layers: [0, 7] }, compare]) {
      const [a, b] = await Promise.all(
        [local, remote].map(async (lab) => lab.finished((await lab.submit(body)).id)),
      );
      assertEqualNumbers(b as Job, a as Job);
      const { device } = (b as Job).result!.provenance;
      for (const server of servers) assert.match(device, `rpc-server ${nameOf(server)}`);
    }

    const long = {
      ...compare,
      prompts: Array.from({ length: 32 }, (_, index) => `${demoInspect.prompt} ${index}`),
      strengths: [-4, -3, -2, -1, 0, 2, 3, 4, 5],
      max_tokens: 128,
    };
    const { id } = await remote.submit(long);
    await remote.until(id, ({ progress }) => progress.stage === "sweep" && progress.done > 0);
    await servers[1]!.kill();
    const failed = await remote.finished(id);
    assert.is(failed.status, "failed");
    assert.is(failed.error, `The rpc-server ${nameOf(servers[1]!)} was lost while the job was running.`);

    const refused = await remote.finished((await remote.submit(demoInspect)).id);
    assert.is(refused.error, `The rpc-server ${nameOf(servers[1]!)} is not running (connection refused).`);
    await servers[1]!.start();
    const again = await remote.finished((await remote.submit(demoInspect)).id);
    assert.is(again.status, "completed", again.error);
  } finally {
    await local.close();
    await remote.close();
  }
});

test("a server with RPC servers answers, captures, and recovers from a dead one", async () => {
  const events: ServingEvent[] = [];
  let serving: Serving | undefined;
  try {
    serving = await serve({
      model: "demo",
      host: "127.0.0.1",
      port: 0,
      parallel: 2,
      rpc: rpc(),
      onEvent: (event) => events.push(event),
    });
    const { url, info } = serving;
    const ask = () =>
      send(`${url}/v1/completions`, "POST", { prompt: demoInspect.prompt, max_tokens: 4, temperature: 0 });
    const answer = await ask();
    assert.is(answer.status, 200);
    assert.match(answer.body.choices[0].text, "Paris");
    const capture = await send(`${url}/lab/activations`, "POST", {
      model: info.id,
      prompt: demoInspect.prompt,
      layers: [0, 7],
    });
    assert.is(capture.status, 200, JSON.stringify(capture.body));
    assert.match(capture.body.next_tokens[0].token, "Paris");

    await servers[0]!.kill();
    // The serving process notices when it wants something of the server.
    await ask().catch(() => undefined);
    const told = (text: string) =>
      events.some((event) => "sentence" in event && event.sentence.includes(text));
    await until(
      () =>
        told("An rpc-server was lost, along with its part of the model.") &&
        told("is not running (connection refused)."),
    );
    const away = await send(`${url}/health`, "GET");
    assert.is(away.status, 503);
    await servers[0]!.start();
    await until(() => events.filter(({ event }) => event === "ready").length === 2);
    assert.is((await ask()).body.choices[0].text, answer.body.choices[0].text);
  } finally {
    await serving?.close();
  }
});

test("reports a server that is unreachable at the start, without waiting", async () => {
  await servers[0]!.kill();
  try {
    const serving = await serve({ model: "demo", host: "127.0.0.1", port: 0, rpc: rpc() });
    await serving.close();
    assert.unreachable();
  } catch (error) {
    assert.match((error as Error).message, /^The rpc-server .* is not running \(connection refused\)\.$/);
  }
});

test.run();
