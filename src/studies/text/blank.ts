import { hiddenCharacters } from "../../contracts/studies/index.js";

/** Whether a reader would see nothing: white space, hidden characters, and the Braille pattern without dots. */
export function isBlank(text: string): boolean {
  return text.replace(hiddenCharacters, "").replace(/[\s\u2800]/gu, "") === "";
}
