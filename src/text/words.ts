/** Unicode characters, as the contract counts them. */
export function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** A text cut to a number of characters, `…` where something is missing. */
export function cut(text: string, most: number): string {
  return characters(text) <= most
    ? text
    : `${Array.from(text)
        .slice(0, most - 1)
        .join("")}…`;
}
