import { hiddenCharacters } from "../../contracts/studies/index.js";

const names: Record<number, string> = {
  0: "null",
  173: "soft hyphen",
  8203: "zero width space",
  8204: "zero width non-joiner",
  8205: "zero width joiner",
  8206: "left-to-right mark",
  8207: "right-to-left mark",
  8234: "left-to-right embedding",
  8235: "right-to-left embedding",
  8236: "pop directional formatting",
  8237: "left-to-right override",
  8238: "right-to-left override",
  8288: "word joiner",
  8294: "left-to-right isolate",
  8295: "right-to-left isolate",
  8296: "first strong isolate",
  8297: "pop directional isolate",
  65279: "byte order mark",
};

export interface HiddenCharacter {
  /** Such as U+202E. */
  code: string;
  /** Its name where it is a known one. */
  name: string;
}

// One object for each character: a text may hold hundreds of thousands, and what shows them keeps its work by object.
const met = new Map<number, HiddenCharacter>();
const mostMet = 1000;

function characterOf(point: number): HiddenCharacter {
  const known = met.get(point);
  if (known !== undefined) return known;
  const character = {
    code: `U+${point.toString(16).toUpperCase().padStart(4, "0")}`,
    name: names[point] ?? (point >= 0xd800 && point <= 0xdfff ? "half a pair" : "invisible"),
  };
  if (met.size < mostMet) met.set(point, character);
  return character;
}

/** A text as alternating visible parts and hidden characters. */
export function splitHidden(text: string): (string | HiddenCharacter)[] {
  const parts: (string | HiddenCharacter)[] = [];
  let end = 0;
  for (const match of text.matchAll(hiddenCharacters)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    parts.push(characterOf(match[0].codePointAt(0) as number));
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}
