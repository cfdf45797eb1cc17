import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { openHarness } from "../lab/harness.js";
import { wide, writeWideModel } from "../support/wide-model.js";

const tokens = 1024;
const fileBytes = wide.blocks * tokens * wide.hidden * 4;

/** The most memory that the running worker has held, in bytes; 0 where there is none. */
function workerPeak(): number {
  const table = execFileSync("ps", ["-axo", "pid=,ppid=,args="], { encoding: "utf8" });
  for (const line of table.split("\n")) {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    if (parent !== process.pid || !/lab.worker.main/.test(line)) continue;
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return 1024 * Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0);
    } catch {
      return 0; // it ended meanwhile
    }
  }
  return 0;
}

test("writing 8 layers x 1024 tokens x 8192 takes less memory than the file holds", async () => {
  if (process.platform !== "linux") return; // measured through /proc
  const folder = await mkdtemp(join(tmpdir(), "tapline-wide-"));
  const harness = await openHarness();
  try {
    const model = join(folder, "wide.gguf");
    await writeWideModel(model);
    const prompt = "ab".repeat(tokens / 2);
    const peakOf = async (layers: number[]) => {
      const { id } = await harness.submit({
        ...{ operation: "inspect", model, prompt, layers, max_input_tokens: tokens },
      });
      let peak = 0;
      for (let running = true; running; ) {
        peak = Math.max(peak, workerPeak());
        running = (await harness.request("GET", `/jobs/${id}`)).body.ended === null;
        await sleep(5);
      }
      const job = await harness.finished(id);
      assert.is(job.status, "completed", JSON.stringify(job));
      return { peak, id };
    };
    const one = await peakOf([7]);
    const all = await peakOf([0, 1, 2, 3, 4, 5, 6, 7]);
    const { headers } = await harness.request("HEAD", `/jobs/${all.id}/artifacts/activations.npz`);
    assert.ok(Number(headers["content-length"]) > fileBytes);
    const extra = all.peak - one.peak;
    console.log(
      `      ${Math.round(one.peak / 2 ** 20)} MiB for one layer, ${Math.round(extra / 2 ** 20)} MiB more for eight`,
    );
    assert.ok(one.peak > 0);
    // Two chunks of 512 tokens would be the whole file: one is held at a time.
    assert.ok(extra < 0.75 * fileBytes, `${extra} bytes more for a file of ${fileBytes}`);
  } finally {
    await harness.close();
    await rm(folder, { recursive: true });
  }
});

test.run();
