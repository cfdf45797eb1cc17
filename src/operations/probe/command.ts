import { type Command, Option } from "commander";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  indexList,
  pointList,
  readPointOption,
  run,
} from "../../cli/operation-command.js";
import { numbersThat } from "../../cli/options.js";
import { partOptions } from "../../cli/part-options.js";
import { blockPoints, textRows } from "../../contracts/names.js";

interface ProbeOptions extends CommonOptions {
  examples?: string;
  gridPoints?: string[];
  gridPositions?: number[];
  gridC?: number[];
}

const strengths = numbersThat((c) => c > 0, "Write numbers above 0, such as 0.01,1,100.");

/** `tapline probe`: trains linear probes on block outputs. */
export default function register(program: Command): void {
  const command = experiment(
    program,
    "probe",
    "Train a linear probe to test whether a property can be read from a block's output.",
  );
  partOptions(
    command,
    "fit every n-th probe, layers first and then the grid, starting at i (from 0): a part of the result",
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
    .option(
      "--grid-points <list>",
      `also fit a probe for each layer at these points, from ${blockPoints.join(", ")}`,
      pointList(blockPoints),
    )
    .option(
      "--grid-positions <list>",
      "also at these tokens of each text, counted from its end, such as -1,-2",
      indexList,
    )
    .option(
      "--grid-c <list>",
      "also with these inverse strengths of the L2 penalty, such as 0.01,1,100",
      strengths,
    )
    .addHelpText(
      "after",
      examples(`
  tapline probe --examples reviews.csv --layers 0-7
  tapline probe --examples reviews.jsonl --model ./model.gguf --layers 12 \\
    --out sentiment
  tapline probe --examples reviews.csv --layers 5 --rows all
  tapline probe --examples reviews.csv --layers 0-7 \\
    --grid-points mid,block_out --grid-c 0.01,1,100`),
    )
    .action(async (options: ProbeOptions) => {
      const { gridPoints: points, gridPositions: positions, gridC: c } = options;
      const grid = Object.entries({ points, positions, c }).filter(([, values]) => values !== undefined);
      await run("probe", options, {
        examples: await contentOf(options.examples, "readExamples"),
        ...{ grid_points: undefined, grid_positions: undefined, grid_c: undefined },
        ...(grid.length > 0 && { grid: Object.fromEntries(grid) }),
      });
    });
}
