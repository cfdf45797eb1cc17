/**
 * Compares every hook of `tl.transformer_lens` with `boot_transformers` on the same weights, and the figures of
 * docs/notebooks/transformer-lens on both: `npm run verify:transformer-lens`.
 * Models and TransformerLens's environment are prepared in the cache on first use (test/support/real).
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { clientSources } from "../clients/support/python.js";
import { runProgram } from "../support/real/cache.js";
import { environment } from "../support/real/environments.js";
import { gemma3Model, smolLm2Model } from "../support/real/models.js";
import { holds, printFigure } from "./figures.js";

const script = fileURLToPath(new URL("./transformer-lens.py", import.meta.url));
const bound = 1e-4;

const runner = fileURLToPath(new URL("./transformer-lens-notebook.py", import.meta.url));
const notebookFolder = fileURLToPath(new URL("../../docs/notebooks/transformer-lens/", import.meta.url));
const notebooks = ["activation-patching.ipynb", "logit-lens.ipynb"];
/** Of logits, log-probabilities and shares. */
const notebookBound = 2e-3;

/** All numbers of a notebook's figures, in order. */
function numbersIn(figures: unknown): number[] {
  if (typeof figures === "number") return [figures];
  return typeof figures === "object" && figures !== null ? Object.values(figures).flatMap(numbersIn) : [];
}

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
  const { f32, folder } = await smolLm2Model();
  for (const name of notebooks) {
    const run = async (engine: string, model: string) => {
      const path = join(notebookFolder, name);
      const output = await runProgram(python, ["-B", runner, path, engine, model], environmentVariables);
      return numbersIn(JSON.parse(output.trim().split("\n").at(-1) as string));
    };
    const [ours, theirs] = [await run("tapline", f32), await run("transformers", folder)];
    const value = Math.max(...theirs.map((number, i) => Math.abs(number - (ours[i] ?? Number.NaN))));
    const compared = { what: `${name}: numbers`, value: ours.length, bound: theirs.length, atLeast: true };
    const figures = [compared, { what: `${name}: largest difference`, value, bound: notebookBound }];
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
