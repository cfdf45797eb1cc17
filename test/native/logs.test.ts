import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const estimates = fileURLToPath(new URL("./fixtures/estimates.ts", import.meta.url));

test("concurrent memory estimates leave llama.cpp's log as it was", () => {
  // Two that exchange the log at the same time would leave two callbacks that call each other forever: hence the limit.
  const { stdout, stderr, status, signal } = spawnSync(process.execPath, ["--import", "tsx", estimates], {
    encoding: "utf8",
    timeout: 300_000,
    killSignal: "SIGKILL",
  });
  assert.equal([status, signal], [0, null], stderr);
  const { before, found, after } = JSON.parse(stdout) as { before: string; found: string[]; after: string };
  assert.match(before, /unknown model architecture: 'nobodys'/);
  assert.is(after, before);
  assert.is(found.length, 2, found.join("\n"));
  assert.ok(found.includes(before));
});

test.run();
