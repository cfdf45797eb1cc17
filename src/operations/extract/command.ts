import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../../cli/exit-code.js";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  readPointOption,
  run,
} from "../../cli/operation-command.js";
import { integerBetween } from "../../cli/options.js";
import { defaults, limits } from "../../contracts/limits.js";
import { textRows } from "../../contracts/names.js";

interface ExtractOptions extends CommonOptions {
  examples?: string;
  data?: string;
  plan?: boolean;
}

/** `tapline extract`: writes the block outputs of a data set to files. */
export default function register(program: Command): void {
  experiment(program, "extract", "Write the block outputs of a data set to .safetensors files.")
    .option("--data <file>", ".txt with one text per line, or .jsonl; read by the Lab, any size")
    .option(
      "--examples <file>",
      `instead of --data: up to ${limits.examples} texts as JSON, JSON Lines or CSV; - reads standard input`,
    )
    .addOption(
      new Option(
        "--rows <which>",
        `activations to write per text: every token's, the last token's, the mean, or the mean over a response after its prompt (default: ${defaults.extract_rows})`,
      ).choices([...textRows]),
    )
    .addOption(readPointOption())
    .addOption(
      new Option("--dtype <type>", `number format of the files (default: ${defaults.extract_dtype})`).choices(
        ["f32", "f16", "bf16"],
      ),
    )
    .addOption(
      new Option(
        "--too-long <what>",
        `handling of texts longer than --max-input-tokens (default: ${defaults.too_long})`,
      ).choices(["refuse", "cut"]),
    )
    .option(
      "--shard <i/n>",
      "process every n-th text starting at i (from 0), to split the work between n machines",
      partOf,
    )
    .option(
      "--shard-tokens <number>",
      `tokens per file (default: ${defaults.shard_tokens})`,
      integerBetween(limits.shard_tokens_min, limits.shard_tokens),
    )
    .option("--plan", "only report the number of texts, tokens and bytes")
    .addHelpText(
      "after",
      examples(`
  tapline extract --data texts.jsonl --layers 5 --out rows
  tapline extract --data texts.jsonl --layers 5,12 --dtype bf16 --plan
  tapline extract --data texts.txt --layers 12 --model ./model.gguf \\
    --shard "$SLURM_ARRAY_TASK_ID/8" --out rows
Finished files in --out are kept: repeat the same command to resume.`),
    )
    .action(async (options: ExtractOptions) => {
      const { out } = options;
      if (options.examples !== undefined && options.data !== undefined) {
        throw new UsageError("--data and --examples cannot be combined.");
      }
      // Files in a named folder need no download, and stay there so that the next run can resume.
      const named = typeof out === "string" && options.plan !== true;
      await run(
        "extract",
        { ...options, ...((named || options.plan === true) && { out: false }) },
        {
          data: options.data === undefined ? undefined : resolve(options.data),
          examples: await contentOf(options.examples, "readExamples"),
          out: named ? resolve(out) : undefined,
        },
      );
    });
}

function partOf(text: string): [number, number] {
  const [, index, count] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  if (index === undefined)
    throw new InvalidArgumentError("Write the part and the number of parts, such as 0/8.");
  return [Number(index), Number(count)];
}
