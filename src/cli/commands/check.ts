import type { Command } from "commander";
import type { Budget } from "../../contracts/budget.js";
import { budgetLimits } from "../../contracts/budget-limits.js";
import { exitCodes, UsageError } from "../exit-code.js";
import { collect, filled, integerBetween, numberBetween } from "../options.js";
import { endBy, stoppable } from "../stop-signal.js";

interface SharedOptions {
  model: string;
  json?: boolean;
  quiet?: boolean;
}

interface CheckCommandOptions extends SharedOptions {
  against?: string;
}

interface MakeOptions extends SharedOptions {
  out: string;
  accept: string[];
  probe: string[];
  vector: string[];
  feature: string[];
  profile: string[];
  prompts?: string;
  texts?: string;
  falseAlarms: number;
  seed: number;
}

/** `tapline check`: whether a model still reads inside what it should. */
export function registerCheck(program: Command): void {
  const check = program
    .command("check")
    .description("Compare a model's activations with a budget, and report where they first differ.");
  check
    .command("run", { isDefault: true })
    .description("Check a model against a budget. The exit code is 1 if a reading exceeds its threshold.")
    .argument("<budget>", "a file from tapline check make")
    .requiredOption("--model <model>", "the model to check, or the address of a running server", filled)
    .option("--against <model>", "compare with this model instead of the budget's reference", filled)
    .option("--json", "print the result as JSON")
    .option("--quiet", "hide progress")
    .addHelpText(
      "after",
      `
Runs the budget's prompts, without and with its profiles, and compares every
block's output, probe, vector, feature and next token at every token. Vectors,
probes and profiles that are saved here under the budget's names replace the
budget's copies, so changes to them are also found.

Examples:
  tapline check budget.json --model model-Q8_0.gguf
  tapline check budget.json --model finetuned.gguf --against base.gguf`,
    )
    .action(run);
  check
    .command("make")
    .description("Write a budget: measure a model, and set thresholds from repeats.")
    .argument("[budget]", "output file", "budget.json")
    .requiredOption("--model <model>", "the reference model, or the address of a running server", filled)
    .option("--accept <model>", "another form of the model that must pass; repeatable", collect, [])
    .option("--probe <name>", "a saved probe to compare; repeatable", collect, [])
    .option("--vector <name>", "a saved vector to compare; repeatable", collect, [])
    .option("--feature <dictionary:index>", "a feature of a saved dictionary; repeatable", collect, [])
    .option("--profile <name>", "a saved profile to run as well; repeatable", collect, [])
    .option("--texts <file>", "raw texts instead of the bundled ones")
    .option("--prompts <file>", "chat prompts instead of the bundled ones")
    .option(
      "--false-alarms <share>",
      "share of checks of an unchanged model that may fail",
      numberBetween(0.001, 0.5),
      0.05,
    )
    .option("--seed <number>", "of the repeats and random projections", integerBetween(0, 2 ** 31 - 1), 0)
    .option("--json", "print the budget as JSON")
    .option("--quiet", "hide progress")
    .addHelpText(
      "after",
      `
Measures the model once as the reference, then again in random batches until
the false-alarm rate can be estimated: the lower the rate, the more repeats.

Examples:
  tapline check make --model model-F16.gguf --accept model-Q8_0.gguf
  tapline check make --model demo --vector unknown --profile forgetful`,
    )
    .action(make);
}

async function run(file: string, options: CheckCommandOptions): Promise<void> {
  const [{ readConfig }, { validate }, { Budget: Schema }, { checkBudget }, { currentItems }, { checkText }] =
    await Promise.all([
      import("../input-files.js"),
      import("../../contracts/validate.js"),
      import("../../contracts/budget.js"),
      import("../../check/run.js"),
      import("../../check/items.js"),
      import("../../check/words.js"),
    ]);
  const budget = validate(Schema, await readConfig(file)) as Budget;
  const result = await working(options, async (tools) => {
    const current = await currentItems(tools.saved, budget);
    const { model, against } = options;
    return checkBudget({ budget, model, against, current }, tools);
  });
  if (result === undefined) return;
  const { print, printJson } = await import("../output.js");
  if (!result.passed) process.exitCode = exitCodes.failed;
  await (options.json ? printJson(result) : print(checkText(budget, result)));
}

async function make(out: string, options: MakeOptions): Promise<void> {
  const [items, { makeBudget }, { readPrompts }, { bundledData }] = await Promise.all([
    import("../../check/items.js"),
    import("../../check/make.js"),
    import("../input-files.js"),
    import("../../card/data/index.js"),
  ]);
  const { model, accept, falseAlarms, seed } = options;
  const given = async (path: string | undefined) => (path === undefined ? undefined : readPrompts(path));
  const [texts, chats] = [await given(options.texts), await given(options.prompts)];
  // Either file replaces all bundled prompts.
  const bundled = texts === undefined && chats === undefined;
  const prompts = [
    ...(texts ?? (bundled ? bundledData.texts.slice(0, bundledPrompts) : [])).map((text) => ({ text })),
    ...(chats ?? (bundled ? bundledData.prompts.slice(0, bundledPrompts) : [])).map((chat) => ({ chat })),
  ];
  if (prompts.length === 0 || prompts.length > budgetLimits.prompts) {
    throw new UsageError(`1 to ${budgetLimits.prompts} prompts are possible, got ${prompts.length}.`);
  }
  const features = options.feature.map(featureNamed);
  const budget = await working(options, async (tools) => {
    const { saved } = tools;
    const each = async <T>(names: readonly string[], of: (name: string) => Promise<T>) => {
      const found: T[] = [];
      for (const name of new Set(names)) found.push(await of(name));
      return found;
    };
    const asked = {
      probes: await each(options.probe, (name) => items.probeItem(saved, name)),
      vectors: (await each(options.vector, (name) => items.vectorItems(saved, name))).flat(),
      features: await Promise.all(features.map(([name, index]) => items.featureItem(saved, name, index))),
      profiles: await each(options.profile, (name) => items.profileItem(saved, name)),
    };
    return makeBudget({ model, accept, prompts, items: asked, falseAlarms, seed }, tools);
  });
  if (budget === undefined) return;
  const { print, printJson, writeOut } = await import("../output.js");
  await writeOut(out, Buffer.from(`${JSON.stringify(budget, null, 1)}\n`));
  await (options.json
    ? printJson(budget)
    : print(
        `${out}: ${budget.prompts.length} prompts, ${budget.readings.length} readings per token, thresholds from ${budget.repeats} repeats.`,
      ));
}

const bundledPrompts = 8;

function featureNamed(text: string): [dictionary: string, index: number] {
  const [, name, index] = /^(.+):(\d+)$/.exec(text) ?? [];
  if (name === undefined) throw new UsageError(`--feature must be dictionary:index, got ${text}.`);
  return [name, Number(index)];
}

type Tools = import("../../check/make.js").CheckOptions & {
  saved: import("../../check/items.js").SavedItems;
};

/** Runs with temporary servers and a progress line. @returns undefined if Ctrl-C stopped it */
async function working<T>(
  { quiet, json }: SharedOptions,
  work: (tools: Tools) => Promise<T>,
): Promise<T | undefined> {
  const [{ ServingModel }, { ProgressLine }, { openLibrary }, { taplineHome }, { serveHere }] =
    await Promise.all([
      import("../../client/index.js"),
      import("../../terminal/index.js"),
      import("../../library/library.js"),
      import("../../files/home.js"),
      import("../own-server.js"),
    ]);
  const progress = quiet === true || json === true ? undefined : new ProgressLine(process.stderr);
  const signal = stoppable();
  const open = (url: string) => new ServingModel(url, { timeoutMs: 600_000 });
  try {
    return await work({
      saved: openLibrary(taplineHome()),
      signal,
      onProgress: (what, share) => progress?.show(`${Math.round(100 * share)} %  ${what}`, what),
      async withModel(model, use) {
        if (/^https?:\/\//.test(model)) return use(open(model));
        const serving = await serveHere(model, (stage) => progress?.show(stage), { signal });
        try {
          return await use(open(serving.url));
        } finally {
          await serving.close();
        }
      },
    });
  } catch (error) {
    progress?.clear();
    if (!signal.aborted) throw error;
    endBy(signal.reason);
    return undefined;
  } finally {
    progress?.clear();
  }
}
