import type { CompareConfig, CompareResult } from "../../contracts/index.js";
import { interventionOf } from "../../contracts/interventions.js";
import { positionText } from "./contract-position-text.js";

/** A change smaller than this share of the activation's norm is unlikely to have an effect. */
const faintShare = 0.01;

/** What readers of a comparison should know, and warnings about changes that had no effect. */
export function compareNote(
  config: CompareConfig,
  trials: CompareResult["trials"],
  sidePath: string,
): string {
  return [
    ignoredLayers(config),
    changed(config),
    "The target token's probabilities are compared at the same input; greedy continuations may diverge.",
    appliesTo(config),
    faintChanges(config, trials),
    sidePath,
  ]
    .filter((part) => part !== "")
    .join(" ");
}

function ignoredLayers(config: CompareConfig): string {
  if (config.intervention === "swap") return "";
  const [first, ...others] = config.layers;
  return others.length === 0
    ? ""
    : `Only the first layer (${first}) was changed; ${others.join(", ")} ${others.length === 1 ? "was" : "were"} ignored.`;
}

/** What is changed, if it is not the block's output. */
function changed({ point = "block_out", heads, layers, intervention, swap }: CompareConfig): string {
  if (intervention === "swap") {
    const [one, other] = (swap ?? []).map((token) => JSON.stringify(token));
    return (
      `At ${layers.length === 1 ? "block" : "blocks"} ${layers.join(", ")} the coordinates of ${one} and ${other} are exchanged, using values ` +
      "from the unmodified run of the prompt, so that several blocks do not undo each other."
    );
  }
  if (point === "block_out") return "";
  const of = heads === undefined ? "" : `, ${heads.length === 1 ? "head" : "heads"} ${heads.join(", ")}`;
  return `The edit changes ${point} of block ${layers[0]}${of}.`;
}

function appliesTo({ positions = "last", intervention }: CompareConfig): string {
  if (intervention === "swap") {
    return `The edit applies to ${positionText(positions, intervention)}. Later tokens read keys and values that were computed with the edit.`;
  }
  if (positions === "last") {
    return (
      "The edit applies to the last token of every forward pass. Later tokens read the keys and values of earlier edited " +
      "tokens as they were computed with the edit."
    );
  }
  if (positions === "generated") {
    return (
      "The edit applies to generated tokens, so the probabilities after the prompt and the first generated token equal " +
      "the baseline's. Later tokens read keys and values that were computed with the edit."
    );
  }
  return `The edit applies to ${positionText(positions)}. Later tokens read keys and values that were computed with the edit.`;
}

/** Non-neutral strengths that change nothing, or hardly anything. */
function faintChanges({ intervention, strengths }: CompareConfig, trials: CompareResult["trials"]): string {
  const { neutral, units, bounded } = interventionOf(intervention);
  const shares = new Map<number, number>();
  for (const { strength, change } of trials) {
    if (strength === neutral || change === undefined) continue;
    const share = change.row_length > 0 ? change.length / change.row_length : change.length > 0 ? 1 : 0;
    shares.set(strength, Math.max(shares.get(strength) ?? 0, share));
  }
  const faint = [...new Set(strengths)].filter((strength) => (shares.get(strength) ?? 1) < faintShare);
  if (faint.length === 0) return "";
  const most = Math.max(...faint.map((strength) => shares.get(strength) as number));
  const where = `At strength${faint.length === 1 ? "" : "s"} ${faint.join(", ")}`;
  if (most === 0) return `${where} the intervention changed nothing.`;
  const longer = units && !bounded ? ". For a larger change, use strength_unit vector or row_norm" : "";
  return `${where} the change is less than 1 % of the activation's norm (at most ${(100 * most).toPrecision(2)} %), so little effect can be expected${longer}.`;
}
