import type { GraphResult } from "../contracts/index.js";
import { visible } from "../text/visible.js";
import { listed } from "../text/words.js";
import { type Finding, sentence } from "./finding.js";
import { nodeName, strongestNodes } from "./graph.js";
import { count, figureOf, percent, signed } from "./numbers.js";

/** How many nodes the sentence names. */
const named = 3;

type Found = Pick<
  GraphResult,
  "tokens" | "targets" | "nodes" | "size" | "scores" | "measured" | "transcoders"
>;

/** First what errors or rounding make of the logit, then where its influence comes from; and how removals compare. */
export function graphFinding(result: Found): Finding {
  const unexplained = result.transcoders === undefined ? roundingSentence(result) : errorSentence(result);
  return {
    says: `${unexplained} ${influenceSentence(result)}`,
    controls: measuredSentence(result),
  };
}

/** What the graph cannot explain of the first target because the file's products round. */
export function roundingSentence({ targets }: Pick<Found, "targets">): string {
  const [first] = targets;
  if (first === undefined) return "";
  const share = Math.abs(first.through.rounding / first.value);
  return (
    `Rounding accounts for ${percent(share)} of the ${targetText(first)} ` +
    `(${figureOf(first.through.rounding)} of ${figureOf(first.value)}).`
  );
}

/** Where the first target comes from, and how much of it no transcoder predicts. */
function errorSentence({ targets, scores }: Pick<Found, "targets" | "scores">): string {
  const [first] = targets;
  if (first === undefined) return "";
  const { errors, embeddings, rest, rounding } = first.through;
  const other = Math.abs(rest) < 0.005 * Math.abs(first.value) ? "" : `, ${signed(rest)} at other features`;
  return (
    `Of the ${targetText(first)}, ${figureOf(first.value)}, ${signed(errors)} starts at transcoder errors, ${signed(embeddings)} at ` +
    `embeddings${other} and ${signed(rounding)} at rounding; ${percent(scores.errors ?? 0)} of the influence starts at errors. Directly, ` +
    `features add ${signed(first.direct.features)} and errors ${signed(first.direct.errors)}.`
  );
}

/** The quantity that is explained. */
export function targetText({ token, foil_token }: GraphResult["targets"][number]): string {
  return foil_token === null
    ? `logit of ${visible(token)} above the mean logit`
    : `logit difference between ${visible(token)} and ${visible(foil_token)}`;
}

function influenceSentence(result: Found): string {
  const { size, scores } = result;
  const strongest = strongestNodes(result).slice(0, named);
  const [one, many] =
    result.transcoders === undefined ? ["neuron or head", "neurons and heads"] : ["feature", "features"];
  if (strongest.length === 0) return `No ${one} is left after pruning.`;
  const names = strongest.map((node) => `${nodeName(result, node)} (${percent(node.influence)})`);
  return (
    `${sentence(listed(names))} ${strongest.length === 1 ? "has" : "have"} the most influence; ` +
    `${count(size.kept, one, many)} of ${size.found} ${size.kept === 1 ? "remains" : "remain"} after pruning. ` +
    `${percent(scores.replacement)} of the influence starts at the prompt's embeddings.`
  );
}

/** How far estimates with everything frozen predict real removals. */
export function measuredSentence({ measured }: Pick<Found, "measured">): string {
  if (measured === null)
    return "No removal was measured, so every figure is an estimate with attention and norms frozen.";
  const { nodes, correlation, interval } = measured;
  const removed = `Each of the ${count(nodes.length, "strongest node")} was also removed with nothing frozen`;
  if (correlation === null || interval === null)
    return `${removed}; there are too few to compare with the estimates.`;
  const agreement =
    correlation >= 0.9
      ? "the effects are close to the estimates"
      : correlation >= 0.6
        ? "the effects are similar to the estimates"
        : "the estimates do not predict the effects";
  return (
    `${removed}: ${agreement} (Pearson correlation ${correlation.toFixed(2)}, ` +
    `95 % interval ${interval.low.toFixed(2)} to ${interval.high.toFixed(2)}).`
  );
}
