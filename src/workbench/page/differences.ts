import { sharedPlaces } from "../../findings/difference.js";
import type { AnswerToken, TurnAnswer } from "../wire.js";

export interface Differences {
  /** The first token that is not the same; undefined where they are the same throughout. */
  first: number | undefined;
  /** Tokens of each that the other has not, at their places in the order of both. */
  one: ReadonlySet<number>;
  other: ReadonlySet<number>;
}

/** More pairs of tokens than this are not compared one with another: all behind the first difference counts as one. */
const mostPairs = 1_000_000;

const known = new WeakMap<TurnAnswer, { other: TurnAnswer; differences: Differences }>();

/**
 * What two complete answers do not have in common: all but a longest sequence of tokens that stands in both. It is
 * computed once, and the same object for the same answers.
 */
export function differencesOf(one: TurnAnswer, other: TurnAnswer): Differences {
  const found = known.get(one);
  if (found?.other === other) return found.differences;
  const differences = compare(one, other);
  known.set(one, { other, differences });
  return differences;
}

/**
 * What two answers to one question differ in; undefined for an answer alone, and while either of them is running or where
 * it failed: two failed answers are both empty, which does not make them the same.
 */
export function comparisonOf([one, other]: readonly TurnAnswer[]): Differences | undefined {
  if (one === undefined || other === undefined) return undefined;
  const complete = [one, other].every(({ state }) => state !== "running" && state !== "failed");
  return complete ? differencesOf(one, other) : undefined;
}

/** The comparison of two answers in a sentence, for the page. */
export function differenceSentence({ first, one }: Differences, count: number): string {
  if (first === undefined) return "Both answers are the same, token by token. A stronger change may show.";
  return `First difference: token ${first}. With the interventions, ${one.size} of ${count} tokens differ.`;
}

/** How a question's answers ended, for those who hear the page. */
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
