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

/** `tapline explain`: rows of a block output, put into words by a model that is trained to. */
export default function register(program: Command): void {
  withPrompt(
    experiment(program, "explain", "Put block outputs into words: what does a verbaliser say to them?", [
      "--layer <index>",
      "the block whose output is explained",
      integerBetween(0, limits.layer_index),
    ]),
  )
    .option(
      "--positions <list>",
      `up to ${limits.explain_positions} token indices as 3,4,-1; negative from the end (default: ${defaults.explain_positions.join(",")})`,
      indexList,
    )
    .option(
      "--verbaliser <model>",
      "the model that says what a row is, named as --model is (default: that model)",
    )
    .option("--verbaliser-revision <revision>", "pins its hub revision")
    .option("--template <file>", "its prompt, a text file that has the marker once")
    .option("--marker <text>", "one token of the verbaliser: in its embedding's place stands the row")
    .option("--length <number>", "scale each row to this L2 length (default: as it is)", aNumber)
    .option(
      "--samples <number>",
      `descriptions of each row, at most ${limits.explain_samples} (default: ${defaults.explain_samples})`,
      integerBetween(1, limits.explain_samples),
    )
    .option(
      "--temperature <number>",
      `of descriptions that are drawn, at most ${limits.explain_temperature} (default: ${defaults.explain_temperature})`,
      aNumber,
    )
    .option(
      "--description-tokens <number>",
      `tokens of a description, at most ${limits.explain_tokens} (default: ${defaults.explain_tokens})`,
      integerBetween(1, limits.explain_tokens),
    )
    .option("--no-controls", "no shuffled rows and no prompt without a row beside them")
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
        // To the letter: in most chat formats an answer begins behind a line's end.
        template: await contentOf(template, "readInput"),
        controls: options.controls === false ? false : undefined,
      });
    });
}
