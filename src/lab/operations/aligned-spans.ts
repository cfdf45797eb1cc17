import { limits } from "../../contracts/limits.js";
import { spanMarks } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import type { Model } from "../../native/index.js";

const [opens, closes] = spanMarks;

/** A text without its marks, and what stood between them, in the order of the text. */
export interface MarkedText {
  text: string;
  /** `end` is the offset behind the span, in the text without marks. */
  spans: { text: string; end: number }[];
}

/**
 * Takes the marks out of a text in which spans stand between `[[` and `]]`. There is no way to write the marks themselves.
 * @param what how an error names the text
 * @throws UserError where marks do not pair, are nested, or hold nothing; where there are none, or too many
 */
export function readMarks(marked: string, what: string): MarkedText {
  const found: MarkedText = { text: "", spans: [] };
  let open: number | undefined;
  for (const [index, part] of marked.split(/(\[\[|\]\])/).entries()) {
    if (index % 2 === 0) {
      found.text += part;
    } else if (part === opens) {
      if (open !== undefined) throw new UserError(`${what} opens a span with ${opens} inside of another.`);
      open = found.text.length;
    } else {
      if (open === undefined)
        throw new UserError(`${what} has ${closes} where no span was opened with ${opens}.`);
      const text = found.text.slice(open);
      if (text === "") throw new UserError(`${what} marks a span without any text: ${opens}${closes}.`);
      found.spans.push({ text, end: found.text.length });
      open = undefined;
    }
  }
  if (open !== undefined) throw new UserError(`${what} opens a span with ${opens} that is not closed.`);
  if (found.spans.length === 0) {
    throw new UserError(
      `${what} marks no span: with aligned positions, write what is patched between ${opens} and ${closes}.`,
    );
  }
  if (found.spans.length > limits.patch_spans) {
    throw new UserError(
      `${what} marks ${found.spans.length} spans; at most ${limits.patch_spans} are aligned.`,
    );
  }
  return found;
}

/**
 * The index of each span's last token. The text up to there must have the same tokens by itself as it has in the whole,
 * so that a span ends where a token ends whatever the vocabulary is.
 * @param tokens of the whole text, with what the model wants around it
 * @throws UserError where a span ends inside a token
 */
export async function lastTokens(
  model: Model,
  tokens: Int32Array,
  { text, spans }: MarkedText,
  what: string,
): Promise<number[]> {
  const bare = (part: string) => model.tokenize(part, { special: false, parseSpecial: false });
  const whole = await bare(text);
  const before = tokens.length - whole.length; // a BOS token; what is put behind the text as well
  const first = Array.from({ length: Math.max(0, before) + 1 }, (_, start) => start).find((start) =>
    whole.every((token, index) => tokens[start + index] === token),
  );
  const ends: number[] = [];
  for (const [index, span] of spans.entries()) {
    const begin = await bare(text.slice(0, span.end));
    if (first === undefined || begin.length === 0 || begin.some((token, at) => whole[at] !== token)) {
      throw new UserError(
        `${what}: span ${index}, ${JSON.stringify(span.text)}, does not end where a token ends; let it end with a whole ` +
          "word, before the space that belongs to the next one.",
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
