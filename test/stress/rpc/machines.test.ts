import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job } from "../../../src/contracts/index.js";
import { nameOf } from "../../../src/models/rpc.js";
import { demoInspect, openHarness } from "../../lab/harness.js";
import { assertEqualNumbers } from "../../rpc/support/equal-numbers.js";
import { addMachine, type Machine } from "../../rpc/support/machines.js";
import { type RunningRpcServer, startRpcServer } from "../../rpc/support/rpc-server.js";

const machines: Machine[] = [];
let obstacle = "";
try {
  for (const number of [0, 1]) machines.push(addMachine(number));
} catch (error) {
  for (const machine of machines.splice(0)) machine.remove();
  obstacle = (error as Error).message.trim().split("\n").at(-1) as string;
}

const servers: RunningRpcServer[] = [];
test.after(async () => {
  for (const server of servers) await server.kill();
  for (const machine of machines) machine.remove();
});

const compare = { ...demoInspect, operation: "compare", layers: [4], strengths: [0, 1, 2], max_tokens: 8 };
/** Takes long enough to be met in its middle. */
const long = {
  ...compare,
  prompts: Array.from({ length: 32 }, (_, index) => `${demoInspect.prompt} ${index}`),
  strengths: [-4, -3, -2, -1, 0, 2, 3, 4, 5],
  max_tokens: 128,
};

function acrossMachines(name: string, run: () => Promise<void>): void {
  if (obstacle === "") return void test(name, run);
  console.log(`SKIPPED: ${name}: no network namespaces here (${obstacle}).`);
  test.skip(name, run);
}

acrossMachines(
  "blocks on two machines: equal numbers; a machine that dies or is cut off is reported",
  async () => {
    for (const there of machines) servers.push(await startRpcServer({ there }));
    const [, second] = servers as [RunningRpcServer, RunningRpcServer];
    const local = await openHarness();
    const remote = await openHarness({ load: { rpc: servers.map(({ host, port }) => ({ host, port })) } });
    try {
      for (const body of [{ ...demoInspect, layers: [0, 7] }, compare]) {
        const [a, b] = await Promise.all(
          [local, remote].map(async (lab) => lab.finished((await lab.submit(body)).id)),
        );
        assertEqualNumbers(b as Job, a as Job);
      }
      const inItsMiddle = async () => {
        const { id } = await remote.submit(long);
        await remote.until(id, ({ progress }) => progress.stage === "sweep" && progress.done > 0);
        return id;
      };

      const killed = await inItsMiddle();
      await second.kill();
      assert.is(
        (await remote.finished(killed)).error,
        `The rpc-server ${nameOf(second)} was lost while the job was running.`,
      );
      await second.start();

      // Nothing reports an unplugged cable: the job waits, and can be cancelled.
      const waiting = await inItsMiddle();
      machines[1]!.cut();
      const seen = async () => JSON.stringify((await remote.request("GET", `/jobs/${waiting}`)).body);
      for (let before = ""; before !== (await seen()); await sleep(2000)) before = await seen();
      assert.match(await seen(), '"status":"running"');
      await remote.request("POST", `/jobs/${waiting}/cancel`);
      assert.is((await remote.finished(waiting)).status, "cancelled");
      const unreachable = await remote.finished((await remote.submit(demoInspect)).id);
      assert.match(unreachable.error as string, `The rpc-server ${nameOf(second)} `);

      machines[1]!.reconnect();
      await second.kill();
      await second.start();
      assert.is((await remote.finished((await remote.submit(demoInspect)).id)).status, "completed");
    } finally {
      await local.close();
      await remote.close();
    }
  },
);

test.run();
