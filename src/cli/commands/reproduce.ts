import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Recipe } from "../../contracts/recipe.js";
import { UserError } from "../../contracts/user-error.js";
import type { Texts } from "../../recipe/texts.js";
import { exitCodes, UsageError } from "../exit-code.js";
import { filled } from "../options.js";
import { labOption, origin } from "../service-address.js";
import type { RecipeOptions } from "./reproduce-recipe.js";
import type { StudyOptions } from "./reproduce-study.js";

interface ReproduceOptions extends RecipeOptions, StudyOptions {
  list?: boolean;
  texts?: Record<string, string>;
}

/** The bundled recipes: the same relative path from src/ and dist/. */
const ownRecipes = fileURLToPath(new URL("../../../recipes", import.meta.url));

/** `tapline reproduce`: checks a published claim. */
export function registerReproduce(program: Command): void {
  program
    .command("reproduce")
    .description("Check a published claim: run its recipe on a model and compare the results.")
    .argument(
      "[recipe]",
      "a recipe from --list, your own recipe.json or its folder, a card.json, or the address of a published study",
    )
    .option("--list", "list the bundled recipes")
    .option("--model <model>", "use a different model from the recipe's default", filled)
    .addOption(labOption().argParser((text) => (text === "new" ? text : origin(text))))
    .option("--variant <name=model>", "use a different file for a variant of the model in the recipe", named)
    .option(
      "--dictionary <name=place>",
      "a dictionary or set of transcoders that the recipe names and does not train",
      named,
    )
    .option("--texts <name=file>", "replace one of the recipe's text lists with your own file", named)
    .addOption(
      new Option("--url <url>", "a running tapline serve for live steps (default: start one)").argParser(
        origin,
      ),
    )
    .option(
      "--out <dir>",
      "output folder for reports and the study package (default: tapline-reproduce-<recipe>)",
      filled,
    )
    .option("--yes", "published studies: run without asking for confirmation")
    .option("--draft", "published studies: save the reproduction as a private draft on the studies service")
    .option("--json", "print the outcome as JSON")
    .option("--quiet", "hide progress")
    .addHelpText(
      "after",
      `
Uses the Lab at the default port, or starts a temporary one if none is running
or with "--lab new". Live steps, which need a serving model, use a temporary
server with an empty library, or the one at --url. The exit code is 1 if a
value is outside its range.

Given a card (tapline card), measures it again on the server at --url (default:
port 8971) and compares every figure with the card's interval.

Given the address of a published study, lists the Lab requests it contains and
asks for confirmation, runs them, compares every value with the published one,
and drafts the reproduction. If the study used a local file of its author as
the model, --model is required.

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
    if (name !== undefined) throw new UsageError("A recipe and --list cannot be combined.");
    return list(options.json === true);
  }
  if (name === undefined) throw new UsageError("Choose a recipe; tapline reproduce --list shows them.");
  if (name.endsWith(".json")) {
    const { repeatedCard } = await import("./reproduce-card.js");
    if (await repeatedCard(name, options)) return;
  }
  const { isStudyAddress } = await import("../../client/published-study.js");
  if (isStudyAddress(name)) {
    for (const flag of ["variant", "dictionary", "texts", "url"] as const) {
      if (options[flag] !== undefined)
        throw new UsageError(`--${flag} is only for recipes, not for published studies.`);
    }
    const { reproduceStudy } = await import("./reproduce-study.js");
    const { held } = await reproduceStudy(name, options);
    if (!held) process.exitCode = exitCodes.failed;
    return;
  }
  if (options.yes || options.draft)
    throw new UsageError("--yes and --draft are only for published studies, not for recipes.");
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

/** A bundled recipe by its name, or a file, or a folder with a recipe.json. @throws UsageError */
export async function readRecipe(name: string, texts: Texts = {}): Promise<{ name: string; recipe: Recipe }> {
  const own = /^[a-z0-9][a-z0-9-]*$/.test(name) ? join(ownRecipes, name, "recipe.json") : undefined;
  const place = own !== undefined && (await isThere(own)) ? own : await ofFile(name);
  const [{ checkRecipe }, { readConfig }] = await Promise.all([
    import("../../recipe/check.js"),
    import("../input-files.js"),
  ]);
  try {
    const recipe = await withListFiles(await readConfig(place), dirname(place));
    return { name: basename(dirname(resolve(place))), recipe: checkRecipe(recipe, texts) };
  } catch (error) {
    const { InvalidInput } = await import("../../contracts/validate.js");
    if (error instanceof InvalidInput || (error instanceof UserError && !(error instanceof UsageError))) {
      throw new UsageError(`${place} is not a valid recipe: ${error.message}`);
    }
    throw error;
  }
}

/** Lists of texts that are the path of a file, relative to the recipe, as lists. @throws UsageError */
async function withListFiles(
  recipe: Record<string, unknown>,
  folder: string,
): Promise<Record<string, unknown>> {
  const { texts } = recipe;
  if (typeof texts !== "object" || texts === null) return recipe;
  const { readPrompts } = await import("../input-files.js");
  const lists = Object.entries(texts).map(async ([name, list]) => [
    name,
    typeof list === "string" ? await readPrompts(join(folder, list)) : list,
  ]);
  return { ...recipe, texts: Object.fromEntries(await Promise.all(lists)) };
}

async function ofFile(name: string): Promise<string> {
  const found = await stat(name).catch(() => undefined);
  if (found === undefined) {
    throw new UsageError(`There is no recipe ${name}; tapline reproduce --list shows all.`);
  }
  return found.isDirectory() ? join(name, "recipe.json") : name;
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

/** Text lists from files: one text per line, JSON, JSON Lines or CSV. @throws UsageError */
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
