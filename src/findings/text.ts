import stringWidth from "string-width";
import { unseenCharacters } from "../text/hidden.js";

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
// Joiners and variation selectors inside an emoji are not hidden characters.
const pictograph = "\\p{Extended_Pictographic}\\uFE0F?\\p{Emoji_Modifier}?";
const emojiOrCharacter = new RegExp(`(${pictograph}(?:\\u200D${pictograph})*)|[^]`, "gu");
const unseen = new RegExp(`^[${unseenCharacters}]$`, "u");
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

/**
 * A token with everything visible: spaces as `·`, line breaks as `↵`, other control characters as Unicode control pictures,
 * and other invisible characters (zero-width, bidirectional, private, unassigned) as `<200B>`. Safe to write to a terminal:
 * it contains no control characters.
 */
export function visible(token: string): string {
  if (token === "") return "∅";
  const text = token.replace(emojiOrCharacter, (part, emoji?: string) => emoji ?? spelled(part));
  // A leading combining mark would combine with the neighbouring cell.
  return /^\p{M}/u.test(text) ? `◌${text}` : text;
}

/** An untrusted text as one line that is safe to write to a terminal; whitespace becomes single spaces. */
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
