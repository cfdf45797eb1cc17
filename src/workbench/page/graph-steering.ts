/** Interventions on a graph's features: as a comparison, as a command, and whether the served model is the graph's. */
import type { GraphResult } from "../../contracts/index.js";
import type { JobOf } from "../../contracts/job.js";
import { shellWord } from "../../text/shell.js";
import type { ServerStatus } from "../wire.js";

/** A graph's job with its result. */
export type SteeredGraph = Pick<JobOf<"graph">, "model" | "config"> & { result: GraphResult };

/** A feature, and the activation that it gets. */
export interface ClampedFeature {
  dictionary: string;
  index: number;
  layer: number;
  /** The point at which it is a direction. */
  writes: string;
  level: number;
}

/** Generated tokens of a comparison. */
const tokens = 8;

/** The comparison of answers with and without the clamp at every token, as in Chat, with a random control. */
export function clampJob(
  { model, config, result }: SteeredGraph,
  { dictionary, index, layer, writes, level }: ClampedFeature,
): Record<string, unknown> {
  return {
    ...{ operation: "compare", model, prompt: config.prompt, intervention: "clamp" },
    ...{
      feature: [dictionary, index],
      point: writes,
      layers: [layer],
      positions: "all",
      min: level,
      max: level,
    },
    ...{ strengths: [0, 1], controls: true, max_tokens: tokens, target_token: result.targets[0]?.token },
  };
}

/** The same as a command. */
export function clampCommand(
  { model, config, result }: SteeredGraph,
  { dictionary, index, layer, writes, level }: ClampedFeature,
): string {
  const words = [
    ...["tapline", "compare", config.prompt, "--model", model, "--layers", `${layer}`],
    ...[
      "--intervention",
      "clamp",
      "--feature",
      `${dictionary}:${index}`,
      "--point",
      writes,
      "--positions",
      "all",
    ],
    ...["--min", `${level}`, "--max", `${level}`, "--strengths", "0,1", "--controls"],
    ...["--max-tokens", `${tokens}`, "--target-token", result.targets[0]?.token ?? ""],
  ];
  return words.map(shellWord).join(" ");
}

/** Why the graph does not describe the served model, as a sentence; undefined if it does. */
export function servedMisfit(
  { model_fingerprint, blocks }: Pick<GraphResult, "model_fingerprint" | "blocks">,
  server: Pick<ServerStatus, "ok" | "n_layer" | "fingerprint"> | undefined,
): string | undefined {
  if (server?.ok !== true) return "Chat needs a serving model.";
  const other = "This graph is of another model than the one in the chat.";
  if (server.n_layer !== blocks) return other;
  const isKnown = model_fingerprint !== undefined && server.fingerprint !== undefined;
  return isKnown && model_fingerprint !== server.fingerprint ? other : undefined;
}
