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

/** `tapline probe`: a linear probe of blocks. */
export default function register(program: Command): void {
  experiment(program, "probe", "Train a linear probe: can a property be read off a block?")
    .option(
      "--examples <file>",
      "JSON, JSON Lines or CSV with text, label (0 or 1) and split (train or test); - is standard input",
    )
    .addOption(readPointOption())
    .addOption(
      new Option(
        "--rows <which>",
        "of each text the last token's, the mean, the mean behind its prompt, or every token's (default: last)",
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
