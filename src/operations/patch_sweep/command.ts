import { type Command, Option } from "commander";
import {
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  indexList,
  pointList,
  promptOf,
  run,
} from "../../cli/operation-command.js";
import { anyLayers } from "../../cli/options.js";
import { partOptions } from "../../cli/part-options.js";
import { defaults, limits } from "../../contracts/limits.js";
import { alignedPositions, changedPoints, patchDirections, spanMarks } from "../../contracts/names.js";

interface PatchOptions extends CommonOptions {
  pairs?: string;
  target?: string;
  foil?: string;
  controls?: boolean;
}

/** `tapline patch`: activation patching between two prompts. */
export default function register(program: Command): void {
  const command = experiment(
    program,
    "patch_sweep",
    "Activation patching: copy activations from one prompt into a run on another to locate where the answer is computed.",
    ["--layers <list>", "blocks to patch, such as 0,3,7 or 0-7 (default: all)", anyLayers],
    "patch",
  );
  partOptions(command, "compute every n-th point of all pairs, starting at i (from 0): a part of the result")
    .argument("[clean]", "the prompt whose answer you want to trace (raw text); - reads standard input")
    .option("--corrupted <text>", "a counterpart with the same number of tokens and a different answer")
    .option(
      "--pairs <file>",
      `up to ${limits.patch_pairs} prompt pairs: JSON, JSON Lines or CSV with clean and corrupted`,
    )
    .option("--target <token>", "token to track (default: the model's answer to the clean prompt)")
    .option(
      "--foil <token>",
      "token to compare it with (default: the model's answer to the corrupted prompt)",
    )
    .option(
      "--points <list>",
      `hook points to patch, from ${changedPoints.join(", ")} (default: ${defaults.patch_points.join(",")})`,
      pointList(changedPoints),
    )
    .option(
      "--heads <list>",
      "with head_out: attention heads to patch, one at a time, such as 0,3 (default: all)",
      anyLayers,
    )
    .option(
      "--positions <list>",
      `token indices such as 3,4,-1 (negative: from the end), or aligned: spans marked with ${spanMarks.join(" and ")} in both prompts (default: all)`,
      patchPositions,
    )
    .addOption(
      new Option(
        "--direction <direction>",
        `denoise: clean activations into the corrupted run; noise: corrupted activations into the clean run (default: ${defaults.patch_direction})`,
      ).choices([...patchDirections]),
    )
    .option("--no-controls", "skip the random-vector control")
    .addHelpText(
      "after",
      examples(`
  tapline patch "The capital of France is" \\
    --corrupted "The capital of Japan is"
  tapline patch --pairs docs/examples/pairs.jsonl --direction noise --out noise
  tapline patch "Mary and John went out, John gave a drink to" \\
    --corrupted "Mary and John went out, Mary gave a drink to" \\
    --layers 3-7 --positions -4,-3,-2,-1 --points attn_out,ffn_out
  tapline patch "The capital of France is" \\
    --corrupted "The capital of Japan is" --points head_out
  tapline patch "The capital of [[France]] [[is]]" --positions aligned \\
    --corrupted "The capital of [[the United States]] [[is]]"`),
    )
    .action(async (clean: string | undefined, options: PatchOptions) => {
      const { target, foil } = options;
      await run("patch_sweep", options, {
        clean: await promptOf(clean),
        pairs: await contentOf(options.pairs, "readPairs"),
        ...{ target: undefined, target_token: target, foil: undefined, foil_token: foil },
        controls: options.controls === false ? false : undefined,
      });
    });
}

function patchPositions(text: string): number[] | typeof alignedPositions {
  return text === alignedPositions ? text : indexList(text);
}
