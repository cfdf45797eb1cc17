import type { Candidate, InspectLayer, InspectResult } from "../contracts/index.js";
import { lastTokenLayers } from "./lens.js";
import { visible } from "./text.js";

/**
 * One sentence about the last token: from which layer on the model's answer is the lens's top token, and how sure
 * the model is in the end. It counts from where no later captured layer puts another token first.
 */
export function story(
  result: Pick<InspectResult, "layers" | "all_layers" | "next_tokens" | "target_token_id">,
): string {
  const answer = result.next_tokens[0];
  if (answer === undefined) return "The model named no next token.";
  const name = named(answer);
  const end = answer.probability.toFixed(2);
  const read = lastTokenLayers(result)
    .flatMap((found) =>
      found.predictions === undefined
        ? []
        : [{ layer: found.layer, last: found.predictions.at(-1) ?? [], answer: answerAt(found, result) }],
    )
    .sort((a, b) => a.layer - b.layer);
  const deepest = read.at(-1);
  if (deepest === undefined) return `${name} comes next, with probability ${end}.`;
  const behind = read.findLastIndex(({ last }) => last[0]?.token_id !== answer.token_id);
  const [before, from] = [read[behind], read[behind + 1]];
  if (from === undefined) {
    return `Layer ${deepest.layer}, the deepest shown, still says ${named(deepest.last[0])}; the model itself says ${name} (${end}).`;
  }
  const start = from.answer?.probability.toFixed(2);
  if (before === undefined) {
    return `${name} is the top token from layer ${from.layer} on, the first shown (${start}), and ends at ${end}.`;
  }
  const rival = before.last[0];
  const [led, behindIt] = [rival?.probability.toFixed(2), before.answer?.probability.toFixed(2)];
  const lead = behindIt === undefined ? "" : ` (${led} against ${behindIt})`;
  return `${name} becomes the top token at layer ${from.layer} (${start}), where layer ${before.layer} still said ${named(rival)}${lead}, and ends at ${end}.`;
}

/**
 * The model's answer in a layer's lens after the last token: as it was followed, or as far as it is among the
 * candidates that the lens kept.
 */
export function answerAt(
  { predictions, target }: InspectLayer,
  { next_tokens: [answer], target_token_id }: Pick<InspectResult, "next_tokens" | "target_token_id">,
): { probability: number; rank: number } | undefined {
  const followed = target?.at(-1);
  if (followed !== undefined && target_token_id === answer?.token_id) return followed;
  const last = predictions?.at(-1) ?? [];
  const place = last.findIndex(({ token_id }) => token_id === answer?.token_id);
  return place < 0 ? undefined : { probability: (last[place] as Candidate).probability, rank: place + 1 };
}

function named(candidate: Candidate | undefined): string {
  return candidate === undefined ? "nothing" : `“${visible(candidate.token)}”`;
}
