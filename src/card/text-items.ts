import type { ServingModel } from "../client/index.js";
import type { Arm } from "./arms.js";
import type { ChoiceQuestion } from "./data/questions.js";
import {
  commonStart,
  continuationScore,
  crossEntropy,
  meanDivergence,
  scoreEnds,
  scoreText,
} from "./forward.js";
import type { ArmItems } from "./measure.js";

type TextItems = Required<Pick<ArmItems, "cross_entropy">> & Pick<ArmItems, "divergence">;

/**
 * Cross-entropy of each arm, and its divergence from the unedited model, the first arm. Text by text, so that the unedited
 * model's distributions are computed once and those of one text are in memory.
 */
export async function textItems(
  serving: ServingModel,
  arms: readonly Arm[],
  texts: readonly string[],
  signal: AbortSignal | undefined,
): Promise<TextItems[]> {
  const measured = arms.map(() => ({ entropies: [] as number[], divergences: [] as number[] }));
  const weights: number[] = [];
  for (const text of texts) {
    const [base, ...edited] = arms as [Arm, ...Arm[]];
    const plain = await scoreText(serving, text, base, signal);
    const { value, weight } = crossEntropy(plain);
    weights.push(weight);
    measured[0]?.entropies.push(value);
    for (const [index, arm] of edited.entries()) {
      const own = await scoreText(serving, text, arm, signal);
      measured[index + 1]?.entropies.push(crossEntropy(own).value);
      measured[index + 1]?.divergences.push(meanDivergence(plain, own));
    }
  }
  return measured.map(({ entropies, divergences }, index) => ({
    cross_entropy: { values: entropies, weights },
    ...(index > 0 && { divergence: { values: divergences, weights } }),
  }));
}

/** For each arm, whether the first choice of each question has the greatest log-probability per token. */
export async function choiceItems(
  serving: ServingModel,
  arms: readonly Arm[],
  questions: readonly ChoiceQuestion[],
  signal: AbortSignal | undefined,
): Promise<number[][]> {
  const right = arms.map(() => [] as number[]);
  for (const { question, choices } of questions) {
    const context = `Question: ${question}\nAnswer:`;
    const tokens = Float32Array.from(await serving.tokenize(context, { signal }));
    const sequences: number[][] = [];
    for (const choice of choices) sequences.push(await serving.tokenize(`${context} ${choice}`, { signal }));
    const ends = 1 + Math.max(...sequences.map((ids) => ids.length - commonStart(ids, tokens)));
    for (const [index, arm] of arms.entries()) {
      const scored = await scoreEnds(serving, sequences, ends, arm, signal);
      const scores = scored.map((each) => continuationScore(each, tokens));
      right[index]?.push(Number(scores.every((score, at) => at === 0 || score < (scores[0] as number))));
    }
  }
  return right;
}
