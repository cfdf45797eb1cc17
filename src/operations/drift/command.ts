import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { type CommonOptions, examples, experiment, run } from "../../cli/operation-command.js";

interface DriftOptions extends CommonOptions {
  other?: string;
  otherRevision?: string;
  examples?: string;
  dictionary?: string;
  probe?: string;
  vector?: string;
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
      const { readExamples } = await import("../../cli/input-files.js");
      const { other } = options;
      const local = other !== undefined && other !== "demo" && existsSync(other);
      await run("drift", options, {
        other: local ? resolve(other) : other,
        other_revision: options.otherRevision,
        examples: options.examples === undefined ? undefined : await readExamples(options.examples),
        dictionary: options.dictionary,
        probe: options.probe,
        vector: options.vector,
      });
    });
}
