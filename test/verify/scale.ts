/**
 * Extractions with the programs that read, feed and divide them: `npm run verify:scale`.
 *   --only PATTERN   folders of test/verify/scale whose name matches
 * Each folder has an environment in the cache (test/support/real). `network` is a Slurm cluster of three network namespaces.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { clientSources, runProgram } from "../clients/support/python.js";
import { startLocal } from "../clients/support/services.js";
import { program } from "../support/program.js";
import { type EnvironmentName, environment } from "../support/real/environments.js";

const runner = fileURLToPath(new URL("../clients/support/run_suite.py", import.meta.url));
const folders: Record<string, EnvironmentName> = { readers: "scale", ray: "scale", saelens: "saelens" };

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
  const home = await mkdtemp(join(tmpdir(), "tapline-scale-"));
  const services = await startLocal();
  let [passed, failed] = [0, 0];
  try {
    for (const [folder, name] of Object.entries(folders)) {
      if (!new RegExp(values.only).test(folder)) continue;
      const python = await environment(name);
      const path = fileURLToPath(new URL(`./scale/${folder}/`, import.meta.url));
      const ended = await runProgram(python, ["-B", runner, path], {
        environment: {
          PYTHONPATH: clientSources.join(":"),
          TAPLINE_HOME: home,
          TAPLINE_TEST_LAB: services.lab,
          TAPLINE_COMMAND: [process.execPath, ...program].join(" "),
        },
      });
      const lines = ended.stdout.split("\n").filter((line) => line.startsWith("{"));
      for (const line of lines) {
        const { name, outcome, detail } = JSON.parse(line) as Record<"name" | "outcome" | "detail", string>;
        console.log(`${folder}: ${name}: ${outcome}${detail === "" ? "" : `\n${detail}`}`);
        if (outcome === "passed") passed++;
        else failed++;
      }
      if (ended.code !== 0 || lines.length === 0) {
        console.log(`${folder}: Python ended with ${ended.code}\n${ended.stderr.slice(-4000)}`);
        failed++;
      }
    }
    if (new RegExp(values.only).test("network")) {
      const { network } = await import("./scale/network.js");
      const { outcome, detail } = await network();
      console.log(`network: three nodes, all disturbed: ${outcome}\n${detail}`);
      if (outcome === "passed") passed++;
      else failed++;
    }
  } finally {
    await services.stop();
    await rm(home, { recursive: true, force: true });
  }
  console.log(`\n${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
