import { limits } from "../../contracts/limits.js";
import { spanMarks } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";

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
