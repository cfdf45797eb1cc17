import { join } from "node:path";
import { runJob } from "../client/run-job.js";
import { writeWhole } from "../client/whole-file.js";
import type { FeaturesResult, Job, Result } from "../contracts/index.js";
import type { Recipe, RecipeModel } from "../contracts/recipe.js";
import { version } from "../contracts/version.js";
import { readJob, renderReport } from "../report/index.js";
import { assemble, faultsOf, jobEvidence, liveEvidence, methodText } from "../study/index.js";
import { contrasted } from "./contrast.js";
import { contrastPage } from "./contrast-page.js";
import type { Step } from "./finished-step.js";
import { openRecipeLab, type RecipeLab, type RunningLab } from "./lab-steps.js";
import { exchangesOf } from "./live-answer.js";
import { livePage } from "./live-page.js";
import { type LiveSession, openLive, type RunningServer, runLiveStep } from "./live-steps.js";
import { type MadeVariants, makeVariants } from "./made-variants.js";
import {
  type ContrastTask,
  chooseModel,
  type LabTask,
  type LiveTask,
  modelText,
  type Outcome,
  outcomesOf,
  pickedBy,
  tasksOf,
  withPicked,
} from "./outcome.js";
import { reproductionPage } from "./page.js";
import { quantsStep } from "./quants-step.js";
import { reproductionWords } from "./words.js";

/** Options of a recipe's run. */
export interface RecipeRun {
  name: string;
  recipe: Recipe;
  /** A model that replaces the recipe's default, and files for its variants. */
  model: string | undefined;
  variants: Record<string, string>;
  /** Places of the dictionaries that the recipe does not train, by name. */
  dictionaries: Record<string, string>;
  /** Called if the recipe has requests to a Lab. */
  openLab(): Promise<RunningLab>;
  /** A running server, whose model the recipe uses. */
  server: RunningServer | undefined;
  /** Called for live steps without a running server. */
  startServer(model: RecipeModel): Promise<RunningServer>;
  /** An existing folder for the pages and the study package. */
  folder: string;
  signal: AbortSignal;
  /** Called with the progress and, during a step, the step alone. */
  onStage: (stage: string, step?: string) => void;
}

/** The outcome of a run. */
export interface RecipeOutcome {
  model: RecipeModel;
  outcomes: Outcome[];
  /** The main page is first. */
  files: string[];
}

/** Where steps run; each is opened only if the recipe has steps for it. */
interface Places {
  lab?: RecipeLab;
  live?: LiveSession;
  variants?: MadeVariants;
}

/**
 * Runs a recipe's requests in a Lab and on a serving model, one after another, and writes a page, a report per step and a
 * study package.
 */
export async function runRecipe(run: RecipeRun): Promise<RecipeOutcome> {
  const { name, recipe, folder, signal } = run;
  const places: Places = {};
  try {
    const model = await openPlaces(places, run);
    places.variants = await makeVariants(recipe, model, signal, run.onStage);
    const steps: Step[] = [];
    const results = new Map<string, unknown>();
    for (const [at, task] of tasksOf(recipe, places.variants.model).entries()) {
      const begin = `${name} ${at + 1}/${recipe.steps.length}: ${task.what}`;
      const onStage = (stage: string) => run.onStage(`${begin} ${stage}`.trimEnd(), begin);
      signal.throwIfAborted();
      const step =
        "quants" in task
          ? await quantsStep((places.lab as RecipeLab).lab, task, folder, signal, onStage)
          : await runStep(places, task, results, signal, onStage);
      steps.push(step);
      results.set(step.id, step.result);
    }
    const outcomes = outcomesOf(recipe, model, results);
    const files = await write(folder, name, recipe, modelText(recipe, model), steps, outcomes);
    return { model, outcomes, files };
  } finally {
    await places.live?.close();
    await places.lab?.close();
    await places.variants?.remove();
  }
}

/** Whether a step needs a serving model. */
export function isLive({ live }: Recipe["steps"][number]): boolean {
  return live !== undefined;
}

/** @returns the model to use: that of the running server, if there is one */
async function openPlaces(places: Places, run: RecipeRun): Promise<RecipeModel> {
  const { recipe, server, dictionaries, signal, onStage } = run;
  if (server !== undefined) places.live = await openLive(server);
  const served = places.live?.model;
  const model =
    served === undefined
      ? chooseModel(recipe, run.model, run.variants)
      : chooseModel(recipe, served === "tapline-demo" ? "demo" : served);
  if (!recipe.steps.every(isLive))
    places.lab = await openRecipeLab(run.openLab, recipe, { model, dictionaries, signal, onStage });
  if (served === undefined && recipe.steps.some(isLive))
    places.live = await openLive(await run.startServer(model));
  return model;
}

async function runStep(
  { lab, live }: Places,
  task: LabTask | LiveTask | ContrastTask,
  results: ReadonlyMap<string, unknown>,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<Step> {
  if ("live" in task) return liveStep(live as LiveSession, task, signal, onStage);
  if ("contrast" in task) return contrastStep(task, results);
  const settings = withPicked(task.settings, results);
  return labStep(lab as RecipeLab, { ...task, settings }, signal, onStage);
}

/** Evaluates an earlier step's reading, without running anything. */
function contrastStep(
  { id, what, contrast, top }: ContrastTask,
  results: ReadonlyMap<string, unknown>,
): Step {
  const { feature: named, ...asked } = contrast;
  const feature = typeof named === "object" ? pickedBy(named.picked, results) : named;
  const read = results.get(contrast.step) as FeaturesResult;
  const found = contrasted({ ...asked, feature }, read, top);
  const work = { id, what, method: `${what}: feature ${found.feature}.`, request: contrast, exchanges: [] };
  return {
    ...{ id, what, result: found },
    page: async () => contrastPage(what, contrast, found),
    evidence: liveEvidence(
      { ...work, result: found },
      read.provenance.requested_model,
      `tapline ${version}, ${read.provenance.versions.backend}`,
    ),
  };
}

async function labStep(
  { lab, keep }: RecipeLab,
  task: LabTask,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<Step> {
  onStage("");
  const job = (await runJob(lab, task, signal, onStage)) as Job & { result: Result };
  await keep(job, task, signal);
  const page = () => renderReport(readJob(job));
  return { id: task.id, what: task.what, result: job.result, page, evidence: jobEvidence(job) };
}

async function liveStep(
  session: LiveSession,
  { id, what, live }: LiveTask,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<Step> {
  const { model, runtime } = session;
  const result = await runLiveStep(session, live, signal, onStage);
  const exchanges =
    "post" in live ? exchangesOf(live, (result as { responses: readonly unknown[] }).responses) : [];
  const method = "post" in live ? `${exchanges.length} answers of ${live.post}: ${what}.` : `${what}.`;
  return {
    id,
    what,
    result,
    page: async () => livePage(what, model, live, result),
    evidence: liveEvidence({ id, what, method, request: live, exchanges, result }, model, runtime),
  };
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
  for (const { id, page } of steps) await save(`${id}.html`, Buffer.from(await page()));
  const evidence = steps.map((step) => step.evidence);
  const assembled = assemble(reproductionWords(name, recipe, outcomes, methodText(evidence)), evidence);
  const faults = faultsOf(assembled);
  if (faults.length > 0) throw new Error(`The study package is incomplete: ${faults.join(" ")}`);
  await save("study.json", assembled.bytes);
  return files;
}
