import { displayable } from "./display.js";

const longestWord = 64;
/** Text kept for search, in bytes of its distinct words: PostgreSQL's vectors end at 1 MB. */
const mostBytes = 400_000;

/** Words of a text: case and accents folded, everything but letters and digits a separator. */
export function words(text: string): string[] {
  // By way of upper case, so that ß is ss; a sigma is one letter wherever in the word it stands.
  const folded = displayable(text)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toUpperCase()
    .toLowerCase()
    .replace(/ς/g, "σ");
  const found = folded.match(/[\p{L}\p{N}]+/gu) ?? [];
  return found.map((word) => (word.length > longestWord ? [...word].slice(0, longestWord).join("") : word));
}

/** The distinct words of texts, most important text first, cut off where a search vector would overflow. */
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
