import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { until } from "../support/until.js";
import { assertNothingLeft, demo } from "./demo-process.js";
import { canListProcesses, processesMarked } from "./processes.js";

const meddler = new URL("../lab/fixtures/meddle.mjs", import.meta.url).href;
const root = mkdtempSync(join(tmpdir(), "tapline-demo-stop-"));
test.after(() => rmSync(root, { recursive: true, force: true }));

const moments: Array<[signal: "SIGINT" | "SIGHUP", moment: string, process: RegExp]> = [
  ["SIGINT", "while the serving process starts", /inference.process.main/],
  ["SIGINT", "while the job's worker runs", /lab.worker.main/],
  ["SIGHUP", "while the job's worker runs", /lab.worker.main/],
];
for (const [signal, moment, process] of moments) {
  test(`${signal} ${moment} leaves nothing`, async () => {
    if (!canListProcesses) return;
    // The worker keeps its result back, so that the signal certainly comes in the middle.
    const run = demo(root, [], { NODE_OPTIONS: `--import=${meddler}`, TAPLINE_TEST_MEDDLE: "hang" });
    await until(() => processesMarked(run.mark).some(({ command }) => process.test(command)));
    if (signal === "SIGHUP") {
      // The terminal is gone, so writing to it fails.
      run.child.stdout?.destroy();
      run.child.stderr?.destroy();
    }
    run.child.kill(signal);
    const { signal: endedBy, stdout, stderr } = await run.ended;
    assert.is(endedBy, signal);
    assert.is(stdout, "");
    assert.is(stderr, "");
    assert.not(existsSync(join(run.folder, "tapline-demo")));
    await assertNothingLeft(run);
  });
}

test.run();
