import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Settings } from "../client/index.js";
import { writeWhole } from "../client/whole-file.js";
import type { Job, Operation, Result } from "../contracts/index.js";
import type { Recipe } from "../contracts/recipe.js";
import {
  chooseModel,
  figureText,
  type Outcome,
  outcomesOf,
  rangeText,
  reproductionPage,
  reproductionWords,
  requestsOf,
} from "../recipe/index.js";
import { readJob, renderReport } from "../report/index.js";
import { assemble, faultsOf, jobEvidence, methodText } from "../study/index.js";
import { canvasOf, ProgressLine, table } from "../terminal/index.js";
import { type LabSession, openLab } from "./lab-session.js";
import { print, printJson, shortPath } from "./output.js";
import { intervalMs, makeFolder } from "./run-experiment.js";
import { endBy, stoppable } from "./stop-signal.js";

interface RecipeOptions {
  model?: string;
  lab?: string;
  out?: string;
  json?: boolean;
  quiet?: boolean;
}

interface Step {
  id: string;
  what: string;
  job: Job & { result: Result };
}

/**
 * Runs a recipe's requests in a Lab, one after another, writes a page, a report of each step and a study package, and
 * shows what was expected and seen. @returns whether every figure held
 */
export async function runRecipe(
  name: string,
  recipe: Recipe,
  options: RecipeOptions,
): Promise<{ held: boolean }> {
  const signal = stoppable();
  const line = new ProgressLine(options.quiet ? { write: () => {} } : process.stderr);
  // A place that cannot be written to is told before anything is computed.
  const folder = await makeFolder(resolve(options.out ?? `tapline-reproduce-${name}`));
  let session: LabSession | undefined;
  try {
    session = await openLab(options.lab, () => line.show("starting a Lab for the occasion"));
    const model = chooseModel(recipe, localPath(options.model));
    const steps: Step[] = [];
    for (const [at, request] of requestsOf(recipe, model).entries()) {
      const begin = `${name} ${at + 1}/${recipe.steps.length}: ${request.what}`;
      steps.push({
        ...request,
        job: await runStep(session, model.id, request, signal, (stage) => line.show(`${begin} ${stage}`)),
      });
    }
    line.clear();
    const outcomes = outcomesOf(recipe, model, new Map(steps.map(({ id, job }) => [id, job.result])));
    const files = await write(folder.path, name, recipe, model.id, steps, outcomes);
    const held = outcomes.every((outcome) => outcome.held);
    if (options.json) await printJson(asJson(name, model.id, held, outcomes, files));
    else await print(picture(recipe, model, held, outcomes, files).join("\n"));
    return { held };
  } catch (error) {
    line.clear();
    await folder.undo();
    if (signal.aborted) {
      await session?.close();
      session = undefined;
      endBy(signal.reason);
    }
    throw error;
  } finally {
    await session?.close();
  }
}

/** The Lab has a folder of its own: paths are said from the root. */
function localPath(model: string | undefined): string | undefined {
  return model !== undefined && model !== "demo" && existsSync(model) ? resolve(model) : model;
}

async function runStep(
  { lab }: LabSession,
  model: string,
  { operation, settings }: ReturnType<typeof requestsOf>[number],
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<Job & { result: Result }> {
  signal.throwIfAborted();
  onStage("");
  const { id } = await lab.submit(operation, model, settings as unknown as Settings<Operation>);
  try {
    const onProgress = ({ progress }: Job) => {
      if (progress !== undefined) onStage(`${progress.stage} ${progress.done}/${progress.total}`);
    };
    return (await lab.wait(id, { intervalMs, signal, onProgress })) as Job & { result: Result };
  } catch (error) {
    if (signal.aborted) await lab.cancel(id).catch(() => {}); // a Lab that is gone has cancelled it
    throw error;
  }
}

async function write(
  folder: string,
  name: string,
  recipe: Recipe,
  model: string,
  steps: readonly Step[],
  outcomes: readonly Outcome[],
): Promise<string[]> {
  const files: string[] = [];
  const save = async (file: string, bytes: Buffer) => {
    files.push(join(folder, file));
    await writeWhole(join(folder, file), [bytes]);
  };
  const links = steps.map(({ id, what }) => ({ what, file: `${id}.html` }));
  await save("index.html", Buffer.from(reproductionPage(recipe, model, outcomes, links)));
  for (const { id, job } of steps) await save(`${id}.html`, Buffer.from(await renderReport(readJob(job))));
  const evidence = steps.map(({ job }) => jobEvidence(job));
  const assembled = assemble(reproductionWords(name, recipe, outcomes, methodText(evidence)), evidence);
  const faults = faultsOf(assembled);
  if (faults.length > 0) throw new Error(`The study package is not complete: ${faults.join(" ")}`);
  await save("study.json", assembled.bytes);
  return files;
}

function asJson(name: string, model: string, held: boolean, outcomes: readonly Outcome[], files: string[]) {
  return {
    recipe: name,
    model,
    held,
    figures: outcomes.map(({ expected: { id, what, control }, low, high, source, seen, held: kept }) => ({
      ...{ id, what, control: control === true, low, high, source, seen, held: kept },
    })),
    files,
  };
}

function picture(
  recipe: Recipe,
  model: { id: string; tested: boolean },
  held: boolean,
  outcomes: readonly Outcome[],
  files: readonly string[],
): string[] {
  const rows = outcomes.map((outcome) => [
    `${outcome.expected.control === true ? "control: " : ""}${outcome.expected.what}`,
    rangeText(outcome),
    figureText(outcome.seen),
    outcome.held ? "yes" : "NO",
  ]);
  const columns = [
    { title: "figure", least: 24 },
    { title: "expected" },
    { title: "seen", align: "right" as const },
    { title: "held" },
  ];
  const kept = outcomes.filter((outcome) => outcome.held).length;
  return [
    recipe.title,
    recipe.paper.title,
    `Model: ${model.id}${model.tested ? "" : " (the recipe was not tested on it)"}`,
    "",
    ...table(columns, rows, canvasOf(process.stdout)),
    "",
    held ? `All ${kept} figures held.` : `${kept} of ${outcomes.length} figures held.`,
    `Written ${shortPath(files[0] as string)}, and ${files.length - 1} more files beside it`,
  ];
}
