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

/** A run of the same hidden character. */
export interface HiddenRun {
  /** Such as U+202E. */
  code: string;
  /** Its name, or a description. */
  name: string;
  count: number;
}

// Characters that join an emoji sequence are visible as part of the emoji.
const joinsEmoji =
  /(?<=\p{Extended_Pictographic})\uFE0F|(?<=[0-9#*])\uFE0F(?=\u20E3)|(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\uFE0F)\u200D(?=\p{Extended_Pictographic})/u;

// Group repetitions into runs: a text may have hundreds of thousands of hidden characters.
const runs = new RegExp(`(?!${joinsEmoji.source})(${hiddenCharacters.source})\\1*`, "gu");

function runOf(text: string): HiddenRun {
  const point = text.codePointAt(0) as number;
  return {
    code: `U+${point.toString(16).toUpperCase().padStart(4, "0")}`,
    name: names[point] ?? (point >= 0xd800 && point <= 0xdfff ? "unpaired surrogate" : "invisible"),
    count: text.length / (point > 0xffff ? 2 : 1),
  };
}

/** Splits a text into visible parts and runs of hidden characters. */
export function* splitHidden(text: string): Generator<string | HiddenRun> {
  let end = 0;
  for (const match of text.matchAll(runs)) {
    if (match.index > end) yield text.slice(end, match.index);
    yield runOf(match[0]);
    end = match.index + match[0].length;
  }
  if (end < text.length) yield text.slice(end);
}
