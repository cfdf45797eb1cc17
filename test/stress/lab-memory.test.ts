import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { openHarness } from "../lab/harness.js";
import { wide, writeWideModel } from "../support/wide-model.js";

const tokens = 1024;
const fileBytes = wide.blocks * tokens * wide.hidden * 4;

/** Before a worker sends its result it writes down the most memory that it has held. */
const noted = (file: string) =>
  `data:text/javascript,${encodeURIComponent(`
  import { writeFileSync } from "node:fs";
  const send = process.send?.bind(process);
  if (/worker.main/.test(process.argv[1] ?? "")) process.send = (message, ...rest) => {
    if (message.type === "result") writeFileSync(${JSON.stringify(file)}, String(process.resourceUsage().maxRSS));
    return send(message, ...rest);
  };`)}`;

test("writing 8 layers x 1024 tokens x 8192 takes less memory than the file holds", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tapline-wide-"));
  const harness = await openHarness();
  const file = join(folder, "peak");
  const options = process.env.NODE_OPTIONS;
  process.env.NODE_OPTIONS = `--import ${JSON.stringify(noted(file))}`;
  try {
    const model = join(folder, "wide.gguf");
    await writeWideModel(model);
    const prompt = "ab".repeat(tokens / 2);
    const peakOf = async (layers: number[]) => {
      const { id } = await harness.submit({
        ...{ operation: "inspect", model, prompt, layers, max_input_tokens: tokens },
      });
      const job = await harness.finished(id);
      assert.is(job.status, "completed", JSON.stringify(job));
      return { peak: 1024 * Number(readFileSync(file, "utf8")), id };
    };
    const one = await peakOf([7]);
    assert.ok(one.peak > 0);
    // Two chunks of 512 tokens would be the whole file: one is held at a time, and given back before the next.
    const all = await peakOf([0, 1, 2, 3, 4, 5, 6, 7]);
    const { headers } = await harness.request("HEAD", `/jobs/${all.id}/artifacts/activations.npz`);
    assert.ok(Number(headers["content-length"]) > fileBytes);
    const extra = all.peak - one.peak;
    console.log(
      `      ${Math.round(one.peak / 2 ** 20)} MiB for one layer, ${Math.round(extra / 2 ** 20)} MiB more for eight`,
    );
    assert.ok(extra < 0.75 * fileBytes, `${extra} bytes more for a file of ${fileBytes}`);
  } finally {
    if (options === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = options;
    await harness.close();
    await rm(folder, { recursive: true });
  }
});

test.run();
