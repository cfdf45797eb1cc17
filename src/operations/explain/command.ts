import type { Command } from "commander";
import {
  aNumber,
  type CommonOptions,
  contentOf,
  examples,
  experiment,
  indexList,
  localPath,
  promptOf,
  run,
  withPrompt,
} from "../../cli/operation-command.js";
import { integerBetween } from "../../cli/options.js";
import { defaults, limits } from "../../contracts/limits.js";

interface ExplainOptions extends CommonOptions {
  verbaliser?: string;
  template?: string;
  controls?: boolean;
}

/** `tapline explain`: block outputs described in words by a verbaliser model. */
export default function register(program: Command): void {
  withPrompt(
    experiment(program, "explain", "Describe activations in words with a verbaliser model.", [
      "--layer <index>",
      "the block whose output to explain",
      integerBetween(0, limits.layer_index),
    ]),
  )
    .option(
      "--positions <list>",
      `up to ${limits.explain_positions} token indices such as 3,4,-1; negative indices count from the end (default: ${defaults.explain_positions.join(",")})`,
      indexList,
    )
    .option(
      "--verbaliser <model>",
      "the model that writes the descriptions; accepts the same values as --model (default: the same model)",
    )
    .option("--verbaliser-revision <revision>", "pin the verbaliser's hub revision")
    .option("--template <file>", "text file with the verbaliser's prompt, containing the marker once")
    .option("--marker <text>", "a single token of the verbaliser; the activation replaces its embedding")
    .option("--length <number>", "scale each activation to this L2 norm (default: unscaled)", aNumber)
    .option(
      "--samples <number>",
      `descriptions per activation, at most ${limits.explain_samples} (default: ${defaults.explain_samples})`,
      integerBetween(1, limits.explain_samples),
    )
    .option(
      "--temperature <number>",
      `sampling temperature of the descriptions, at most ${limits.explain_temperature} (default: ${defaults.explain_temperature})`,
      aNumber,
    )
    .option(
      "--description-tokens <number>",
      `length of a description in tokens, at most ${limits.explain_tokens} (default: ${defaults.explain_tokens})`,
      integerBetween(1, limits.explain_tokens),
    )
    .option("--no-controls", "skip the controls (shuffled activations and the prompt without an activation)")
    .addHelpText(
      "after",
      examples(`
  tapline explain "The capital of France is" --layer 20 --positions -2,-1 \\
    --model ./Qwen2.5-7B-Instruct-Q8_0.gguf --verbaliser ./nla-av-Q8_0.gguf \\
    --template prompt.txt --marker ㈎ --length 150`),
    )
    .action(async (prompt: string | undefined, options: ExplainOptions) => {
      const { verbaliser, template } = options;
      await run("explain", options, {
        prompt: await promptOf(prompt),
        verbaliser: verbaliser === undefined ? undefined : localPath(verbaliser),
        // Verbatim: in most chat formats an answer starts after a newline.
        template: await contentOf(template, "readInput"),
        controls: options.controls === false ? false : undefined,
      });
    });
}
