import { type Command, Option } from "commander";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  readPointOption,
  run,
} from "../../cli/operation-command.js";
import { textRows } from "../../contracts/names.js";

interface ProbeOptions extends CommonOptions {
  examples?: string;
}

/** `tapline probe`: trains linear probes on block outputs. */
export default function register(program: Command): void {
  experiment(
    program,
    "probe",
    "Train a linear probe to test whether a property can be read from a block's output.",
  )
    .option(
      "--examples <file>",
      "JSON, JSON Lines or CSV with text, label (0 or 1) and split (train or test); - reads standard input",
    )
    .addOption(readPointOption())
    .addOption(
      new Option(
        "--rows <which>",
        "activations to use per text: the last token's, the mean, the mean over a response after its prompt, or every token's (default: last)",
      ).choices([...textRows]),
    )
    .addHelpText(
      "after",
      examples(`
  tapline probe --examples reviews.csv --layers 0-7
  tapline probe --examples reviews.jsonl --model ./model.gguf --layers 12 \\
    --out sentiment
  tapline probe --examples reviews.csv --layers 5 --rows all`),
    )
    .action(async (options: ProbeOptions) => {
      await run("probe", options, { examples: await contentOf(options.examples, "readExamples") });
    });
}
