import { UserError } from "../../contracts/user-error.js";
import type { Model } from "../../native/index.js";
import type { MarkedText } from "./contract-marked-text.js";

/**
 * The index of each span's last token. The text up to a span's end must tokenize alone as it does within the whole text,
 * so that the span ends at a token boundary with any vocabulary.
 * @param tokens tokens of the whole text, including those that the model adds
 * @throws UserError for a span that ends inside a token
 */
export async function lastTokens(
  model: Model,
  tokens: Int32Array,
  { text, spans }: MarkedText,
  what: string,
): Promise<number[]> {
  const bare = (part: string) => model.tokenize(part, { special: false, parseSpecial: false });
  const whole = await bare(text);
  const before = tokens.length - whole.length; // BOS, and tokens added after the text
  const first = Array.from({ length: Math.max(0, before) + 1 }, (_, start) => start).find((start) =>
    whole.every((token, index) => tokens[start + index] === token),
  );
  const ends: number[] = [];
  for (const [index, span] of spans.entries()) {
    const begin = await bare(text.slice(0, span.end));
    if (first === undefined || begin.length === 0 || begin.some((token, at) => whole[at] !== token)) {
      throw new UserError(
        `${what}: span ${index}, ${JSON.stringify(span.text)}, does not end at a token boundary. End it after a whole ` +
          "word, before the space of the next one.",
      );
    }
    const end = first + begin.length - 1;
    if (end === ends.at(-1)) {
      throw new UserError(`${what}: spans ${index - 1} and ${index} end with the same token.`);
    }
    ends.push(end);
  }
  return ends;
}
