import type { AnswerToken } from "../wire.js";

/** Words of an answer that the other answer does not share. */
export interface DifferingWords {
  /** Every token of these words. */
  tokens: ReadonlySet<number>;
  words: number;
  /** All words of the answer. */
  of: number;
}

/** Widens differing tokens to the whole words that contain them; words are separated by whitespace. */
export function wholeWords(tokens: readonly AnswerToken[], differing: ReadonlySet<number>): DifferingWords {
  const words: number[][] = [];
  let isOpen = false;
  for (const [at, { text }] of tokens.entries()) {
    if (text === "") continue;
    const last = words.at(-1);
    if (last === undefined || !isOpen || /^\s/.test(text)) words.push([at]);
    else last.push(at);
    isOpen = !/\s$/.test(text);
  }
  const marked = words.filter((word) => word.some((at) => differing.has(at)));
  return {
    tokens: new Set([...marked.flat(), ...differing]),
    words: marked.length,
    of: words.length,
  };
}
