import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeWhole } from "../client/whole-file.js";
import type { FeaturesResult, Job, Result } from "../contracts/index.js";
import type { Recipe, RecipeModel } from "../contracts/recipe.js";
import { version } from "../contracts/version.js";
import { figureOf } from "../findings/numbers.js";
import {
  type ContrastTask,
  chooseModel,
  contrasted,
  contrastPage,
  exchangesOf,
  type LabTask,
  type LiveTask,
  livePage,
  modelText,
  type Outcome,
  outcomesOf,
  pickedBy,
  rangeText,
  reproductionPage,
  reproductionWords,
  tasksOf,
  withPicked,
} from "./index.js";
import { readJob, renderReport } from "../report/index.js";
import { assemble, type Evidence, faultsOf, jobEvidence, liveEvidence, methodText } from "../study/index.js";
import { canvasOf, ProgressLine, table } from "../terminal/index.js";
import { UsageError } from "../cli/exit-code.js";
import { openRecipeLab, type RecipeLab } from "./lab-steps.js";
import { joinServer, type LiveSession, startServer } from "./live-session.js";
import { type MadeVariants, makeVariants } from "./made-variants.js";
import { print, printJson, shortPath } from "../cli/output.js";
import { makeFolder, runJob } from "../cli/run-experiment.js";
import { runLiveStep } from "./live-steps.js";
import { endBy, stoppable } from "../cli/stop-signal.js";

interface RecipeOptions {
  model?: string;
  lab?: string;
  url?: string;
  variant?: Record<string, string>;
  out?: string;
  json?: boolean;
  quiet?: boolean;
}

/** A step that was run. */
interface Step {
  id: string;
  what: string;
  result: unknown;
  /** Its own page. */
  page(): Promise<string>;
  evidence: Evidence;
}

/** Where steps are run; each is opened where the recipe has steps for it. */
interface Places {
  lab: RecipeLab | undefined;
  live: LiveSession | undefined;
  variants: MadeVariants | undefined;
}

/**
 * Runs a recipe's requests in a Lab and on a serving model, one after another, writes a page, a report of each step and a
 * study package, and shows what was expected and seen. @returns whether every figure held
 */
export async function runRecipe(
  name: string,
  recipe: Recipe,
  options: RecipeOptions,
): Promise<{ held: boolean }> {
  checkPlaces(recipe, options);
  const signal = stoppable();
  const line = new ProgressLine(options.quiet ? { write: () => {} } : process.stderr);
  // A place that cannot be written to is told before anything is computed.
  const folder = await makeFolder(resolve(options.out ?? `tapline-reproduce-${name}`));
  const places: Places = { lab: undefined, live: undefined, variants: undefined };
  const close = async () => {
    await places.live?.close();
    await places.lab?.close();
    await places.variants?.remove();
  };
  try {
    const model = await openPlaces(places, recipe, options, signal, (stage) => line.show(stage));
    places.variants = await makeVariants(recipe, model, signal, (stage) => line.show(stage));
    const steps: Step[] = [];
    const results = new Map<string, unknown>();
    for (const [at, task] of tasksOf(recipe, places.variants.model).entries()) {
      const begin = `${name} ${at + 1}/${recipe.steps.length}: ${task.what}`;
      const onStage = (stage: string) => line.show(`${begin} ${stage}`);
      signal.throwIfAborted();
      const step = await runStep(places, task, results, signal, onStage);
      steps.push(step);
      results.set(step.id, step.result);
    }
    line.clear();
    const outcomes = outcomesOf(recipe, model, results);
    const files = await write(folder.path, name, recipe, modelText(recipe, model), steps, outcomes);
    const held = outcomes.every((outcome) => outcome.held);
    if (options.json) await printJson(asJson(name, model.id, held, outcomes, files));
    else await print(picture(recipe, model, held, outcomes, files).join("\n"));
    return { held };
  } catch (error) {
    line.clear();
    await folder.undo();
    if (signal.aborted) {
      await close();
      places.lab = places.live = places.variants = undefined;
      endBy(signal.reason);
    }
    throw error;
  } finally {
    await close();
  }
}

function isLive({ live }: Recipe["steps"][number]): boolean {
  return live !== undefined;
}

/** @throws UsageError where an address is named that the recipe has nothing for, or that says another model */
function checkPlaces({ steps }: Recipe, { url, model }: RecipeOptions): void {
  if (url !== undefined && !steps.some(isLive)) {
    throw new UsageError("The recipe has no live steps; --url is for those.");
  }
  if (url !== undefined && model !== undefined) {
    throw new UsageError("The server of --url has its model already; leave --model out.");
  }
}

/** @returns the model that the recipe runs on: the one that is served, where a server was named */
async function openPlaces(
  places: Places,
  recipe: Recipe,
  { lab, url, model: named, variant = {} }: RecipeOptions,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<RecipeModel> {
  if (!recipe.steps.every(isLive)) {
    places.lab = await openRecipeLab(lab, recipe, () => onStage("starting a Lab for the occasion"));
  }
  if (url !== undefined) {
    places.live = await joinServer(url);
    const { model } = places.live;
    return chooseModel(recipe, model === "tapline-demo" ? "demo" : model);
  }
  const forms = Object.entries(variant).map(([name, form]) => [name, localPath(form) as string]);
  const chosen = chooseModel(recipe, localPath(named), Object.fromEntries(forms));
  if (recipe.steps.some(isLive)) {
    const { id: model, revision } = chosen;
    places.live = await startServer({ model, revision, signal, onStage });
  }
  return chosen;
}

/** The Lab has a folder of its own: paths are said from the root. */
function localPath(model: string | undefined): string | undefined {
  return model !== undefined && model !== "demo" && existsSync(model) ? resolve(model) : model;
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

/** Of what an earlier step read: nothing is run. */
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
  { session: { lab }, keep }: RecipeLab,
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
  model: RecipeModel,
  held: boolean,
  outcomes: readonly Outcome[],
  files: readonly string[],
): string[] {
  const rows = outcomes.map((outcome) => [
    `${outcome.expected.control === true ? "control: " : ""}${outcome.expected.what}`,
    rangeText(outcome),
    figureOf(outcome.seen),
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
    `Model: ${modelText(recipe, model)}${model.tested ? "" : " (the recipe was not tested on it)"}`,
    "",
    ...table(columns, rows, canvasOf(process.stdout)),
    "",
    held ? `All ${kept} figures held.` : `${kept} of ${outcomes.length} figures held.`,
    `Written ${shortPath(files[0] as string)}, and ${files.length - 1} more files beside it`,
  ];
}
