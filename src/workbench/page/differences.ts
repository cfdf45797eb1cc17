import { sharedPlaces } from "../../findings/difference.js";
import type { AnswerToken, TurnAnswer } from "../wire.js";
import type { DifferingWords } from "./words.js";

export interface Differences {
  /** The first token that differs; undefined for identical answers. */
  first: number | undefined;
  /** Indices of the tokens of each answer that the other one does not share. */
  one: ReadonlySet<number>;
  other: ReadonlySet<number>;
}

/** Above this number of token pairs, everything after the first difference counts as different. */
const mostPairs = 1_000_000;

const known = new WeakMap<TurnAnswer, { other: TurnAnswer; differences: Differences }>();

/**
 * The tokens of two complete answers outside their longest common subsequence. Computed once: the same answers get the
 * same object.
 */
export function differencesOf(one: TurnAnswer, other: TurnAnswer): Differences {
  const found = known.get(one);
  if (found?.other === other) return found.differences;
  const differences = compare(one, other);
  known.set(one, { other, differences });
  return differences;
}

/**
 * The differences of two answers to one question. Undefined for a single answer, and if either is running or failed: two
 * failed answers are both empty, but not identical.
 */
export function comparisonOf([one, other]: readonly TurnAnswer[]): Differences | undefined {
  if (one === undefined || other === undefined) return undefined;
  const complete = [one, other].every(({ state }) => state !== "running" && state !== "failed");
  return complete ? differencesOf(one, other) : undefined;
}

/** The comparison as a sentence for the page; `words` are those of the answer with interventions. */
export function differenceSentence({ first }: Differences, { words, of }: DifferingWords): string {
  if (first === undefined) return "The answers are identical. Try a stronger intervention.";
  return `${words} of ${of} words differ from the unmodified answer, starting at token ${first}.`;
}

/** How a question's answers ended, for screen readers. */
export function doneSentence(answers: readonly TurnAnswer[]): string {
  if (answers.some(({ state }) => state === "failed")) return "an answer failed";
  const count = answers[0]?.tokens.length ?? 0;
  const tokens = count === 1 ? "done, 1 token" : `done, ${count} tokens`;
  const differences = comparisonOf(answers);
  return differences === undefined ? tokens : `${tokens}, ${differences.one.size} differ`;
}

function compare(one: TurnAnswer, other: TurnAnswer): Differences {
  const [left, right] = [one.tokens.map(nameOf), other.tokens.map(nameOf)];
  const most = Math.min(left.length, right.length);
  let begin = 0;
  while (begin < most && left[begin] === right[begin]) begin += 1;
  let end = 0;
  while (end < most - begin && left.at(-1 - end) === right.at(-1 - end)) end += 1;
  const first = begin === left.length && begin === right.length ? undefined : begin;
  const [ours, theirs] = [left.slice(begin, left.length - end), right.slice(begin, right.length - end)];
  const shared = ours.length * theirs.length > mostPairs ? [] : sharedPlaces(ours, theirs);
  return {
    first,
    one: without(begin, ours.length, new Set(shared.map(([at]) => at))),
    other: without(begin, theirs.length, new Set(shared.map(([, at]) => at))),
  };
}

function nameOf({ id, text }: AnswerToken): string {
  return `${id ?? ""} ${text}`;
}

function without(begin: number, length: number, shared: ReadonlySet<number>): Set<number> {
  const all = Array.from({ length }, (_, at) => at);
  return new Set(all.filter((at) => !shared.has(at)).map((at) => begin + at));
}
