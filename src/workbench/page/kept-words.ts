/** The words of the study that is being drafted: a person's, kept in this browser until they are thrown away. */
import { noWords, type StudyWords } from "./study-words.js";

const storageKey = "tapline-study";

export function keptWords(): StudyWords {
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

export function keepWords(words: StudyWords): void {
  localStorage.setItem(storageKey, JSON.stringify(words));
}

export function forgetWords(): void {
  localStorage.removeItem(storageKey);
}
