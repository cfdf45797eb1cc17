import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { UsageError } from "../../cli/exit-code.js";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  readPointOption,
  run,
  submissionOf,
  targetOption,
} from "../../cli/operation-command.js";
import { integerBetween } from "../../cli/options.js";
import { ofSubmit, type PartOptions, partOptions } from "../../cli/part-options.js";
import type { SubmitOptions } from "../../cli/submit.js";
import { defaults, limits } from "../../contracts/limits.js";
import { isUrl, textRows } from "../../contracts/names.js";

interface ExtractOptions extends CommonOptions, PartOptions {
  examples?: string;
  data?: string;
  plan?: boolean;
}

/** `tapline extract`: writes the block outputs of a data set to files. */
export default function register(program: Command): void {
  const command = experiment(
    program,
    "extract",
    "Write the block outputs of a data set to .safetensors files.",
  );
  partOptions(command, "process every n-th text starting at i (from 0), to split the work between n machines")
    .option(
      "--data <place>",
      "path or URL (s3, gs, https) of a .txt file with one text per line, .jsonl, .csv, .parquet, or a folder of Hugging Face datasets; any size",
    )
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
    .addOption(targetOption("also write this point, to train a transcoder that predicts it from ffn_in"))
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
  tapline extract --data texts.jsonl --layers 5 --point ffn_in \\
    --target ffn_out --out mlp
  tapline extract --data texts.txt --layers 12 --model ./model.gguf \\
    --shard "$SLURM_ARRAY_TASK_ID/8" --out rows
  tapline extract --data texts.jsonl --layers 12 --out rows \\
    --submit slurm --parts 64 --sbatch=--gres=gpu:1
  tapline extract --data s3://data/texts.parquet --layers 12 \\
    --out s3://results/rows
Finished files in --out are kept: repeat the same command to resume.`),
    )
    .action(async (options: ExtractOptions) => {
      const { out } = options;
      if (options.examples !== undefined && options.data !== undefined) {
        throw new UsageError("--data and --examples cannot be combined.");
      }
      if (options.submit !== undefined) return submitted(options, out);
      // Files in a named folder need no download, and stay there so that the next run can resume.
      const named = typeof out === "string" && options.plan !== true;
      await run(
        "extract",
        { ...options, ...((named || options.plan === true) && { out: false }) },
        {
          data: options.data === undefined ? undefined : placeOf(options.data),
          examples: await contentOf(options.examples, "readExamples"),
          out: named ? placeOf(out) : undefined,
        },
      );
    });
}

async function submitted(options: ExtractOptions, out: string | boolean | undefined): Promise<void> {
  if (typeof out !== "string")
    throw new UsageError("--submit requires --out, a folder that all machines see.");
  if (isUrl(out)) {
    throw new UsageError(
      `--submit requires a folder that all machines see as --out, got ${out}; with --shard, parts can write to a URL.`,
    );
  }
  if (options.data === undefined && options.config === undefined) {
    throw new UsageError("--submit requires --data, a file that all machines see.");
  }
  const rest = Object.fromEntries(
    Object.entries(options).filter(([name]) => !ofSubmit.includes(name as never)),
  );
  const settings = await submissionOf("extract", rest, {
    data: options.data === undefined ? undefined : placeOf(options.data),
  });
  await (await import("../../cli/submit.js")).submit("extract", settings, out, options as SubmitOptions);
}

/** A URL as it is, or an absolute path. */
function placeOf(place: string): string {
  return isUrl(place) ? place : resolve(place);
}
