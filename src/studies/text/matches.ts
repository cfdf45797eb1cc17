import type { StudyPackage } from "../../contracts/studies/index.js";
import { firstCharacters } from "./display.js";
import { words } from "./words.js";

/** A part of a text, and whether it is a word that was looked for. */
export interface Part {
  text: string;
  match: boolean;
}

/** Characters of a field that are looked through, and of a snippet on either side of its first match. */
const mostRead = 20_000;
const [before, after] = [80, 160];
/** Longer words are cut where words are folded. */
const shortWord = 64;

/** A text cut into what was looked for and what was not. @param wanted folded words, of which the last may be a beginning */
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
  // Most words have nothing to be folded but their capitals, and a page of results has thousands.
  const plain = word.length <= shortWord && /^[a-z0-9]*$/i.test(word);
  const folded = plain ? word.toLowerCase() : words(word).join("");
  return wanted.some((one, place) => (place === wanted.length - 1 ? folded.startsWith(one) : folded === one));
}

/** Where a study has the words that its title and question lack: some text around the first; null where it has none there. */
export function snippetOf(study: StudyPackage, wanted: readonly string[]): string | null {
  const shown = new Set(words(`${study.title} ${study.question}`));
  const missing = wanted.filter((one, place) =>
    place === wanted.length - 1 ? ![...shown].some((word) => word.startsWith(one)) : !shown.has(one),
  );
  if (missing.length === 0) return null;
  // Only the last word that was typed may be a beginning.
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

/** Text around a place, from one space to another, on one line. */
function around(text: string, at: number, length: number): string {
  const from = at <= before ? 0 : text.lastIndexOf(" ", at - before) + 1 || at;
  const to = text.indexOf(" ", at + length + after);
  const cut = text.slice(from, to === -1 ? text.length : to).slice(0, 3 * (before + after));
  return `${from > 0 ? "… " : ""}${cut.replace(/\s+/g, " ").trim()}${to === -1 ? "" : " …"}`;
}
