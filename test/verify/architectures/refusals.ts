import type { Outcome } from "./report.js";

/** More than one residual stream, or blocks that read several earlier ones: there is no single block output. */
const noBlockOutput = ["deepseek4-moe", "hy_v4-moe", "kimi-k3-moe", "qwen4exp-moe"];

/**
 * The models that each kind of check may find refused, by hand. A model that is refused and not listed here fails the
 * run, so that a sample of a few models cannot pass because all of them are refused.
 */
export const expectedRefusals: Record<"all" | "quantised" | "live", readonly string[]> = {
  all: noBlockOutput,
  quantised: noBlockOutput,
  live: [
    ...noBlockOutput,
    // llama-server's own answers to two plain requests differ
    "cogvlm-dense",
    "plamo2-dense",
    // attend in both directions, so they do not generate
    "dream-dense",
    "llada-dense",
    "llada-moe-moe",
    "rnd1-moe",
    // quantised, in more than one slot
    "minimax-01-moe",
  ],
};

/** The models that were refused and should not have been. */
export function unexpectedRefusals(
  outcomes: readonly Outcome[],
  kind: keyof typeof expectedRefusals,
): string[] {
  return outcomes
    .filter(({ model, verdict }) => verdict === "refused" && !expectedRefusals[kind].includes(model))
    .map(({ model }) => model);
}
