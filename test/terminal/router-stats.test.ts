import { test } from "uvu";
import * as assert from "uvu/assert";
import type { RouterStats } from "../../src/contracts/router.js";
import { width } from "../../src/findings/text.js";
import { routerStatsPicture } from "../../src/terminal/index.js";

const backend = {
  url: "http://127.0.0.1:8971",
  state: "healthy" as const,
  models: ["m"],
  slots: 4,
  active: 2,
  elsewhere: 1,
  requests: 12,
  failures: 0,
  time_to_first_token_ms: 41.5,
  next_check_seconds: null,
  last_error: null,
};
const stats: RouterStats = {
  uptime_seconds: 61,
  requests: { total: 15, active: 2, completed: 10, failed: 1, cancelled: 1, refused: 1, retried: 3 },
  latency_ms: {
    time_to_first_token: { p50: 40, p95: 80, p99: 90 },
    total: { p50: 400, p95: 800, p99: 900 },
  },
  backends: [
    backend,
    {
      ...backend,
      url: "http://10.0.0.2:11434",
      state: "aside",
      last_error: "nobody \u001b[31mlistens there",
    },
  ],
};

test("router backends fit the width; control characters are escaped", () => {
  for (const columns of [24, 60, 120]) {
    const lines = routerStatsPicture(stats, { width: columns, colors: "none" });
    for (const line of lines) assert.ok(width(line) <= columns, `${columns}: ${line}`);
    assert.not.match(lines.join("\n"), "\u001b");
  }
  const text = routerStatsPicture(stats, { width: 120, colors: "none" }).join("\n");
  assert.match(text, /http:\/\/127\.0\.0\.1:8971 +healthy +3 of 4 +12 +41\.5 ms/);
  assert.match(text, /15 total, 2 active, 1 failed, 1 cancelled, 1 rejected, 3 retried/);
  assert.match(text, /set aside: nobody/);
});

test.run();
