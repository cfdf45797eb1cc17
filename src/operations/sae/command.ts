import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { UsageError } from "../../cli/exit-code.js";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  readPointOption,
  run,
  targetOption,
} from "../../cli/operation-command.js";
import { integerBetween, numberBetween } from "../../cli/options.js";
import { defaults, limits } from "../../contracts/limits.js";
import { type BlockPoint, saeArchitectures, type TargetPoint, textRows } from "../../contracts/names.js";

interface SaeOptions extends CommonOptions {
  examples?: string;
  from?: string;
  point?: BlockPoint;
  target?: TargetPoint;
  skip?: boolean;
  architecture?: (typeof saeArchitectures)[number];
  rows?: (typeof textRows)[number];
  firstPosition?: number;
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

/** Limit of the steps when training on an extraction: the largest exact integer. */
const mostSteps = Number.MAX_SAFE_INTEGER;

/** `tapline sae`: trains a sparse autoencoder or a transcoder, on examples by a Lab or on an extraction in this process. */
export default function register(program: Command): void {
  experiment(program, "sae", "Train a sparse autoencoder (SAE) on a block's activations, or a transcoder.")
    .option(
      "--examples <file>",
      "JSON, JSON Lines or CSV with text and split (train or test); - reads standard input",
    )
    .option(
      "--from <folder>",
      "train on an extraction's folder instead of --examples and --model; runs in this process, without a time limit",
    )
    .addOption(
      new Option("--architecture <name>", "activation function (default: relu)").choices([
        ...saeArchitectures,
      ]),
    )
    .addOption(
      new Option(
        "--rows <which>",
        "activations to use per text: the last token's, the mean, the mean over a response after its prompt, or every token's (default: last; with --from, all in the extraction)",
      ).choices([...textRows]),
    )
    .addOption(readPointOption())
    .addOption(targetOption("train a transcoder, which predicts this point from ffn_in"))
    .option("--skip", "with --target: also train a linear map from the point to the target")
    .option(
      "--first-position <index>",
      "with every token's rows: leave out the tokens of each text before this index (default: 0)",
      integerBetween(0, limits.token_index),
    )
    .option(
      "--features <number>",
      `number of features, ${limits.features_min} to ${limits.features}, or up to ${limits.dictionary_features} with --from (default: ${defaults.features})`,
      integerBetween(limits.features_min, limits.dictionary_features),
    )
    .option(
      "--k <number>",
      "for topk and batchtopk: active features per activation (default: 32, at most a quarter of the features)",
      integerBetween(1, limits.dictionary_features),
    )
    .option(
      "--steps <number>",
      `optimiser steps, at most ${limits.steps}; unlimited with --from (default: ${defaults.steps})`,
      integerBetween(1, mostSteps),
    )
    .option(
      "--batch <rows>",
      "activations per step (default: 2048, or all if fewer)",
      integerBetween(1, limits.sae_batch),
    )
    .option(
      "--learning-rate <number>",
      "Adam's learning rate (default: from features, steps and width; see the documentation)",
      numberBetween(0, 1),
    )
    .option(
      "--warmup <share>",
      "share of the steps in which the learning rate rises from 0 (default: 0.05)",
      numberBetween(0, 1),
    )
    .option(
      "--decay <share>",
      "share of the steps in which it falls to 0 at the end (default: 0.2)",
      numberBetween(0, 1),
    )
    .option(
      "--sparsity <weight>",
      "for relu and jumprelu: weight of the sparsity penalty (on activations or on their number)",
      numberBetween(0, limits.sae_sparsity),
    )
    .option(
      "--threads <number>",
      "with --from: number of threads (default: all processors, at most 16)",
      integerBetween(1, 256),
    )
    .addHelpText(
      "after",
      examples(`
  tapline sae --examples texts.csv --layers 5 --features 128 --steps 300
  tapline sae --examples texts.csv --layers 5 --rows all \\
    --architecture topk --k 8
  tapline extract --data texts.jsonl --layers 12 --model ./model.gguf --out rows
  tapline sae --from rows --architecture topk --k 32 --features 16384 \\
    --steps 20000 --out trained
  tapline extract --data texts.jsonl --layers 12 --point ffn_in \\
    --target ffn_out --model ./model.gguf --out mlp
  tapline sae --from mlp --target ffn_out --skip --architecture topk --k 32 \\
    --features 16384 --steps 20000 --out transcoder
With --from, finished work in --out is kept: repeat the same command to resume.`),
    )
    .action((options: SaeOptions) =>
      options.from === undefined ? fromExamples(options) : fromRows(options),
    );
}

async function fromExamples(options: SaeOptions): Promise<void> {
  if (options.threads !== undefined)
    throw new UsageError("--threads requires --from: otherwise the Lab chooses.");
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
        `--${flag} cannot be combined with --from, which needs neither a model nor a Lab.`,
      );
    }
  }
  if (typeof options.out !== "string") throw new UsageError("--from requires a folder: use --out.");
  const { from, out, layers, seed = defaults.seed, threads } = options;
  const { features = defaults.features, steps = defaults.steps, learningRate: learning_rate } = options;
  const { firstPosition: first_position } = options;
  const { architecture, rows, point, target, skip, k, batch, warmup, decay, sparsity } = options;
  const settings = {
    ...{ architecture, rows, point, k, batch, learning_rate, warmup, decay, sparsity },
    ...{ target, skip, first_position },
  };
  const { checkFromRows } = await import("./contract.js");
  checkFromRows({ ...settings, features });
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
