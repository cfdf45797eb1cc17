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
import { anyLayers, integerBetween, layerList } from "../../cli/options.js";
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

/** `tapline compare`: an edit, and what follows from it. */
export default function register(program: Command): void {
  withPrompt(
    experiment(program, "compare", "Change a block's output and see what follows: dose-response.", [
      "--layers <list>",
      `the block that is changed (default: ${defaults.layers.join(",")})`,
      layerList,
    ]),
  )
    .addOption(
      new Option(
        "--intervention <kind>",
        `what is done to the block's output (default: ${defaults.intervention})`,
      ).choices([...interventions]),
    )
    .option(
      "--strengths <list>",
      `up to ${limits.strengths} numbers from -${limits.strength} to ${limits.strength}, for steer in vectors to ${limits.strength_vector} (default: ${defaults.strengths.join(",")})`,
      numberList,
    )
    .option(
      "--target-token <text>",
      "one token to follow (default: what the model says without intervention)",
    )
    .option("--prompts <file>", "compare these prompts: a line each, JSON, JSON Lines or CSV")
    .option("--donor-prompt <text>", "for patch: the text whose activation is put in")
    .option(
      "--positive <text>",
      `for ${listed(kindsThat(({ needs }) => needs === "direction"))}: the direction leads here …`,
    )
    .option("--negative <text>", "… from here")
    .option(
      "--positives <file>",
      `or from up to ${limits.direction_texts} texts: their mean; a file as --prompts …`,
    )
    .option("--negatives <file>", "… and this one")
    .option("--swap <token>", "for swap: the token whose coordinate is exchanged …")
    .option("--with <token>", "… with this one's")
    .option("--lens <name>", "for swap: in this lens's directions (default: the logit lens)")
    .option("--feature <dictionary:index>", "or the decoder row of a stored dictionary's feature", featureOf)
    .addOption(
      new Option(
        "--strength-unit <unit>",
        "what a strength of 1 adds in steer: the unit vector, the difference as it is, or a row's length (default: unit)",
      ).choices([...strengthUnits]),
    )
    .option(
      "--positions <which>",
      "last, all, prompt, generated, or token indices as 0:3,-2:-1 (default: last)",
      positions,
    )
    .option(
      "--min <number>",
      "for clamp: the least projection on the direction, in the strength's unit",
      aNumber,
    )
    .option("--max <number>", "for clamp: the greatest projection", aNumber)
    .addOption(
      new Option("--point <point>", "what of the block is changed (default: block_out)").choices([
        ...changedPoints,
      ]),
    )
    .option("--heads <list>", "for --point head_out: these heads, as 0,3 (default: all)", anyLayers)
    .option("--controls", "also try a random vector of the same length")
    .option(
      "--max-tokens <number>",
      `tokens of a continuation, at most ${limits.max_tokens} (default: ${defaults.max_tokens})`,
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
          `--layers: compare changes one block at a time, got ${[layer, ...others].join(", ")}; run it once for each.`,
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
  if (name === undefined) throw new InvalidArgumentError("Write a dictionary and a feature as mine:12.");
  return [name, Number(index)];
}

/** A name of the contract's, or ranges as 0:3,-2:-1 and single indices. */
function positions(text: string): string | Array<[number, number]> {
  if ((positionNames as readonly string[]).includes(text)) return text;
  return text.split(",").map((part) => {
    const [, first, last] = /^\s*(-?\d+)(?::(-?\d+))?\s*$/.exec(part) ?? [];
    if (first === undefined)
      throw new InvalidArgumentError(`Write ${positionNames.join(", ")}, or ranges as 0:3,-2:-1.`);
    return [Number(first), Number(last ?? first)];
  });
}

function swapFor({ swap, with: other }: CompareOptions): string[] | undefined {
  if (swap === undefined && other === undefined) return undefined;
  if (swap === undefined || other === undefined) throw new UsageError("--swap and --with go together.");
  return [swap, other];
}

function numberList(text: string): number[] {
  const numbers = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  if (numbers.some((number) => !Number.isFinite(number))) {
    throw new InvalidArgumentError("Write numbers as 0,0.5,1.");
  }
  return numbers;
}
