import { unseenCharacters } from "./hidden.js";

// Joiners and variation selectors inside an emoji are not hidden characters.
const pictograph = "\\p{Extended_Pictographic}\\uFE0F?\\p{Emoji_Modifier}?";
const emojiOrCharacter = new RegExp(`(${pictograph}(?:\\u200D${pictograph})*)|[^]`, "gu");
const unseen = new RegExp(`^[${unseenCharacters}]$`, "u");

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

function spelled(character: string): string {
  const code = character.codePointAt(0) as number;
  if (character === " ") return "·";
  if (character === "\n") return "↵";
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "␡";
  return unseen.test(character) ? `<${code.toString(16).toUpperCase().padStart(4, "0")}>` : character;
}
