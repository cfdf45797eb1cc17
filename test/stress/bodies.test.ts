import { test } from "uvu";
import * as assert from "uvu/assert";
import { attempt } from "../inference/support/bodies.js";
import { startServer, untilIdle } from "../inference/support/serving.js";
import { fc } from "../support/fc.js";

const runs = Number(process.env.TAPLINE_TEST_BODIES ?? 5000);

test(`${runs} generated bodies never give a 5xx and leave no slot busy`, async () => {
  const server = await startServer();
  const statuses = new Map<number, number>();
  try {
    await fc.assert(
      fc.asyncProperty(attempt, async ({ path, body }) => {
        const { status, bytes } = await server.post(path, body);
        const text = bytes.toString();
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        assert.ok(status < 500, `${path} answered ${status}: ${text.slice(0, 500)}`);
        assert.not.match(text, '"type":"server_error"');
      }),
      { numRuns: runs },
    );
    await untilIdle(server.service);
    assert.equal(server.faults, []);
    assert.ok(
      (statuses.get(200) ?? 0) > runs / 10,
      `too few were accepted: ${JSON.stringify([...statuses])}`,
    );
  } finally {
    await server.close();
  }
});

test.run();
