import type { CompareConfig, CompareResult } from "../../contracts/index.js";
import { interventionOf } from "../../contracts/interventions.js";
import { positionText } from "./contract-position-text.js";

/** Of a change that is shorter than this share of the row, nothing much can be expected. */
const faintShare = 0.01;

/** What a reader of a comparison has to know, and what seems to have gone otherwise than meant. */
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
    : `Only the first selected layer, ${first}, is changed; ${others.join(", ")} had no part.`;
}

/** What is changed, where it is not the block's output. */
function changed({ point = "block_out", heads, layers, intervention, swap }: CompareConfig): string {
  if (intervention === "swap") {
    const [one, other] = (swap ?? []).map((token) => JSON.stringify(token));
    return (
      `At ${layers.length === 1 ? "block" : "blocks"} ${layers.join(", ")} the coordinates of ${one} and ${other} are exchanged, with the values ` +
      "of the prompt's run without any change, so that several blocks do not undo each other."
    );
  }
  if (point === "block_out") return "";
  const of = heads === undefined ? "" : `, of ${heads.length === 1 ? "head" : "heads"} ${heads.join(", ")}`;
  return `Changed is ${point} of block ${layers[0]}${of}.`;
}

function appliesTo({ positions = "last", intervention }: CompareConfig): string {
  if (intervention === "swap") {
    return `The edit applies to ${positionText(positions, intervention)}, and the K/V cache is kept: what later tokens read of it was computed under it.`;
  }
  if (positions === "last") {
    return (
      "The edit applies to the last token on every forward pass and the K/V cache is kept, so a token generated " +
      "under an edit stays edited for the tokens after it."
    );
  }
  if (positions === "generated") {
    return (
      "The edit applies to generated tokens, so the probabilities after the prompt are the baseline's, and the first " +
      "generated token is, too. The K/V cache is kept."
    );
  }
  return `The edit applies to ${positionText(positions)}, and the K/V cache is kept: what later tokens read of them was computed under it.`;
}

/** Strengths that are not neutral and yet change nothing, or hardly anything. */
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
  const longer =
    units && !bounded ? "; strength_unit vector or row_norm reaches further than the unit vector" : "";
  return `${where} the change is less than 1 % of the row's length (at most ${(100 * most).toPrecision(2)} %), so little can follow from it${longer}.`;
}
