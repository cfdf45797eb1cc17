import type { Candidate, InspectResult } from "../contracts/index.js";
import { visible } from "./text.js";

/**
 * One sentence about the last token: from which layer on the model's answer is the lens's top token, and how sure
 * the model is in the end. It counts from where no later captured layer puts another token first.
 */
export function story(result: Pick<InspectResult, "layers" | "next_tokens">): string {
  const answer = result.next_tokens[0];
  if (answer === undefined) return "The model named no next token.";
  const name = named(answer);
  const end = answer.probability.toFixed(2);
  const read = result.layers
    .flatMap(({ layer, predictions }) =>
      predictions === undefined ? [] : [{ layer, last: predictions.at(-1) ?? [] }],
    )
    .sort((a, b) => a.layer - b.layer);
  const deepest = read.at(-1);
  if (deepest === undefined) return `${name} comes next, with probability ${end}.`;
  const behind = read.findLastIndex(({ last }) => last[0]?.token_id !== answer.token_id);
  const [before, from] = [read[behind], read[behind + 1]];
  if (from === undefined) {
    return `Layer ${deepest.layer}, the deepest shown, still says ${named(deepest.last[0])}; the model itself says ${name} (${end}).`;
  }
  const start = probabilityIn(from.last, answer);
  if (before === undefined) {
    return `${name} is the top token from layer ${from.layer} on, the first shown (${start}), and ends at ${end}.`;
  }
  const rival = before.last[0];
  const [led, behindIt] = [rival?.probability.toFixed(2), probabilityIn(before.last, answer)];
  const lead = behindIt === undefined ? "" : ` (${led} against ${behindIt})`;
  return `${name} becomes the top token at layer ${from.layer} (${start}), where layer ${before.layer} still said ${named(rival)}${lead}, and ends at ${end}.`;
}

/** The answer's probability, where it is among the candidates that the lens kept. */
function probabilityIn(candidates: readonly Candidate[], answer: Candidate): string | undefined {
  return candidates.find(({ token_id }) => token_id === answer.token_id)?.probability.toFixed(2);
}

function named(candidate: Candidate | undefined): string {
  return candidate === undefined ? "nothing" : `“${visible(candidate.token)}”`;
}
