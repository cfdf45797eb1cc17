import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
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
import { integerBetween } from "../../cli/options.js";
import { defaults, limits } from "../../contracts/limits.js";

interface FeaturesOptions extends CommonOptions {
  texts?: string;
  labels?: string;
}

/** `tapline features`: texts through a dictionary. */
export default function register(program: Command): void {
  withPrompt(
    experiment(program, "features", "Read a text through a sparse dictionary: which features are active?"),
  )
    .option("--dictionary <name>", "one that tapline dictionary add has kept")
    .option("--texts <file>", "read these texts: a line each, JSON, JSON Lines or CSV")
    .option(
      "--top <number>",
      `features named of each token, at most ${limits.feature_top} (default: ${defaults.feature_top})`,
      integerBetween(1, limits.feature_top),
    )
    .option(
      "--pages <list>",
      `up to ${limits.feature_pages} features as 3,17 that are looked at one by one`,
      featureList,
    )
    .option(
      "--labels <file>",
      "with --pages: Neuronpedia's export, or an address that is asked for each of them",
    )
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
        throw new UsageError("--layers: a dictionary reads one block, its own.");
      }
      await run("features", options, {
        prompt: await promptOf(prompt),
        texts: await contentOf(options.texts, "readPrompts"),
        labels: labelsPlace(options.labels),
      });
    });
}

/** A file is the Lab's to read: said from the root. */
function labelsPlace(labels: string | undefined): string | undefined {
  return labels === undefined || /^https?:\/\//.test(labels) ? labels : resolve(labels);
}

function featureList(text: string): number[] {
  const features = text.split(",").map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  if (features.every((feature) => feature <= limits.feature_index)) return features;
  throw new InvalidArgumentError("Write feature indices as 3,17.");
}
