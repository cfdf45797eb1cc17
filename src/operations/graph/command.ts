import type { Command } from "commander";
import {
  aNumber,
  type CommonOptions,
  examples,
  experiment,
  promptOf,
  run,
  withPrompt,
} from "../../cli/operation-command.js";
import { integerBetween } from "../../cli/options.js";
import { defaults, limits } from "../../contracts/limits.js";

interface GraphOptions extends CommonOptions {
  target?: string;
  foil?: string;
  transcoders?: string;
}

/** `tapline graph`: neurons and heads, or transcoder features, behind the next token, and the edges between them. */
export default function register(program: Command): void {
  withPrompt(
    experiment(
      program,
      "graph",
      "Attribution graph: show which neurons and attention heads, or transcoder features, a token's logit comes from, and how they affect each other.",
      [
        "--position <index>",
        `explain the logits after this token; negative indices count from the end (default: ${defaults.graph_position})`,
        integerBetween(-limits.token_index, limits.token_index),
      ],
    ),
  )
    .option("--target <token>", "token to explain (default: the most probable tokens)")
    .option("--foil <token>", "with --target: explain the logit difference from this token")
    .option("--transcoders <name>", "use the features of a saved set of transcoders, or of a single one")
    .option(
      "--zero-positions <number>",
      "with --transcoders: first tokens without features and errors (default: as the set states, or BOS)",
      integerBetween(0, limits.graph_zero_positions),
    )
    .option(
      "--nodes <number>",
      `neurons and heads, or features, before pruning, at most ${limits.graph_nodes} (default: ${defaults.graph_nodes})`,
      integerBetween(limits.graph_nodes_min, limits.graph_nodes),
    )
    .option("--first-token", "also allow nodes at the first token, which is usually an attention sink")
    .option(
      "--node-threshold <share>",
      `share of the influence that the remaining nodes have (default: ${defaults.graph_node_threshold})`,
      aNumber,
    )
    .option(
      "--edge-threshold <share>",
      `share of the influence that the remaining edges have (default: ${defaults.graph_edge_threshold})`,
      aNumber,
    )
    .option(
      "--measured <number>",
      `strongest nodes to remove for real, at most ${limits.graph_measured} (default: ${defaults.graph_measured})`,
      integerBetween(0, limits.graph_measured),
    )
    .addHelpText(
      "after",
      examples(`
  tapline graph "The capital of France is"
  tapline graph "The capital of France is" --target " Paris" --foil " London"
  tapline graph "The capital of France is" --transcoders my-transcoders
  tapline graph "The capital of France is" --model ./SmolLM2-135M-Q8_0.gguf \\
    --nodes 2000 --measured 100 --out graph`),
    )
    .action(async (prompt: string | undefined, options: GraphOptions) => {
      const { target, foil } = options;
      await run("graph", options, {
        prompt: await promptOf(prompt),
        ...{ target: undefined, target_token: target, foil: undefined, foil_token: foil },
      });
    });
}
