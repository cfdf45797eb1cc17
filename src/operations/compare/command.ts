import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../../cli/exit-code.js";
import {
  aNumber,
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  promptOf,
  run,
  withPrompt,
} from "../../cli/operation-command.js";
import { anyLayers, integerBetween, layerList, numbersThat } from "../../cli/options.js";
import { interventions, kindsThat } from "../../contracts/interventions.js";
import { defaults, limits } from "../../contracts/limits.js";
import { changedPoints, positionNames, strengthUnits } from "../../contracts/names.js";
import { listed } from "../../text/words.js";

interface CompareOptions extends CommonOptions {
  intervention?: string;
  prompts?: string;
  positives?: string;
  negatives?: string;
  swap?: string;
  with?: string;
}

/** `tapline compare`: edits a block's output and compares the continuations. */
export default function register(program: Command): void {
  withPrompt(
    experiment(
      program,
      "compare",
      "Change a block's output and measure the effect on the answer (dose-response).",
      ["--layers <list>", `the block to change (default: ${defaults.layers.join(",")})`, layerList],
    ),
  )
    .addOption(
      new Option("--intervention <kind>", `kind of intervention (default: ${defaults.intervention})`).choices(
        [...interventions],
      ),
    )
    .option(
      "--strengths <list>",
      `up to ${limits.strengths} numbers from -${limits.strength} to ${limits.strength}; for steer with --strength-unit vector, up to ±${limits.strength_vector} (default: ${defaults.strengths.join(",")})`,
      numberList,
    )
    .option("--target-token <text>", "token to track (default: the top token without the intervention)")
    .option("--prompts <file>", "file with several prompts: one per line, JSON, JSON Lines or CSV")
    .option("--donor-prompt <text>", "for patch: the text whose activation is patched in")
    .option(
      "--positive <text>",
      `for ${listed(kindsThat(({ needs }) => needs === "direction"))}: the side to steer towards`,
    )
    .option("--negative <text>", "the side to steer away from")
    .option(
      "--positives <file>",
      `file with up to ${limits.direction_texts} texts instead of --positive; the direction uses their mean (formats as for --prompts)`,
    )
    .option("--negatives <file>", "file with texts instead of --negative")
    .option("--swap <token>", "for swap: the first of the two tokens whose coordinates are exchanged")
    .option("--with <token>", "for swap: the second token")
    .option(
      "--lens <name>",
      "for swap: the saved lens that defines the tokens' directions (default: the logit lens)",
    )
    .option(
      "--feature <dictionary:index>",
      "a feature of a saved dictionary; its decoder row is the direction",
      featureOf,
    )
    .addOption(
      new Option(
        "--strength-unit <unit>",
        "what strength 1 means for steer: the unit vector (unit), the raw difference (vector) or the activation's norm (row_norm) (default: unit)",
      ).choices([...strengthUnits]),
    )
    .option(
      "--positions <which>",
      "tokens to edit: last, all, prompt, generated, or index ranges such as 0:3,-2:-1 (default: last)",
      positions,
    )
    .option("--min <number>", "for clamp: lower bound of the projection, in --strength-unit", aNumber)
    .option("--max <number>", "for clamp: upper bound of the projection", aNumber)
    .addOption(
      new Option("--point <point>", "hook point in the block to change (default: block_out)").choices([
        ...changedPoints,
      ]),
    )
    .option(
      "--heads <list>",
      "for --point head_out: attention heads to change, such as 0,3 (default: all)",
      anyLayers,
    )
    .option("--controls", "also run a control with a norm-matched random vector")
    .option(
      "--max-tokens <number>",
      `length of the continuations in tokens, at most ${limits.max_tokens} (default: ${defaults.max_tokens})`,
      integerBetween(1, limits.max_tokens),
    )
    .addHelpText(
      "after",
      examples(`
  tapline compare "The capital of France is" --layers 5 --intervention patch \\
    --donor-prompt "The capital of Japan is"
  tapline compare "The capital of France is" --layers 5 --intervention steer \\
    --strength-unit vector --positives invented.txt --negatives real.txt \\
    --strengths 0,1,1.5,2 --target-token " unknown" --controls
  tapline compare --prompts prompts.txt --layers 3 --intervention ablate \\
    --strengths 0,1
  tapline compare "red blue green red blue" --layers 6 --intervention ablate \\
    --point head_out --heads 0,3 --positions all --strengths 0,1`),
    )
    .action(async (prompt: string | undefined, options: CompareOptions) => {
      const [layer, ...others] = options.layers ?? [];
      if (others.length > 0 && options.intervention !== "swap") {
        throw new UsageError(
          `--layers: compare changes one block at a time, got ${[layer, ...others].join(", ")}. Run it once per block.`,
        );
      }
      await run("compare", options, {
        prompts: await contentOf(options.prompts, "readPrompts"),
        prompt: await promptOf(prompt),
        positives: await contentOf(options.positives, "readPrompts"),
        negatives: await contentOf(options.negatives, "readPrompts"),
        swap: swapFor(options),
        with: undefined,
      });
    });
}

function featureOf(text: string): [dictionary: string, index: number] {
  const [, name, index] = /^(.+):(\d+)$/.exec(text) ?? [];
  if (name === undefined)
    throw new InvalidArgumentError("Write a dictionary and a feature, such as mine:12.");
  return [name, Number(index)];
}

/** One of the contract's names, or ranges such as 0:3,-2:-1 and single indices. */
function positions(text: string): string | Array<[number, number]> {
  if ((positionNames as readonly string[]).includes(text)) return text;
  return text.split(",").map((part) => {
    const [, first, last] = /^\s*(-?\d+)(?::(-?\d+))?\s*$/.exec(part) ?? [];
    if (first === undefined)
      throw new InvalidArgumentError(`Write ${positionNames.join(", ")}, or ranges such as 0:3,-2:-1.`);
    return [Number(first), Number(last ?? first)];
  });
}

function swapFor({ swap, with: other }: CompareOptions): string[] | undefined {
  if (swap === undefined && other === undefined) return undefined;
  if (swap === undefined || other === undefined)
    throw new UsageError("--swap and --with must be given together.");
  return [swap, other];
}

const numberList = numbersThat(Number.isFinite, "Write numbers such as 0,0.5,1.");
