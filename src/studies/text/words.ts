import { displayable } from "./display.js";

const longestWord = 64;
/** Limit on the indexed words of a study in bytes, since PostgreSQL's vectors are limited to 1 MB. */
const mostBytes = 400_000;

/** Words of a text, with case and accents folded; everything except letters and digits separates words. */
export function words(text: string): string[] {
  // Via upper case, so that ß becomes ss; both forms of sigma become one letter.
  const folded = displayable(text)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toUpperCase()
    .toLowerCase()
    .replace(/ς/g, "σ");
  const found = folded.match(/[\p{L}\p{N}]+/gu) ?? [];
  return found.map((word) => (word.length > longestWord ? [...word].slice(0, longestWord).join("") : word));
}

/** The distinct words of texts, most important text first, cut before a search vector would overflow. */
export function distinctWords(texts: string[]): string[] {
  const distinct = new Set<string>();
  let bytes = 0;
  for (const word of texts.flatMap(words)) {
    if (distinct.has(word)) continue;
    bytes += Buffer.byteLength(word) + 8;
    if (bytes > mostBytes) break;
    distinct.add(word);
  }
  return [...distinct];
}
