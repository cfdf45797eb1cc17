import { hiddenCharacters } from "../text/hidden.js";

/** Escapes invisible and direction-changing characters, as in `\u{202E}`. */
export function reveal(text: string): string {
  return text.replace(hiddenCharacters, (character) => {
    const code = character.codePointAt(0) as number;
    return `\\u{${code.toString(16).toUpperCase().padStart(4, "0")}}`;
  });
}

/** Escapes every string in a JSON value, including property names, and counts the escaped characters. */
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
