/** Number of Unicode characters, as counted by the contract. */
export function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Truncates a text to a number of characters, ending in `…`. */
export function cut(text: string, most: number): string {
  return characters(text) <= most
    ? text
    : `${Array.from(text)
        .slice(0, most - 1)
        .join("")}…`;
}

/** Names in a sentence: `a, b and c`. */
export function listed(names: readonly string[], word = "and"): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} ${word} ${names.at(-1)}`;
}

/** A readable number of bytes. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** step;
  return `${step === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[step]}`;
}

/** A model or path for publication: without folders, which would reveal the machine and its user. Hub ids stay. */
export function publicName(place: string): string {
  if (!/^(?:[/\\~.]|[A-Za-z]:[/\\])/.test(place)) return place;
  return place.split(/[/\\]/).findLast((part) => part !== "") ?? "a model";
}
