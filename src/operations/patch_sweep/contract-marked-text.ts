import { limits } from "../../contracts/limits.js";
import { spanMarks } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";

const [opens, closes] = spanMarks;

/** A text without its marks, and the marked spans in order. */
export interface MarkedText {
  text: string;
  /** `end` is the offset after the span in the unmarked text. */
  spans: { text: string; end: number }[];
}

/**
 * Removes the marks `[[` and `]]` from a text and returns the spans between them. The marks cannot be escaped.
 * @param what how an error names the text
 * @throws UserError for unpaired, nested or empty marks, or if there are none or too many spans
 */
export function readMarks(marked: string, what: string): MarkedText {
  const found: MarkedText = { text: "", spans: [] };
  let open: number | undefined;
  for (const [index, part] of marked.split(/(\[\[|\]\])/).entries()) {
    if (index % 2 === 0) {
      found.text += part;
    } else if (part === opens) {
      if (open !== undefined) throw new UserError(`${what} opens a span with ${opens} inside another span.`);
      open = found.text.length;
    } else {
      if (open === undefined) throw new UserError(`${what} has ${closes} without a matching ${opens}.`);
      const text = found.text.slice(open);
      if (text === "") throw new UserError(`${what} contains an empty span: ${opens}${closes}.`);
      found.spans.push({ text, end: found.text.length });
      open = undefined;
    }
  }
  if (open !== undefined) throw new UserError(`${what} opens a span with ${opens} but does not close it.`);
  if (found.spans.length === 0) {
    throw new UserError(
      `${what} contains no span: with aligned positions, mark each span to patch with ${opens} and ${closes}.`,
    );
  }
  if (found.spans.length > limits.patch_spans) {
    throw new UserError(`${what} contains ${found.spans.length} spans; the limit is ${limits.patch_spans}.`);
  }
  return found;
}
