import { type Command, Option } from "commander";
import {
  type CommonOptions,
  examples,
  experiment,
  readPointOption,
  run,
} from "../../cli/operation-command.js";
import { textRows } from "../../contracts/names.js";

interface ProbeOptions extends CommonOptions {
  examples?: string;
  point?: string;
  rows?: string;
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
      const { readExamples } = await import("../../cli/input-files.js");
      const examples = options.examples === undefined ? undefined : await readExamples(options.examples);
      await run("probe", options, { examples, point: options.point, rows: options.rows });
    });
}
