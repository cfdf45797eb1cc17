/** How a contrast set's difference is recognized in an answer. */
export type Expected = { markers: string[] } | { shorter: true };

/** An answer's text, and its perplexity for the unmodified model. */
export interface ScoredAnswer {
  text: string;
  perplexity: number;
}

/** An answer is fluent up to this multiple of the perplexity of the model's own answer. */
const mostPerplexing = 4;
/** Below this perplexity, an answer is fluent whatever the model's own is. */
const alwaysFluent = 8;
/** An answer is repetitive if fewer of its word triples are distinct. */
const leastDistinct = 0.6;

/** How many occurrences of the set's words a text has. */
export function markerCount(text: string, markers: readonly string[]): number {
  return markers.reduce((sum, marker) => sum + [...text.matchAll(patternOf(marker))].length, 0);
}

/** A whole word in any case; punctuation anywhere. */
function patternOf(marker: string): RegExp {
  const literal = marker.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const before = /^[\p{L}\p{N}]/u.test(marker) ? "(?<![\\p{L}\\p{N}'’])" : "";
  const after = /[\p{L}\p{N}]$/u.test(marker) ? "(?![\\p{L}\\p{N}])" : "";
  return new RegExp(before + literal + after, "giu");
}

export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

/** Whether an answer has moved along the set's direction, compared with the model's own answer. */
export function isAsExpected(answer: string, own: string, expected: Expected): boolean {
  if ("shorter" in expected) {
    const [ours, theirs] = [wordsOf(answer).length, wordsOf(own).length];
    return ours > 0 && ours <= theirs * 0.6;
  }
  const [ours, theirs] = [answer, own].map((text) => markerCount(text, expected.markers)) as [number, number];
  return ours >= theirs + 1 && ours >= 2 * theirs;
}

/** Whether an answer is language: not much more perplexing than the model's own answer, and not in a loop. */
export function isFluent({ text, perplexity }: ScoredAnswer, own: ScoredAnswer): boolean {
  return perplexity <= Math.max(alwaysFluent, mostPerplexing * own.perplexity) && !isLoop(text);
}

/** Whether a text repeats itself: its word triples, or a single character. */
export function isLoop(text: string): boolean {
  if (/(\S)\1{7}/u.test(text) || /(\S{1,12}?)\1{4}/u.test(text)) return true;
  const words = wordsOf(text.toLowerCase());
  const triples = words.slice(2).map((word, at) => `${words[at]} ${words[at + 1]} ${word}`);
  return triples.length >= 5 && new Set(triples).size < leastDistinct * triples.length;
}

/** The answers at one strength: how many are different, as expected and fluent. */
export interface MeasuredStrength {
  strength: number;
  changed: number;
  expected: number;
  fluent: number;
  /** As expected and fluent. */
  both: number;
  of: number;
}

export function measureStrength(
  strength: number,
  answers: readonly ScoredAnswer[],
  own: readonly ScoredAnswer[],
  expected: Expected,
): MeasuredStrength {
  const pairs = answers.map((answer, at) => [answer, own[at] as ScoredAnswer] as const);
  const count = (test: (answer: ScoredAnswer, own: ScoredAnswer) => boolean) =>
    pairs.filter(([answer, base]) => test(answer, base)).length;
  const works = (answer: ScoredAnswer, base: ScoredAnswer) => isAsExpected(answer.text, base.text, expected);
  return {
    strength,
    changed: count((answer, base) => answer.text !== base.text),
    expected: count(works),
    fluent: count(isFluent),
    both: count((answer, base) => works(answer, base) && isFluent(answer, base)),
    of: answers.length,
  };
}

/** Where a direction works on a model. */
export interface StrengthRange {
  /** The strength to begin with. */
  start: number;
  /** The weakest strength at which an answer is as expected and fluent; null if there is none. */
  from: number | null;
  /** The strongest strength at which most answers are fluent. */
  to: number;
}

/**
 * The range of a slider from measured strengths: it begins where most answers are as expected and fluent, at the middle one of
 * equals. Undefined if no strength leaves most answers fluent.
 */
export function strengthRange(measured: readonly MeasuredStrength[]): StrengthRange | undefined {
  const rising = measured.toSorted((a, b) => a.strength - b.strength);
  const fluent = rising.filter((one) => 2 * one.fluent > one.of);
  const to = fluent.at(-1)?.strength;
  if (to === undefined) return undefined;
  const best = Math.max(...rising.map(({ both }) => both));
  if (best === 0) return { start: to, from: null, to };
  const equals = rising.filter(({ both }) => both === best);
  const start = equals[Math.floor((equals.length - 1) / 2)]?.strength as number;
  const from = rising.find(({ both }) => both > 0)?.strength as number;
  return { start, from, to: Math.max(to, start) };
}
