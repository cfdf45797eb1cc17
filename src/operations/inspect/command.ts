import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../../cli/exit-code.js";
import {
  type CommonOptions,
  examples,
  experiment,
  layersOption,
  pointList,
  promptOf,
  run,
  withPrompt,
} from "../../cli/operation-command.js";
import { anyLayers, layerList } from "../../cli/options.js";
import { defaults, limits } from "../../contracts/limits.js";
import { innerPoints, lensViews } from "../../contracts/names.js";

interface InspectOptions extends CommonOptions {
  target?: string;
  lens?: string;
  attention?: number[];
  heads?: number[];
}

/** `tapline inspect`: what one forward pass computes. */
export default function register(program: Command): void {
  withPrompt(
    experiment(
      program,
      "inspect",
      "Inspect one forward pass: logit lens, norms, next tokens.",
      layersOption("evenly spread"),
    ),
  )
    .option(
      "--target <token>",
      "track this token's rank in every cell of the lens (default: the model's answer, after the last token only)",
    )
    .option("--tokens <ids>", "instead of a prompt: token ids, such as 1,512,9, run exactly as given", idList)
    .option(
      "--points <list>",
      `also capture hook points inside the blocks: ${innerPoints.join(", ")}`,
      pointList(innerPoints),
    )
    .option("--lens <name>", "also read activations through this saved lens (see tapline lens)")
    .addOption(
      new Option("--show <what>", "what the lens cells show (default: token)").choices([...lensViews]),
    )
    .option("--attention <layers>", "attention patterns of these blocks, such as 4,6 or 4-7", layerList)
    .option(
      "--heads <list>",
      "with --attention: only these heads, such as 0,3 or 0-7 (default: all)",
      anyLayers,
    )
    .option("--routing", "which experts each block chose for each token")
    .option(
      "--decompose",
      "direct logit attribution: each block's contribution to the logit of the target or the answer",
    )
    .addHelpText(
      "after",
      examples(`
  tapline inspect "The capital of France is"
  tapline inspect "The capital of France is" --target " Tokyo"
  tapline inspect "The capital of France is" --points attn_out --decompose
  tapline inspect --tokens 1,278,7483,310
  tapline inspect "The capital of France is" --lens demo --show divergence
  tapline inspect --model ./model.gguf --layers 0-7 \\
    "When Mary and John went to the store, John gave a drink to"
  echo "The capital of Japan is" | tapline inspect --json - > lens.json`),
    )
    .action(async (prompt: string | undefined, options: InspectOptions) => {
      await run(
        "inspect",
        options,
        {
          prompt: await promptOf(prompt),
          ...{ target: undefined, target_token: options.target },
          // --show needs measures even without a lens.
          ...(options.show !== undefined && options.lens === undefined && { measures: true }),
          ...{ attention: attentionFor(options), heads: undefined },
        },
        async (submission) => {
          submission.layers ??= await spreadLayers(submission.model, submission.revision, options.quiet);
          submission.follow_answer = submission.target_token === undefined;
        },
      );
    });
}

/** An option parser for token ids: `1,512,9`. */
function idList(text: string): number[] {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  const odd = parts.find((part) => !/^\d{1,10}$/.test(part));
  if (odd !== undefined)
    throw new InvalidArgumentError(`“${odd}” is not a token id; write ids such as 1,512,9.`);
  if (parts.length > limits.max_input_tokens) {
    throw new InvalidArgumentError(`At most ${limits.max_input_tokens} token ids, got ${parts.length}.`);
  }
  return parts.map(Number);
}

function attentionFor({ attention, heads }: InspectOptions): object | undefined {
  if (attention === undefined) {
    if (heads !== undefined) throw new UsageError("--heads requires --attention.");
    return undefined;
  }
  return { layers: attention, ...(heads === undefined ? {} : { heads }) };
}

/** Up to eight of the model's blocks, evenly spread; a note on stderr if they cannot be counted on this machine. */
async function spreadLayers(model: unknown, revision: unknown, quiet = false): Promise<number[] | undefined> {
  if (typeof model !== "string") return undefined;
  const [{ blockCount }, findings] = await Promise.all([
    import("../../models/block-count.js"),
    import("../../findings/layers.js"),
  ]);
  const count = await blockCount(model, typeof revision === "string" ? { revision } : {});
  if (count !== undefined) return findings.spreadLayers(count, limits.layers);
  if (!quiet) {
    const { shown } = await import("../../contracts/validate.js");
    process.stderr.write(
      `tapline: Cannot count the blocks of ${shown(model)} from here; inspecting layer ${defaults.layers.join(", ")}. ` +
        "Use --layers to choose others.\n",
    );
  }
  return undefined;
}
