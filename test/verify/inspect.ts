/**
 * Runs an Inspect evaluation against the embedded model and its profiles, with the server killed in the middle:
 * `npm run verify:inspect`. Its environment is prepared in the cache on first use (test/support/real).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { clientSources } from "../clients/support/python.js";
import { runProgram } from "../support/real/cache.js";
import { environment } from "../support/real/environments.js";
import { holds, printFigure } from "./figures.js";

const script = fileURLToPath(new URL("./inspect-eval.py", import.meta.url));
const command = fileURLToPath(new URL("../../bin/tapline.js", import.meta.url));

async function main(): Promise<void> {
  const python = await environment("inspect");
  const home = await mkdtemp(join(tmpdir(), "tapline-inspect-"));
  try {
    const output = await runProgram(python, ["-B", script], {
      PYTHONPATH: clientSources.join(":"),
      TAPLINE_COMMAND: `${process.execPath} ${command}`,
      TAPLINE_HOME: home,
    });
    const found = JSON.parse(output.trim().split("\n").at(-1) as string) as Record<string, number>;
    const figure = (what: string, name: string, bound: number, atLeast = false) => ({
      ...{ what, value: found[name] ?? Number.NaN, bound, atLeast },
    });
    const figures = [
      figure("the server restarted", "restarted", 1, true),
      figure("samples of 200 with an answer", "samples", 200, true),
      figure("samples with a probe's mean score in the data frame", "scored", 200, true),
      figure("accuracy of the model", "accuracy", 0.9, true),
      figure("accuracy of the steered model", "strong", 0.1),
      figure("answers that strength zero changes", "zero", 0),
      figure("answers that differ after the restart", "repeated", 0),
      figure("mean score, from the answer's tokens", "mean", 1e-12),
      figure("captured activations, from a second call", "capture", 0),
    ];
    figures.forEach(printFigure);
    const failed = figures.filter((one) => !holds(one)).length;
    console.log(failed === 0 ? "\nAll hold." : `\n${failed} failed.`);
    if (failed > 0) process.exitCode = 1;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
