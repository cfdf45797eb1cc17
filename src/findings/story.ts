import type { Candidate, InspectLayer, InspectResult } from "../contracts/index.js";
import { visible } from "../text/visible.js";
import type { Finding } from "./finding.js";
import { lastTokenLayers } from "./lens.js";

/** What the lens reads, and that nothing controls it. */
export function inspectFinding(result: Parameters<typeof story>[0]): Finding {
  const read = lastTokenLayers(result).some(({ predictions }) => predictions !== undefined);
  return {
    says: story(result),
    controls: read
      ? "A lens has no control: to test whether the answer is decided at a layer, patch or ablate it and compare the answers."
      : "",
  };
}

/**
 * One sentence about the last token: the layer from which the model's answer is the lens's top token in all later captured
 * layers, and the final probability.
 */
export function story(
  result: Pick<InspectResult, "layers" | "all_layers" | "next_tokens" | "target_token_id">,
): string {
  const answer = result.next_tokens[0];
  if (answer === undefined) return "The model predicted no next token.";
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
  const other = read.findLastIndex(({ last }) => last[0]?.token_id !== answer.token_id);
  const [before, from] = [read[other], read[other + 1]];
  if (from === undefined) {
    return `Layer ${deepest.layer}, the last captured, still predicts ${named(deepest.last[0])}; the model predicts ${name} (${end}).`;
  }
  const start = from.answer?.probability.toFixed(2);
  if (before === undefined) {
    return `${name} is on top from layer ${from.layer}, the first captured (${start}), and ends at ${end}.`;
  }
  const rival = before.last[0];
  const [led, behind] = [rival?.probability.toFixed(2), before.answer?.probability.toFixed(2)];
  const [first, last] = [before.layer + 1, from.layer - 1];
  const notes = [
    ...(behind === undefined ? [] : [`${led} against ${behind}`]),
    ...(last < first
      ? []
      : [`${first === last ? `layer ${first}` : `layers ${first}–${last}`} not captured`]),
  ];
  const note = notes.length === 0 ? "" : ` (${notes.join("; ")})`;
  const top =
    from === deepest && start === end
      ? `only at layer ${from.layer} (${end})`
      : `by layer ${from.layer} (${start}) and ends at ${end}`;
  return `${name} is on top ${top}; at layer ${before.layer} it was still ${named(rival)}${note}.`;
}

/** The model's answer in a layer's lens after the last token, if it was tracked or is among the recorded candidates. */
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
