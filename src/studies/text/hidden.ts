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

/** A text as alternating visible parts and hidden characters. */
export function splitHidden(text: string): (string | HiddenCharacter)[] {
  const parts: (string | HiddenCharacter)[] = [];
  let end = 0;
  for (const match of text.matchAll(hiddenCharacters)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    const point = match[0].codePointAt(0) as number;
    const code = `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
    parts.push({
      code,
      name: names[point] ?? (/\p{Surrogate}/u.test(match[0]) ? "half a pair" : "invisible"),
    });
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}
