import stringWidth from "string-width";
import { unseenCharacters } from "../text/hidden.js";
import { visible } from "../text/visible.js";

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const plain = new RegExp(`^[^${unseenCharacters}\\p{M}]*$`, "u");

/** Width of a text in terminal columns: 2 for wide characters and emoji, 0 for combining marks. */
export function width(text: string): number {
  return stringWidth(text);
}

/** User-perceived characters. */
export function graphemes(text: string): Intl.Segments {
  return segmenter.segment(text);
}

/** Whether a text has no hidden characters; a shortcut for most words. */
export function isPlain(text: string): boolean {
  return plain.test(text);
}

/** An untrusted text as one line that is safe to write to a terminal; whitespace becomes single spaces. */
export function oneLine(text: string): string {
  const words = text.split(/[ \t\r\n]+/).filter((word) => word !== "");
  return words.map(visible).join(" ");
}

/** Truncates a text to a width, ending in `…`. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  if (columns < 1) return "";
  let start = "";
  for (const { segment } of graphemes(text)) {
    if (width(start + segment) > columns - 1) break;
    start += segment;
  }
  return `${start}…`;
}
