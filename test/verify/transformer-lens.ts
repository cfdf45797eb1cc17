/**
 * Compares every hook of `tl.transformer_lens` with `boot_transformers` on the same weights, and the figures of
 * docs/notebooks/transformer-lens on both: `npm run verify:transformer-lens`.
 *   --small   one prompt, without edits, on SmolLM2 alone, and the notebooks: what .ci/run has time for
 * Models and TransformerLens's environment are prepared in the cache on first use (test/support/real).
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { clientSources } from "../clients/support/python.js";
import { runProgram } from "../support/real/cache.js";
import { environment } from "../support/real/environments.js";
import { gemma3Model, smolLm2Model } from "../support/real/models.js";
import { holds, printFigure } from "./figures.js";
import type { Figure } from "./numerics/check.js";

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

const environmentVariables = { HF_HUB_OFFLINE: "1", PYTHONPATH: clientSources.join(":") };

/** The JSON that a program writes as its last line. */
async function run(python: string, program: string, ...given: string[]) {
  const output = await runProgram(python, ["-B", program, ...given], environmentVariables);
  return JSON.parse(output.trim().split("\n").at(-1) as string);
}

async function hookFigures(python: string, f32: string, folder: string, small: boolean): Promise<Figure[]> {
  const { hooks = 0, ...worst } = await run(python, script, f32, folder, ...(small ? ["small"] : []));
  return [
    { what: "hooks compared", value: hooks, bound: 200, atLeast: true },
    ...Object.entries(worst as Record<string, number>).map(([what, value]) => {
      return { what, value, bound: what === "differing tokens" ? 0 : bound };
    }),
  ];
}

async function notebookFigures(python: string, f32: string, folder: string): Promise<Figure[]> {
  const paths = notebooks.map((name) => join(notebookFolder, name));
  const ours: unknown[] = await run(python, runner, "tapline", f32, ...paths);
  const theirs: unknown[] = await run(python, runner, "transformers", folder, ...paths);
  return notebooks.flatMap((name, at) => {
    const [own, other] = [numbersIn(ours[at]), numbersIn(theirs[at])];
    const value = Math.max(...other.map((number, i) => Math.abs(number - (own[i] ?? Number.NaN))));
    return [
      { what: `${name}: numbers`, value: own.length, bound: other.length, atLeast: true },
      { what: `${name}: largest difference`, value, bound: notebookBound },
    ];
  });
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { small: { type: "boolean", default: false } } });
  const python = await environment("transformer-lens");
  const figures: Figure[] = [];
  const add = (more: Figure[]) => {
    more.forEach(printFigure);
    figures.push(...more);
  };
  for (const prepare of values.small ? [smolLm2Model] : [smolLm2Model, gemma3Model]) {
    const { f32, folder } = await prepare();
    console.log(f32);
    add(await hookFigures(python, f32, folder, values.small));
  }
  const { f32, folder } = await smolLm2Model();
  add(await notebookFigures(python, f32, folder));
  const failed = figures.filter((figure) => !holds(figure)).length;
  console.log(`\n${figures.length - failed} figures hold, ${failed} failed.`);
  if (failed > 0) process.exitCode = 1;
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
