/** What is said of an answer's thoughts while they are folded. */
import { meanOfKnown } from "../../findings/numbers.js";
import { duration } from "../../terminal/spans.js";

/** More parts than this are too thin to be told apart. */
const mostParts = 48;

/** `Thinking, 17 tokens, 1.4 s`; the time where it is known. */
export function thoughtWords(count: number, seconds: number | undefined): string {
  const time = seconds === undefined ? "" : `, ${duration(seconds)}`;
  return `Thinking, ${count === 1 ? "1 token" : `${count} tokens`}${time}`;
}

/** At most so many means, each of neighbours; undefined where none of them is known. */
export function meansOf(values: readonly (number | undefined)[], most = mostParts): (number | undefined)[] {
  const count = Math.min(most, values.length);
  return Array.from({ length: count }, (_, part) => {
    const [from, to] = [part, part + 1].map((at) => Math.floor((at * values.length) / count));
    return meanOfKnown(values.slice(from, to));
  });
}
