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
import { defaults, limits } from "../../contracts/limits.js";
import { alignedPositions, changedPoints, patchDirections, spanMarks } from "../../contracts/names.js";

interface PatchOptions extends CommonOptions {
  pairs?: string;
  target?: string;
  foil?: string;
  controls?: boolean;
}

/** `tapline patch`: states of one run in another's. */
export default function register(program: Command): void {
  experiment(
    program,
    "patch_sweep",
    "Patch one prompt's states into another's run: where does it happen?",
    ["--layers <list>", "blocks as 0,3,7 or 0-7 (default: all)", anyLayers],
    "patch",
  )
    .argument("[clean]", "raw text that is answered as it should be; - reads it from standard input")
    .option("--corrupted <text>", "as many tokens that are answered otherwise")
    .option(
      "--pairs <file>",
      `up to ${limits.patch_pairs} pairs: JSON, JSON Lines or CSV with clean and corrupted`,
    )
    .option("--target <token>", "one token (default: what the model says after the clean text)")
    .option("--foil <token>", "the one that it is measured against (default: the corrupted text's)")
    .option(
      "--points <list>",
      `what is patched of each block, of ${changedPoints.join(", ")} (default: ${defaults.patch_points.join(",")})`,
      pointList(changedPoints),
    )
    .option("--heads <list>", "of head_out: these heads, each by itself, as 0,3 (default: all)", anyLayers)
    .option(
      "--positions <list>",
      `token indices as 3,4,-1; negative from the end; or aligned: spans between ${spanMarks.join(" and ")} in both texts (default: all)`,
      patchPositions,
    )
    .addOption(
      new Option(
        "--direction <direction>",
        `denoise: clean states into the corrupted run; noise: the other way (default: ${defaults.patch_direction})`,
      ).choices([...patchDirections]),
    )
    .option("--no-controls", "no random changes beside the patches")
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
