import type { StudyPackage } from "../../contracts/studies/index.js";
import { firstCharacters } from "./display.js";
import { words } from "./words.js";

/** A part of a text, and whether it matches the search. */
export interface Part {
  text: string;
  match: boolean;
}

/** Characters searched per field, and characters of a snippet before and after its first match. */
const mostRead = 20_000;
const [before, after] = [80, 160];
/** Longer words are truncated by folding. */
const shortWord = 64;

/** Splits a text into matching and other parts. @param wanted folded words; the last may be a prefix */
export function matchesIn(text: string, wanted: readonly string[]): Part[] {
  const parts: Part[] = [];
  let end = 0;
  for (const found of text.matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
    if (!isWanted(found[0], wanted)) continue;
    if (found.index > end) parts.push({ text: text.slice(end, found.index), match: false });
    parts.push({ text: found[0], match: true });
    end = found.index + found[0].length;
  }
  if (end < text.length || parts.length === 0) parts.push({ text: text.slice(end), match: false });
  return parts;
}

function isWanted(word: string, wanted: readonly string[]): boolean {
  // Fast path: most words only need lowercasing, and a page of results has thousands.
  const plain = word.length <= shortWord && /^[a-z0-9]*$/i.test(word);
  const folded = plain ? word.toLowerCase() : words(word).join("");
  return wanted.some((one, place) => (place === wanted.length - 1 ? folded.startsWith(one) : folded === one));
}

/** Text around the first match of words that title and question lack; null if there is none. */
export function snippetOf(study: StudyPackage, wanted: readonly string[]): string | null {
  const shown = new Set(words(`${study.title} ${study.question}`));
  const missing = wanted.filter((one, place) =>
    place === wanted.length - 1 ? ![...shown].some((word) => word.startsWith(one)) : !shown.has(one),
  );
  if (missing.length === 0) return null;
  // Only the last word of the query may be a prefix.
  const looked = missing.at(-1) === wanted.at(-1) ? missing : [...missing, "\0"];
  for (const field of [study.finding, study.method, study.hypothesis, study.limitations]) {
    const text = firstCharacters(field, mostRead);
    let at = 0;
    for (const part of matchesIn(text, looked)) {
      if (part.match) return around(text, at, part.text.length);
      at += part.text.length;
    }
  }
  return null;
}

/** Text around a position, cut at spaces, on one line. */
function around(text: string, at: number, length: number): string {
  const from = at <= before ? 0 : text.lastIndexOf(" ", at - before) + 1 || at;
  const to = text.indexOf(" ", at + length + after);
  const cut = text.slice(from, to === -1 ? text.length : to).slice(0, 3 * (before + after));
  return `${from > 0 ? "… " : ""}${cut.replace(/\s+/g, " ").trim()}${to === -1 ? "" : " …"}`;
}
