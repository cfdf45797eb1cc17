import { resolve } from "node:path";
import type { Command } from "commander";
import { UsageError } from "../../cli/exit-code.js";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  promptOf,
  run,
  withPrompt,
} from "../../cli/operation-command.js";
import { integerBetween, numbersThat } from "../../cli/options.js";
import { partOptions } from "../../cli/part-options.js";
import { defaults, limits } from "../../contracts/limits.js";

interface FeaturesOptions extends CommonOptions {
  texts?: string;
  labels?: string;
}

/** `tapline features`: encodes texts with a sparse dictionary. */
export default function register(program: Command): void {
  const command = withPrompt(
    experiment(program, "features", "Show which features of a sparse dictionary (SAE) are active on a text."),
  );
  partOptions(command, "compute every n-th text starting at i (from 0): a part of the result")
    .option("--dictionary <name>", "saved dictionary (see tapline dictionary add)")
    .option("--texts <file>", "file with several texts: one per line, JSON, JSON Lines or CSV")
    .option(
      "--top <number>",
      `features to list per token, at most ${limits.feature_top} (default: ${defaults.feature_top})`,
      integerBetween(1, limits.feature_top),
    )
    .option(
      "--pages <list>",
      `show a feature dashboard for each of up to ${limits.feature_pages} features, such as 3,17`,
      featureList,
    )
    .option("--labels <file>", "with --pages: feature labels from a Neuronpedia export file or a web address")
    .addHelpText(
      "after",
      examples(`
  tapline features --dictionary mine "The capital of France is"
  tapline features --dictionary mine --texts texts.txt --pages 3,17
  tapline features --dictionary gemma --model ./gemma-2-2b-Q8_0.gguf \\
    --texts texts.txt --out read`),
    )
    .action(async (prompt: string | undefined, options: FeaturesOptions) => {
      if (options.layers !== undefined) {
        throw new UsageError("--layers: not available, because the dictionary determines the block.");
      }
      await run("features", options, {
        prompt: await promptOf(prompt),
        texts: await contentOf(options.texts, "readPrompts"),
        labels: labelsPlace(options.labels),
      });
    });
}

/** The Lab reads the file, so its path must be absolute. */
function labelsPlace(labels: string | undefined): string | undefined {
  return labels === undefined || /^https?:\/\//.test(labels) ? labels : resolve(labels);
}

const featureList = numbersThat(
  (feature) => Number.isInteger(feature) && feature >= 0 && feature <= limits.feature_index,
  "Write feature indices such as 3,17.",
);
