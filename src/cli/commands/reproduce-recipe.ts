import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Transport } from "../../client/transport.js";
import type { Recipe, RecipeModel } from "../../contracts/recipe.js";
import { figureOf } from "../../findings/numbers.js";
import type { RunningServer } from "../../recipe/live-steps.js";
import { modelText, type Outcome, rangeText } from "../../recipe/outcome.js";
import { isLive, runRecipe } from "../../recipe/run.js";
import { canvasOf, ProgressLine, table } from "../../terminal/index.js";
import { UsageError } from "../exit-code.js";
import { openLab } from "../lab-session.js";
import { localPath } from "../operation-command.js";
import { print, printJson, shortPath } from "../output.js";
import { serveHere } from "../own-server.js";
import { makeFolder } from "../run-experiment.js";
import { makeTimeoutMs } from "../saved.js";
import { endBy, stoppable } from "../stop-signal.js";

export interface RecipeOptions {
  model?: string;
  lab?: string;
  url?: string;
  variant?: Record<string, string>;
  dictionary?: Record<string, string>;
  out?: string;
  json?: boolean;
  quiet?: boolean;
}

/** Runs a recipe, and shows expected and measured values. @returns whether every value was within its range */
export async function reproduceRecipe(
  name: string,
  recipe: Recipe,
  options: RecipeOptions,
): Promise<{ held: boolean }> {
  checkPlaces(recipe, options);
  const { lab, url, variant = {}, dictionary = {} } = options;
  const placed = (named: Record<string, string>) =>
    Object.fromEntries(Object.entries(named).map(([name, of]) => [name, localPath(of)]));
  const signal = stoppable();
  const line = new ProgressLine(options.quiet ? { write: () => {} } : process.stderr);
  const onStage = (stage: string, step = stage) => line.show(stage, step);
  // Checks that the folder is writable before computing anything.
  const folder = await makeFolder(resolve(options.out ?? `tapline-reproduce-${name}`));
  try {
    const { model, outcomes, files } = await runRecipe({
      ...{ name, recipe, signal, onStage, folder: folder.path },
      model: options.model && localPath(options.model),
      variants: placed(variant),
      dictionaries: placed(dictionary),
      async openLab() {
        const starting = () => onStage("starting a temporary Lab");
        const session = await openLab(lab, starting, { emptyLibrary: true });
        return { ...session, http: new Transport(session.url, makeTimeoutMs, { service: "lab" }) };
      },
      server:
        url === undefined
          ? undefined
          : { url, http: new Transport(url, makeTimeoutMs, { service: "serve" }) },
      startServer: (chosen) => startServer(chosen, signal, onStage),
    });
    line.clear();
    const held = outcomes.every((outcome) => outcome.held);
    if (options.json) await printJson(asJson(name, model.id, held, outcomes, files));
    else await print(picture(recipe, model, held, outcomes, files).join("\n"));
    return { held };
  } catch (error) {
    line.clear();
    await folder.undo();
    if (signal.aborted) endBy(signal.reason);
    throw error;
  }
}

/** @throws UsageError for --url without live steps or together with --model */
function checkPlaces({ steps }: Recipe, { url, model }: RecipeOptions): void {
  if (url !== undefined && !steps.some(isLive)) {
    throw new UsageError("--url is only for recipes with live steps; this one has none.");
  }
  if (url !== undefined && model !== undefined) {
    throw new UsageError("--url and --model cannot be combined: the server already has a model.");
  }
}

/** A temporary server with its own library on a free port. */
async function startServer(
  { id: model, revision }: RecipeModel,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<RunningServer> {
  onStage("starting a temporary server");
  const home = await mkdtemp(join(tmpdir(), "tapline-serve-"));
  const removeHome = () => rm(home, { recursive: true, force: true });
  try {
    const serving = await serveHere(model, onStage, { revision, home, signal });
    const close = () => serving.close().finally(removeHome);
    return { url: serving.url, http: new Transport(serving.url, makeTimeoutMs), close };
  } catch (error) {
    await removeHome();
    throw error;
  }
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
    { title: "value", least: 24 },
    { title: "expected" },
    { title: "measured", align: "right" as const },
    { title: "in range" },
  ];
  const kept = outcomes.filter((outcome) => outcome.held).length;
  return [
    recipe.title,
    recipe.paper.title,
    `Model: ${modelText(recipe, model)}${model.tested ? "" : " (untested with this recipe)"}`,
    "",
    ...table(columns, rows, canvasOf(process.stdout)),
    "",
    held ? `All ${kept} values are in range.` : `${kept} of ${outcomes.length} values are in range.`,
    `Saved ${shortPath(files[0] as string)} and ${files.length - 1} more files next to it`,
  ];
}
