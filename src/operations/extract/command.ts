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

/** `tapline extract`: block outputs of a data set in files. */
export default function register(program: Command): void {
  experiment(program, "extract", "Write the block outputs of a data set to files, for programs.")
    .option("--data <file>", ".txt, a text a line, or .jsonl with texts; read by the Lab, of any size")
    .option(
      "--examples <file>",
      `or up to ${limits.examples} texts: JSON, JSON Lines or CSV; - is standard input`,
    )
    .addOption(
      new Option(
        "--rows <which>",
        `every token's, the last one's, their mean, or that of a response behind its prompt (default: ${defaults.extract_rows})`,
      ).choices([...textRows]),
    )
    .addOption(readPointOption())
    .addOption(
      new Option("--dtype <type>", `numbers in the files (default: ${defaults.extract_dtype})`).choices([
        "f32",
        "f16",
        "bf16",
      ]),
    )
    .addOption(
      new Option(
        "--too-long <what>",
        `to do with texts over --max-input-tokens (default: ${defaults.too_long})`,
      ).choices(["refuse", "cut"]),
    )
    .option("--shard <i/n>", "of n machines this is number i, from 0: it takes every n-th text", partOf)
    .option(
      "--shard-tokens <number>",
      `tokens of a file (default: ${defaults.shard_tokens})`,
      integerBetween(limits.shard_tokens_min, limits.shard_tokens),
    )
    .option("--plan", "only say how many texts, tokens and bytes there would be")
    .addHelpText(
      "after",
      examples(`
  tapline extract --data texts.jsonl --layers 5 --out rows
  tapline extract --data texts.jsonl --layers 5,12 --dtype bf16 --plan
  tapline extract --data texts.txt --layers 12 --model ./model.gguf \\
    --shard "$SLURM_ARRAY_TASK_ID/8" --out rows
What is finished in --out is kept: the same command goes on behind it.`),
    )
    .action(async (options: ExtractOptions) => {
      const { out } = options;
      if (options.examples !== undefined && options.data !== undefined) {
        throw new UsageError("--data and --examples: give one of them.");
      }
      // What lies in a folder that was named needs no download, and stays where a next run finds it.
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
  if (index === undefined) throw new InvalidArgumentError("Write a part and how many there are as 0/8.");
  return [Number(index), Number(count)];
}
