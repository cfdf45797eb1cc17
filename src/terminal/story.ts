import type { Candidate, InspectResult } from "../contracts/index.js";
import { visible } from "./text.js";

/**
 * One sentence about the last token: from which layer on the model's answer leads in the lens, and how sure the
 * model is in the end. "Leads from" means that no later captured layer puts another token first.
 */
export function story(result: Pick<InspectResult, "layers" | "next_tokens">): string {
  const answer = result.next_tokens[0];
  if (answer === undefined) return "The model named no next token.";
  const name = `“${visible(answer.token)}”`;
  const ending = `the model answers it with probability ${answer.probability.toFixed(2)}`;
  const read = result.layers
    .flatMap(({ layer, predictions }) =>
      predictions === undefined ? [] : [{ layer, last: predictions.at(-1) ?? [] }],
    )
    .sort((a, b) => a.layer - b.layer);
  if (read.length === 0) return `After the prompt, ${name} comes first: ${ending}.`;
  const behind = read.findLastIndex(({ last }) => last[0]?.token_id !== answer.token_id);
  const from = read[behind + 1];
  const final = read.at(-1) as (typeof read)[number];
  if (from === undefined) {
    const other = final.last[0];
    return `At layer ${final.layer}, the deepest shown, the lens still says ${named(other)}; in the end the model answers ${name} with probability ${answer.probability.toFixed(2)}.`;
  }
  const lead = `${name} leads the lens from layer ${from.layer} on (${probabilityOf(from.last, answer)})`;
  const before = read[behind];
  if (before === undefined) return `${lead}, the first shown; ${ending}.`;
  return `${lead}, ahead of ${named(before.last[0])} at layer ${before.layer}; ${ending}.`;
}

function named(candidate: Candidate | undefined): string {
  return candidate === undefined ? "nothing" : `“${visible(candidate.token)}”`;
}

function probabilityOf(candidates: readonly Candidate[], { token_id }: Candidate): string {
  return candidates.find((candidate) => candidate.token_id === token_id)?.probability.toFixed(2) ?? "?";
}
