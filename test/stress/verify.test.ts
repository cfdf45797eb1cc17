/** `tapline verify` with a GPU, which is simulated. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Verification } from "../../src/verify/run.js";
import { tapline } from "../cli/run.js";
import { pretendGpu } from "../support/pretend-gpu/index.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-verify-gpu-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

test("a GPU computes the models whole and half", async () => {
  const out = join(folder, "gpu.json");
  const env = await pretendGpu("1x1024");
  const { code, stderr } = await tapline(["verify", "--quiet", "--out", out], { env });
  assert.is(code, 0, stderr);
  const { places, checks } = JSON.parse(readFileSync(out, "utf8")) as Verification;
  assert.equal(places, ["processor", "Pretend0", "half on Pretend0"]);
  for (const place of places.slice(1)) {
    const own = checks.filter((check) => check.place === place && check.check === "edits");
    assert.is(own.length, 10, place);
  }
});

test("a GPU that computes wrongly is named, and the processor passes", async () => {
  const out = join(folder, "wrong.json");
  const env = { ...(await pretendGpu("1x1024")), TAPLINE_PRETEND_GPU_WRONG: "products" };
  const { code, stdout, stderr } = await tapline(["verify", "--out", out], { env });
  assert.is(code, 1);
  assert.match(stdout, /checks FAIL, the first: /);
  assert.match(stderr, /✘ gpt2, block outputs \(Pretend0\): text 1, block \d: off by /);
  const { checks } = JSON.parse(readFileSync(out, "utf8")) as Verification;
  // The serving engine may let GPUs take large products even then.
  const processor = checks.filter(({ place, check }) => place === "processor" && check !== "live batch");
  assert.ok(processor.length > 40 && processor.every(({ ok }) => ok));
});

test.run();
