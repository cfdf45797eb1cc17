/**
 * Every architecture whole and in part on one to three pretend GPUs (test/support/pretend-gpu): the numbers have to be
 * the processor's. Models have five blocks where llama.cpp's test program can write five: `npm run verify:devices`.
 *   --only PATTERN   models whose name matches this regular expression
 *   --jobs N         models at the same time (default 2)
 */
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildTools } from "../../scripts/build/tools.js";
import { deepen, writeModels } from "./architectures/models.js";
import type { Outcome } from "./architectures/report.js";
import { runCheck } from "./architectures/run-check.js";

const checkDevices = fileURLToPath(new URL("./devices/check-devices.ts", import.meta.url));
const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    jobs: { type: "string", default: String(Math.min(2, availableParallelism())) },
  },
});
const started = Date.now();
const tools = await buildTools(["tapline-pretend-gpu", "test-llama-archs", "test-llama-archs-deep"]);
const folder = await mkdtemp(join(tmpdir(), "tapline-devices-"));
const outcomes: Outcome[] = [];
try {
  const all = await writeModels(tools["test-llama-archs"] ?? "", folder);
  const deep = await deepen(tools["test-llama-archs-deep"] ?? "", folder);
  const pattern = new RegExp(values.only);
  const chosen = all.filter((name) => pattern.test(name));
  const env = {
    ...process.env,
    TAPLINE_ADDON: tools["tapline-pretend-gpu"],
    TAPLINE_PRETEND_GPU: "3x1024",
  };
  const worker = async () => {
    for (let name = chosen.shift(); name !== undefined; name = chosen.shift()) {
      const outcome = await runCheck(name, checkDevices, [join(folder, `${name}.gguf`)], env);
      outcomes.push(outcome);
      const largest = Math.max(
        0,
        ...(outcome.report?.checks ?? []).map(({ measured }) => measured!.largest!),
      );
      const figure =
        outcome.verdict === "holds" ? `off by ${largest.toPrecision(2)} at most` : outcome.reason;
      console.log(`${outcome.verdict.padEnd(8)}${name.padEnd(28)}${figure}`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Number(values.jobs)) }, worker));
  const count = (verdict: Outcome["verdict"]) => outcomes.filter((each) => each.verdict === verdict).length;
  console.log(
    `\n${count("holds")} of ${outcomes.length} hold, ${count("refused")} refused, ${count("failed")} failed; ` +
      `${deep} of ${all.length} models have five blocks. ${Math.round((Date.now() - started) / 1000)} s.`,
  );
  if (outcomes.length === 0 || count("holds") === 0 || count("failed") > 0) process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
