import { hiddenCharacters } from "../text/hidden.js";

/** A text in which every character that nobody sees, or that turns others around, is written as `\u{202E}`. */
export function reveal(text: string): string {
  return text.replace(hiddenCharacters, (character) => {
    const code = character.codePointAt(0) as number;
    return `\\u{${code.toString(16).toUpperCase().padStart(4, "0")}}`;
  });
}

/** The same for every string in a JSON value, names of properties included, and how many were written so. */
export function revealAll(value: unknown): { value: unknown; hidden: number } {
  let hidden = 0;
  const walk = (part: unknown): unknown => {
    if (typeof part === "string") {
      hidden += part.match(hiddenCharacters)?.length ?? 0;
      return reveal(part);
    }
    if (Array.isArray(part)) return part.map(walk);
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(
      Object.entries(part).map(([name, item]) => [walk(name) as string, walk(item)] as const),
    );
  };
  const revealed = walk(value);
  return { value: revealed, hidden };
}
