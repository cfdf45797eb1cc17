import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Recipe } from "../../contracts/recipe.js";
import { UserError } from "../../contracts/user-error.js";
import type { Texts } from "../../recipe/texts.js";
import { exitCodes, UsageError } from "../exit-code.js";
import { labOption, origin } from "../service-address.js";
import type { RecipeOptions } from "./reproduce-recipe.js";
import type { StudyOptions } from "./reproduce-study.js";

interface ReproduceOptions extends RecipeOptions, StudyOptions {
  list?: boolean;
  texts?: Record<string, string>;
}

/** The recipes that come with tapline: the same place from src/ and from dist/. */
const ownRecipes = fileURLToPath(new URL("../../../recipes", import.meta.url));

/** `tapline reproduce`: a published claim, checked in one command. */
export function registerReproduce(program: Command): void {
  program
    .command("reproduce")
    .description("Check a published claim on a model: runs its recipe, and says what held.")
    .argument(
      "[recipe]",
      "a recipe of --list, a folder or file of yours with a recipe.json, or the address of a published study",
    )
    .option("--list", "show the recipes that come with tapline")
    .option("--model <model>", "another model than the recipe's own", filled)
    .addOption(labOption().argParser((text) => (text === "new" ? text : origin(text))))
    .option("--variant <name=model>", "another file for a form of the model that steps name", named)
    .option("--texts <name=file>", "texts of yours in place of a list of the recipe's", named)
    .addOption(
      new Option("--url <url>", "a running tapline serve for live steps (default: one for it)").argParser(
        origin,
      ),
    )
    .option(
      "--out <dir>",
      "folder for reports and the study package (default: tapline-reproduce-<recipe>)",
      filled,
    )
    .option("--yes", "of a published study: run what it asks for without showing it first")
    .option(
      "--draft",
      "of a published study: save the reproduction as a private draft of the studies service",
    )
    .option("--json", "print the outcome as JSON, for programs")
    .option("--quiet", "show no progress")
    .addHelpText(
      "after",
      `
Without --lab the Lab at the usual port runs it; where none runs, or with
"--lab new", one is started for it. Live steps, which ask a serving model, get
a server of their own with an empty library, or the one of --url. Ends with 1
where a figure lies outside its range.

The address of a published study repeats that: it shows the Lab requests that
the study tells and asks, runs them, compares every figure with the one that
was published, and makes the draft of the reproduction. A model that was a
file of its author's needs --model.

Examples:
  tapline reproduce --list
  tapline reproduce logit-lens-rise
  tapline reproduce sentiment-probe-real --model SmolLM2-135M-Instruct.Q8_0.gguf
  tapline reproduce unknown-entities-chat
  tapline reproduce ./my-recipe --lab new
  tapline reproduce \\
    https://studies.example.org/studies/12345678-1234-4234-8234-123456789abc`,
    )
    .action(reproduce);
}

async function reproduce(name: string | undefined, options: ReproduceOptions): Promise<void> {
  if (options.list) {
    if (name !== undefined) throw new UsageError("Name a recipe or ask for --list, not both.");
    return list(options.json === true);
  }
  if (name === undefined)
    throw new UsageError("Name a recipe; tapline reproduce --list shows what there is.");
  const { isStudyAddress } = await import("../../client/published-study.js");
  if (isStudyAddress(name)) {
    for (const flag of ["variant", "texts", "url"] as const) {
      if (options[flag] !== undefined) throw new UsageError(`--${flag} is of recipes; a study has none.`);
    }
    const { reproduceStudy } = await import("./reproduce-study.js");
    const { held } = await reproduceStudy(name, options);
    if (!held) process.exitCode = exitCodes.failed;
    return;
  }
  if (options.yes || options.draft)
    throw new UsageError("--yes and --draft are of published studies; a recipe is no address of one.");
  const found = await readRecipe(name, await textsOf(options.texts));
  const { reproduceRecipe } = await import("./reproduce-recipe.js");
  const { held } = await reproduceRecipe(found.name, found.recipe, options);
  if (!held) process.exitCode = exitCodes.failed;
}

async function list(json: boolean): Promise<void> {
  const [{ canvasOf, table }, { print, printJson }] = await Promise.all([
    import("../../terminal/index.js"),
    import("../output.js"),
  ]);
  const names = (await readdir(ownRecipes)).sort();
  const recipes = await Promise.all(names.map((name) => readRecipe(name)));
  if (json) return printJson(recipes.map(({ name, recipe }) => ({ name, ...recipe })));
  const rows = recipes.map(({ name, recipe: { title, models } }) => [
    name,
    basename(models[0]?.id ?? ""),
    title,
  ]);
  const columns = [
    { title: "recipe" },
    { title: "model", least: 8, dispensable: 1 },
    { title: "claim", least: 20 },
  ];
  return print(table(columns, rows, canvasOf(process.stdout)).join("\n"));
}

/** One of our own by its name, else a file, or a folder that holds one. @throws UsageError */
async function readRecipe(name: string, texts: Texts = {}): Promise<{ name: string; recipe: Recipe }> {
  const own = /^[a-z0-9][a-z0-9-]*$/.test(name) ? join(ownRecipes, name, "recipe.json") : undefined;
  const place = own !== undefined && (await isThere(own)) ? own : await ofFile(name);
  const [{ checkRecipe }, { readConfig }] = await Promise.all([
    import("../../recipe/check.js"),
    import("../input-files.js"),
  ]);
  try {
    return { name: basename(dirname(resolve(place))), recipe: checkRecipe(await readConfig(place), texts) };
  } catch (error) {
    const { InvalidInput } = await import("../../contracts/validate.js");
    if (error instanceof InvalidInput || (error instanceof UserError && !(error instanceof UsageError))) {
      throw new UsageError(`${place} is no recipe: ${error.message}`);
    }
    throw error;
  }
}

async function ofFile(name: string): Promise<string> {
  const found = await stat(name).catch(() => undefined);
  if (found === undefined) {
    throw new UsageError(`There is no recipe ${name}; tapline reproduce --list shows what there is.`);
  }
  return found.isDirectory() ? join(name, "recipe.json") : name;
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

/** Lists from files, one text a line, or JSON, JSON Lines, CSV. @throws UsageError */
async function textsOf(files: Record<string, string> = {}): Promise<Texts> {
  const { readPrompts } = await import("../input-files.js");
  const lists = await Promise.all(
    Object.entries(files).map(async ([name, file]) => [name, await readPrompts(file)] as const),
  );
  return Object.fromEntries(lists);
}

/** Collects `name=value` for commander. */
function named(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("It must be name=value.");
  return { ...before, [name]: value };
}

function filled(text: string): string {
  if (text === "") throw new InvalidArgumentError("It must not be empty.");
  return text;
}
