import { noWords, type StudyWords } from "./study.js";

/** Texts that one view passes to another; addresses contain no texts. */
export const draft: {
  /** The exact tokens of an answer, with their text. */
  inspect: { tokens: number[]; text: string } | undefined;
  patch: { clean: string; corrupted: string } | undefined;
} = { inspect: undefined, patch: undefined };

const storageKey = "tapline-study";

/** The study's text, saved in this browser. */
export function savedWords(): StudyWords {
  try {
    const found = JSON.parse(localStorage.getItem(storageKey) ?? "{}") as Partial<StudyWords>;
    const texts = Object.entries(noWords).map(([name, empty]) => {
      const value = found[name as keyof StudyWords];
      return [name, typeof value === typeof empty ? value : empty];
    });
    const words = Object.fromEntries(texts) as StudyWords;
    return { ...words, omissions: Array.isArray(words.omissions) ? words.omissions.map(String) : [] };
  } catch {
    return noWords;
  }
}

/** Saves the text; undefined deletes it. */
export function saveWords(words: StudyWords | undefined): void {
  if (words === undefined) localStorage.removeItem(storageKey);
  else localStorage.setItem(storageKey, JSON.stringify(words));
}
