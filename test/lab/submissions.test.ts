import { test } from "uvu";
import * as assert from "uvu/assert";
import { anyBody, nearlyValid, validSubmission } from "../contracts/arbitrary.js";
import { fc } from "../support/fc.js";
import { demoInspect, type Harness, openHarness } from "./harness.js";

let harness: Harness;
test.before(async () => {
  // One job hangs for ever, so that nothing that is accepted gets to run.
  harness = await openHarness({ queueCapacity: 64, meddle: "hang" });
  const { id } = await harness.submit(demoInspect);
  await harness.until(id, ({ progress }) => progress.stage === "artifact");
});
test.after(() => harness.close());

test("property: any body ends in 202 or in 400 with a sentence", async () => {
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        {
          weight: 4,
          arbitrary: fc.oneof(nearlyValid, anyBody, validSubmission).map((body) => JSON.stringify(body)),
        },
        { weight: 1, arbitrary: fc.oneof(fc.string(), fc.uint8Array({ maxLength: 200 })) },
      ),
      async (body) => {
        const answer = await harness.request("POST", "/jobs", body);
        seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
        if (answer.status === 202) {
          assert.is(
            (await harness.request("POST", `/jobs/${answer.body.id}/cancel`, {})).body.status,
            "cancelled",
          );
          assert.is((await harness.request("DELETE", `/jobs/${answer.body.id}`)).status, 200);
          return;
        }
        assert.is(answer.status, 400);
        assert.match(answer.body.error, /^[^\n]+\.$/);
        assert.equal(Object.keys(answer.body), ["error"]);
      },
    ),
    { numRuns: Number(process.env.TAPLINE_TEST_RUNS ?? 800) },
  );
  assert.ok((seen.get(202) ?? 0) > 50 && (seen.get(400) ?? 0) > 50, JSON.stringify([...seen]));
});

test("deep nesting and many fields are refused, not followed", async () => {
  for (const body of [
    "[".repeat(200_000),
    `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
    `{"operation":"inspect","model":"m","prompt":${"[".repeat(50_000)}${"]".repeat(50_000)}}`,
    `{"operation":"inspect","model":"m","prompt":"p","x":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}`,
    JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`f${index}`, 1]))),
    JSON.stringify({
      ...demoInspect,
      ...Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`f${i}`, 1])),
    }),
  ]) {
    const { status, body: answer } = await harness.request("POST", "/jobs", body);
    assert.is(status, 400);
    assert.ok(answer.error.length < 1000, `${answer.error.length} characters of error`);
  }
});

test.run();
