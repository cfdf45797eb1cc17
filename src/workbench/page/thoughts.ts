/** The summary of an answer's thinking. */
import { count, meanOfKnown } from "../../findings/numbers.js";
import { duration } from "../../terminal/spans.js";

/** More parts would be too narrow to see. */
const mostParts = 48;

/** `Thinking, 17 tokens, 1.4 s`; without the time if it is unknown. */
export function thoughtWords(tokens: number, seconds: number | undefined): string {
  return `Thinking, ${count(tokens, "token")}${seconds === undefined ? "" : `, ${duration(seconds)}`}`;
}

/** At most `most` means of neighbouring values; undefined where no value is known. */
export function meansOf(values: readonly (number | undefined)[], most = mostParts): (number | undefined)[] {
  const parts = Math.min(most, values.length);
  return Array.from({ length: parts }, (_, part) => {
    const [from, to] = [part, part + 1].map((at) => Math.floor((at * values.length) / parts));
    return meanOfKnown(values.slice(from, to));
  });
}
