import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../../cli/exit-code.js";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  readPointOption,
  run,
} from "../../cli/operation-command.js";
import { integerBetween } from "../../cli/options.js";
import { defaults, limits } from "../../contracts/limits.js";
import { type BlockPoint, saeArchitectures, textRows } from "../../contracts/names.js";

interface SaeOptions extends CommonOptions {
  examples?: string;
  from?: string;
  point?: BlockPoint;
  architecture?: (typeof saeArchitectures)[number];
  rows?: (typeof textRows)[number];
  features?: number;
  k?: number;
  steps?: number;
  batch?: number;
  learningRate?: number;
  warmup?: number;
  decay?: number;
  sparsity?: number;
  threads?: number;
}

/** Steps of a training from an extraction: as many as a double counts. */
const mostSteps = Number.MAX_SAFE_INTEGER;

/** `tapline sae`: a sparse autoencoder, of examples by a Lab or of an extraction by this process. */
export default function register(program: Command): void {
  experiment(program, "sae", "Train a sparse autoencoder: which directions does a block use?")
    .option(
      "--examples <file>",
      "JSON, JSON Lines or CSV with text and split (train or test); - is standard input",
    )
    .option(
      "--from <folder>",
      "an extraction, in place of examples and model: trained here, for as long as it takes",
    )
    .addOption(
      new Option("--architecture <name>", "what becomes of a feature (default: relu)").choices([
        ...saeArchitectures,
      ]),
    )
    .addOption(
      new Option(
        "--rows <which>",
        "of each text the last token's, the mean, the mean behind its prompt, or every token's (default: last; of an extraction all it has)",
      ).choices([...textRows]),
    )
    .addOption(readPointOption())
    .option(
      "--features <number>",
      `features of the autoencoder, ${limits.features_min} to ${limits.features}, from an extraction to ${limits.dictionary_features} (default: ${defaults.features})`,
      integerBetween(limits.features_min, limits.dictionary_features),
    )
    .option(
      "--k <number>",
      "for topk and batchtopk: features active in a row (default: 32, or a quarter of them)",
      integerBetween(1, limits.dictionary_features),
    )
    .option(
      "--steps <number>",
      `optimiser steps, at most ${limits.steps}; from an extraction as many as wanted (default: ${defaults.steps})`,
      integerBetween(1, mostSteps),
    )
    .option(
      "--batch <rows>",
      "rows of a step (default: 2048, or all there are)",
      integerBetween(1, limits.sae_batch),
    )
    .option(
      "--learning-rate <number>",
      "Adam's (default: by features, steps and width; see the documentation)",
      numberBetween(0, 1),
    )
    .option(
      "--warmup <share>",
      "of the steps, while the learning rate rises (default: 0.05)",
      numberBetween(0, 1),
    )
    .option("--decay <share>", "of the steps, while it falls to 0 (default: 0.2)", numberBetween(0, 1))
    .option(
      "--sparsity <weight>",
      "for relu and jumprelu: of the penalty on activations, or on their number",
      numberBetween(0, limits.sae_sparsity),
    )
    .option("--threads <number>", "with --from (default: all processors, at most 16)", integerBetween(1, 256))
    .addHelpText(
      "after",
      examples(`
  tapline sae --examples texts.csv --layers 5 --features 128 --steps 300
  tapline sae --examples texts.csv --layers 5 --rows all \\
    --architecture topk --k 8
  tapline extract --data texts.jsonl --layers 12 --model ./model.gguf --out rows
  tapline sae --from rows --architecture topk --k 32 --features 16384 \\
    --steps 20000 --out trained
What --from has finished in --out is kept: the same command goes on behind it.`),
    )
    .action((options: SaeOptions) =>
      options.from === undefined ? fromExamples(options) : fromRows(options),
    );
}

async function fromExamples(options: SaeOptions): Promise<void> {
  if (options.threads !== undefined) throw new UsageError("--threads: the Lab decides; it goes with --from.");
  await run("sae", options, { examples: await contentOf(options.examples, "readExamples") });
}

async function fromRows(options: SaeOptions): Promise<void> {
  for (const name of [
    "examples",
    "model",
    "revision",
    "config",
    "lab",
    "detach",
    "maxInputTokens",
  ] as const) {
    if (options[name] !== undefined) {
      const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      throw new UsageError(
        `--${flag} and --from: an extraction is trained on here, without a model or a Lab.`,
      );
    }
  }
  if (typeof options.out !== "string") throw new UsageError("--from: name a folder with --out.");
  const { from, out, layers, seed = defaults.seed, threads } = options;
  const { features = defaults.features, steps = defaults.steps, learningRate: learning_rate } = options;
  const { architecture, rows, point, k, batch, warmup, decay, sparsity } = options;
  const settings = { architecture, rows, point, k, batch, learning_rate, warmup, decay, sparsity };
  const { checkSaeSettings } = await import("./contract.js");
  checkSaeSettings({ ...settings, features });
  const { trainHere } = await import("../../cli/train-here.js");
  await trainHere(
    {
      ...settings,
      architecture: architecture ?? "relu",
      ...{ from: resolve(from as string), layers, features, steps, seed },
    },
    resolve(out),
    { threads, json: options.json === true, quiet: options.quiet === true },
  );
}

function numberBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== "" && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a number from ${least} to ${most}.`);
  };
}
