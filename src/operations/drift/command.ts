import type { Command } from "commander";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  localPath,
  run,
} from "../../cli/operation-command.js";

interface DriftOptions extends CommonOptions {
  other?: string;
  examples?: string;
}

/** `tapline drift`: two models of one architecture on the same texts. */
export default function register(program: Command): void {
  experiment(program, "drift", "Compare two forms of a model: what does quantisation change?")
    .option("--other <model>", "the second model, named as --model is")
    .option("--other-revision <revision>", "pins its hub revision")
    .option(
      "--examples <file>",
      "JSON, JSON Lines or CSV with text, and label (0 or 1) for a probe or a vector; - is standard input",
    )
    .option("--dictionary <name>", "a stored one: which features stay active, what it recovers")
    .option("--probe <name>", "a stored one: how well it tells the labels in each model")
    .option("--vector <name>", "a stored one: how well its projections tell them")
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
