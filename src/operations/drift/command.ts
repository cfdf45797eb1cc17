import type { Command } from "commander";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  localPath,
  run,
} from "../../cli/operation-command.js";
import { partOptions } from "../../cli/part-options.js";

interface DriftOptions extends CommonOptions {
  other?: string;
  examples?: string;
}

/** `tapline drift`: compares two models of the same architecture on the same texts. */
export default function register(program: Command): void {
  const command = experiment(
    program,
    "drift",
    "Compare two variants of a model, for example before and after quantisation.",
  );
  partOptions(command, "compute every n-th example starting at i (from 0): a part of the result")
    .option("--other <model>", "the second model; accepts the same values as --model")
    .option("--other-revision <revision>", "pin the second model's hub revision")
    .option(
      "--examples <file>",
      "JSON, JSON Lines or CSV with text, plus label (0 or 1) for --probe or --vector; - reads standard input",
    )
    .option("--dictionary <name>", "saved dictionary: compare active features and loss recovered")
    .option("--probe <name>", "saved probe: compare its AUROC in both models")
    .option("--vector <name>", "saved vector: compare how well its projections separate the labels")
    .addHelpText(
      "after",
      examples(`
  tapline drift --model ./model-F16.gguf --other ./model-Q4_K_M.gguf \\
    --examples reviews.csv --layers 0-7
  tapline drift --model ./base.gguf --other ./tuned.gguf --layers 12 \\
    --examples reviews.csv --dictionary gemma --probe truth --out drift`),
    )
    .action(async (options: DriftOptions) => {
      const { other } = options;
      await run("drift", options, {
        other: other === undefined ? undefined : localPath(other),
        examples: await contentOf(options.examples, "readExamples"),
      });
    });
}
