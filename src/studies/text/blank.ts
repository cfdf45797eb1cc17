import { hiddenCharacters } from "../../contracts/studies/index.js";

/** Whether a text has no visible characters. */
export function isBlank(text: string): boolean {
  return text.replace(hiddenCharacters, "").replace(/[\s\u2800]/gu, "") === "";
}
