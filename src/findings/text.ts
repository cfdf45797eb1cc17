import stringWidth from "string-width";
import { unseenCharacters } from "../text/hidden.js";

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
// Joiners and variation selectors that do their work inside an emoji are not hidden characters.
const pictograph = "\\p{Extended_Pictographic}\\uFE0F?\\p{Emoji_Modifier}?";
const emojiOrCharacter = new RegExp(`(${pictograph}(?:\\u200D${pictograph})*)|[^]`, "gu");
const unseen = new RegExp(`^[${unseenCharacters}]$`, "u");
const plain = new RegExp(`^[^${unseenCharacters}\\p{M}]*$`, "u");

/** Columns that a text takes in a terminal: 2 for wide characters and emoji, 0 for combining marks. */
export function width(text: string): number {
  return stringWidth(text);
}

/** What a reader takes for one character each. */
export function graphemes(text: string): Intl.Segments {
  return segmenter.segment(text);
}

/** Whether a text shows all that it holds: most words need no look at each character. */
export function isPlain(text: string): boolean {
  return plain.test(text);
}

/**
 * A token as a reader can tell it from every other: spaces as `·`, line breaks as `↵`, other control characters
 * as their pictures, whatever else leaves no mark (zero-width, bidirectional, private, unassigned) as `<200B>`.
 * Safe to write to a terminal: nothing in it moves the cursor or starts an escape sequence.
 */
export function visible(token: string): string {
  if (token === "") return "∅";
  const text = token.replace(emojiOrCharacter, (part, emoji?: string) => emoji ?? spelled(part));
  // A mark with nothing before it would land on the neighbouring cell.
  return /^\p{M}/u.test(text) ? `◌${text}` : text;
}

/** A text from elsewhere as one line that is safe to write to a terminal; spaces and line breaks are spaces. */
export function oneLine(text: string): string {
  const words = text.split(/[ \t\r\n]+/).filter((word) => word !== "");
  return words.map(visible).join(" ");
}

function spelled(character: string): string {
  const code = character.codePointAt(0) as number;
  if (character === " ") return "·";
  if (character === "\n") return "↵";
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "␡";
  return unseen.test(character) ? `<${code.toString(16).toUpperCase().padStart(4, "0")}>` : character;
}

/** Cuts a text that is too wide, with `…` as its last column. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  if (columns < 1) return "";
  let kept = "";
  for (const { segment } of graphemes(text)) {
    if (width(kept + segment) > columns - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}
