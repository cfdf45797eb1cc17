/** The server's count of a request's times, by a clock that the test moves: every expectation is written by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ServingStats } from "../../src/inference/stats.js";

function stopped() {
  const clock = { ms: 1000 };
  return { clock, stats: new ServingStats(() => clock.ms) };
}

function near(seen: number, expected: number): void {
  assert.ok(Math.abs(seen - expected) < 1e-12, `${seen} is not ${expected}`);
}

test("answers streamed side by side have the latencies of one each", () => {
  const { clock, stats } = stopped();
  const request = stats.begin();
  for (const [ms, tokens] of [
    [1040, [1]],
    [1042, [0, 1]],
    [1050, [1, 0]],
    [1062, [1, 2]],
  ] as const) {
    clock.ms = ms;
    request.sent(tokens);
  }
  // The first answer waited 10 and 12 ms, the second 20 ms for two tokens at once.
  assert.is(stats.interToken.count, 4);
  near(stats.interToken.sum, 0.042);
  assert.is(stats.timeToFirstToken.count, 1);
  near(stats.timeToFirstToken.sum, 0.04);
});

test("a first part of several tokens took no time between them", () => {
  const { clock, stats } = stopped();
  const request = stats.begin();
  clock.ms = 1030;
  request.sent([2]);
  assert.is(stats.interToken.count, 1);
  assert.is(stats.interToken.sum, 0);
  near(stats.timeToFirstToken.sum, 0.03);
});

test("complete answers count each by its own time, and one first token", () => {
  const { clock, stats } = stopped();
  const request = stats.begin();
  clock.ms = 1200;
  request.measured([
    { promptMs: 20, generatedMs: 150, tokens: 4 },
    { promptMs: 25, generatedMs: 90, tokens: 1 },
    { promptMs: 30, generatedMs: 120, tokens: 3 },
  ]);
  request.ended("completed");
  // 3 gaps of 50 ms and 2 of 60 ms; a single token has no gap. 200 ms less the longest generation is the first token's.
  assert.is(stats.interToken.count, 5);
  near(stats.interToken.sum, 0.27);
  assert.is(stats.timeToFirstToken.count, 1);
  near(stats.timeToFirstToken.sum, 0.05);
  near(stats.total.sum, 0.2);
});

test("a first token is never sooner than its prompt, and an ended request ends once", () => {
  const { clock, stats } = stopped();
  const request = stats.begin();
  clock.ms = 1100;
  request.measured([{ promptMs: 35, generatedMs: 90, tokens: 10 }]);
  near(stats.timeToFirstToken.sum, 0.035);
  request.ended("failed");
  request.ended("completed");
  const { total, active, completed, failed } = stats.requests;
  assert.equal([total, active, completed, failed], [1, 0, 0, 1]);
  near(stats.uptimeSeconds, 0.1);
});

test.run();
