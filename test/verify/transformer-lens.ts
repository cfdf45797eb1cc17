/**
 * Compares every hook of `tl.transformer_lens` with `boot_transformers` on the same weights: `npm run verify:transformer-lens`.
 * Models and TransformerLens's environment are prepared in the cache on first use (test/support/real).
 */
import { fileURLToPath } from "node:url";
import { clientSources } from "../clients/support/python.js";
import { runProgram } from "../support/real/cache.js";
import { environment } from "../support/real/environments.js";
import { gemma3Model, smolLm2Model } from "../support/real/models.js";
import { holds, printFigure } from "./figures.js";

const script = fileURLToPath(new URL("./transformer-lens.py", import.meta.url));
const bound = 1e-4;

async function main(): Promise<void> {
  const python = await environment("transformer-lens");
  const environmentVariables = { HF_HUB_OFFLINE: "1", PYTHONPATH: clientSources.join(":") };
  let failed = 0;
  for (const prepare of [smolLm2Model, gemma3Model]) {
    const { f32, folder } = await prepare();
    console.log(f32);
    const output = await runProgram(python, ["-B", script, f32, folder], environmentVariables);
    const { hooks = 0, ...worst } = JSON.parse(output.trim().split("\n").at(-1) as string);
    const figures = [
      { what: "hooks compared", value: hooks, bound: 200, atLeast: true },
      ...Object.entries(worst as Record<string, number>).map(([what, value]) => {
        return { what, value, bound: what === "differing tokens" ? 0 : bound };
      }),
    ];
    figures.forEach(printFigure);
    failed += figures.filter((figure) => !holds(figure)).length;
  }
  console.log(failed === 0 ? "\nAll hold." : `\n${failed} failed.`);
  if (failed > 0) process.exitCode = 1;
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
