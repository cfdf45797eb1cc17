import { type Command, InvalidArgumentError } from "commander";
import { quantisations } from "../../contracts/names.js";
import { licenses } from "../../contracts/studies/licenses.js";
import type { Quantisation } from "../../native/machine.js";
import type { Rounding } from "../../quants/rounding.js";
import type { QuantsRun } from "../../quants/run.js";
import { UsageError } from "../exit-code.js";
import { anyLayers, choice, filled, integerBetween } from "../options.js";

interface QuantsOptions {
  make?: Quantisation[];
  round?: (number | "nf4")[];
  roundGroup?: number;
  keepForms?: boolean;
  texts?: string;
  maxInputTokens: number;
  layers?: number[];
  dictionary?: string;
  control?: string;
  prompts?: string;
  circuits?: number;
  examples?: string;
  probe?: string;
  vector?: string;
  rounds: number;
  promptTokens: number;
  generatedTokens: number;
  seed: number;
  license: string;
  out?: string;
  json?: boolean;
  quiet?: boolean;
}

const texts = { least: 2, most: 512 };
const prompts = { most: 64 };
/** Of a held-out text, as a prompt: long enough for a context, short enough for many graphs. */
const promptWords = 8;

function formList(text: string): Quantisation[] {
  const forms = text.split(",") as Quantisation[];
  if (forms.every((form) => quantisations.includes(form)) && new Set(forms).size === forms.length)
    return forms;
  throw new InvalidArgumentError(`It must be some of ${quantisations.join(",")}.`);
}

function roundingList(text: string): (number | "nf4")[] {
  const forms = text.split(",").map((each) => (each === "nf4" ? each : Number(each)));
  const possible = forms.every(
    (each) => each === "nf4" || (Number.isInteger(each) && each >= 2 && each <= 8),
  );
  if (possible && new Set(forms).size === forms.length) return forms;
  throw new InvalidArgumentError("It must be whole numbers from 2 to 8 or nf4, each once.");
}

/** `tapline quants`: what each form of a model changes, in its answers and inside. */
export function registerQuants(program: Command): void {
  program
    .command("quants")
    .description("Measure what quantization does to a model: answers, activations, features, speed.")
    .argument("<model>", "the reference: a model with 16 or more bits per weight")
    .argument("[forms...]", "its quantized forms: files or hub models")
    .option("--make <list>", `make forms of the reference: ${quantisations.join(",")}`, formList)
    .option("--round <list>", "make forms rounded to nearest, by bits per weight: 8,6,4,nf4", roundingList)
    .option(
      "--round-group <number>",
      "weights with a common scale (default: a row)",
      integerBetween(8, 65536),
    )
    .option("--keep-forms", "keep the forms that were made")
    .option("--texts <file>", "held-out texts instead of the bundled ones")
    .option("--max-input-tokens <number>", "longest text in tokens", integerBetween(2, 1024), 256)
    .option("--layers <list>", "layers for the drift, such as 0,3,7 or 0-7 (default: all)", anyLayers)
    .option("--dictionary <name>", "saved dictionary: which features survive", filled)
    .option("--control <name>", "second dictionary to compare with, such as a random one", filled)
    .option("--circuits <number>", "attribution graphs to compare", integerBetween(1, prompts.most))
    .option("--prompts <file>", "prompts of these graphs instead of the held-out texts' beginnings")
    .option("--examples <file>", "labelled texts for --probe or --vector, as for tapline drift")
    .option("--probe <name>", "saved probe: its AUROC in each form", filled)
    .option("--vector <name>", "saved vector: its separation in each form", filled)
    .option("--rounds <number>", "rounds of the speed measurement", integerBetween(2, 100), 5)
    .option("--prompt-tokens <number>", "prompt length for speed", integerBetween(1, 4096), 128)
    .option("--generated-tokens <number>", "generated tokens for speed", integerBetween(1, 1024), 32)
    .option("--seed <number>", "of bootstrap intervals", integerBetween(0, 2 ** 31 - 1), 0)
    .addOption(choice("--license <license>", "license of the study package", licenses).default(licenses[0]))
    .option("--out <dir>", "output folder (default: tapline-quants-<model>)", filled)
    .option("--json", "print the result as JSON")
    .option("--quiet", "hide progress")
    .addHelpText(
      "after",
      `
Per form: size, bits per weight, KL divergence and agreement with the reference
on held-out texts, perplexity, drift of the block outputs by layer, surviving
features of a saved dictionary, transfer of a probe or a vector, overlap of
attribution graphs, speed and memory. Writes quants.html, quants.md (a table
for a model card), quants.json and study.json.
A stopped run continues with the same command.

Examples:
  tapline quants ./model-F16.gguf --make Q8_0,Q4_K_M
  tapline quants ./model-F16.gguf ./model-Q4_K_M.gguf ./imatrix-Q4_K_M.gguf
  tapline quants ./model-F16.gguf --make Q4_K_M --dictionary res-12 --out quants
  tapline quants ./model-F16.gguf --make Q4_K_M --round 8,6,4,nf4 --circuits 8`,
    )
    .action(quants);
}

async function quants(model: string, forms: string[], options: QuantsOptions): Promise<void> {
  const { out = `tapline-quants-${nameOf(model)}`, examples, probe, vector } = options;
  const make = options.make ?? [];
  const round: Rounding[] = (options.round ?? []).map((each) =>
    each === "nf4" ? { format: each } : { bits: each, group: options.roundGroup ?? null },
  );
  if (forms.length + make.length + round.length === 0) {
    throw new UsageError("Name at least one form of the model, or make one with --make or --round.");
  }
  if (options.roundGroup !== undefined && !round.some((each) => "bits" in each)) {
    throw new UsageError("--round-group requires --round with a number of bits.");
  }
  if (options.control !== undefined && options.dictionary === undefined) {
    throw new UsageError("--control requires --dictionary.");
  }
  if (options.control !== undefined && options.control === options.dictionary) {
    throw new UsageError("--control must differ from --dictionary.");
  }
  if ((probe ?? vector) !== undefined && examples === undefined) {
    throw new UsageError(`--${probe === undefined ? "vector" : "probe"} requires --examples with labels.`);
  }
  const [
    { runQuants },
    { writeQuants },
    { quantsPicture },
    { openLab },
    { ProgressLine },
    { print, printJson, shortPath, unwritable },
    { endBy, stoppable },
    { readExamples, readPrompts },
    { bundledData },
    { localPath },
    { lock },
    { makeFolder },
    { join },
  ] = await Promise.all([
    import("../../quants/run.js"),
    import("../../quants/write.js"),
    import("../../quants/tables.js"),
    import("../lab-session.js"),
    import("../../terminal/index.js"),
    import("../output.js"),
    import("../stop-signal.js"),
    import("../input-files.js"),
    import("../../card/data/index.js"),
    import("../operation-command.js"),
    import("../../lab/lock.js"),
    import("../run-experiment.js"),
    import("node:path"),
  ]);
  const held = options.texts === undefined ? bundledData.texts : await readPrompts(options.texts);
  if (held.length < texts.least || held.length > texts.most) {
    throw new UsageError(`--texts: ${texts.least} to ${texts.most} are possible, got ${held.length}.`);
  }
  const asked = await promptsOf(options, held, readPrompts);
  const work = join(out, "work");
  await makeFolder(work);
  const locked = await lock(
    join(work, "lock"),
    (holder) =>
      `${out} is in use by ${holder === null ? "another run" : `process ${holder.pid}`}; wait, or use another --out.`,
  );
  const line = new ProgressLine(process.stderr);
  const signal = stoppable();
  const session = await openLab("new", () => {});
  const end = async () => {
    line.clear();
    await session.close();
    await locked.release();
  };
  let run: QuantsRun | undefined;
  try {
    run = await runQuants(
      {
        ...{ reference: localPath(model), forms: forms.map(localPath), make, round },
        ...{ keepForms: options.keepForms === true, texts: held, mostTokens: options.maxInputTokens },
        ...{
          layers: options.layers,
          dictionary: options.dictionary,
          control: options.control,
          probe,
          vector,
        },
        prompts: asked,
        examples: examples === undefined ? [] : await readExamples(examples),
        ...{ seed: options.seed, rounds: options.rounds, promptTokens: options.promptTokens },
        generatedTokens: options.generatedTokens,
      },
      {
        ...{ lab: session.lab, folder: work, signal },
        onProgress: (what, share) => {
          if (options.quiet || options.json) return;
          line.show(`${Math.floor(100 * share)} %  ${what}`, what.split(",")[0]);
        },
      },
    );
  } catch (error) {
    if (!signal.aborted) throw unwritable(out, error);
  } finally {
    await end();
  }
  if (run === undefined) return endBy(signal.reason as NodeJS.Signals);
  const { quants } = run;
  const paths = await writeQuants(out, run, options.license).catch((error) => {
    throw unwritable(out, error);
  });
  if (options.json) return printJson(quants);
  await print([quantsPicture(quants), "", ...paths.map((path) => shortPath(path))].join("\n"));
}

/** Prompts of graphs: given ones, or the beginnings of the first held-out texts. @throws UsageError */
async function promptsOf(
  { prompts: file, circuits }: QuantsOptions,
  held: readonly string[],
  read: (path: string) => Promise<string[]>,
): Promise<string[]> {
  if (file === undefined && circuits === undefined) return [];
  const known =
    file === undefined
      ? held.map((text) => text.split(/\s+/).slice(0, promptWords).join(" "))
      : await read(file);
  const wanted = circuits ?? known.length;
  if (wanted > known.length) {
    throw new UsageError(`--circuits ${wanted}: there are only ${known.length} prompts.`);
  }
  if (wanted === 0 || wanted > prompts.most) {
    throw new UsageError(`--prompts: 1 to ${prompts.most} are possible, got ${wanted}.`);
  }
  return known.slice(0, wanted);
}

/** A model's name for a folder. */
function nameOf(model: string): string {
  const name = model
    .replace(/\.gguf$/i, "")
    .split(/[\\/]/)
    .at(-1) as string;
  return name.replaceAll(/[^\w.-]+/g, "-");
}
