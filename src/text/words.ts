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

/** Names as a sentence lists them: `a, b and c`. */
export function listed(names: readonly string[], word = "and"): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} ${word} ${names.at(-1)}`;
}

/** Bytes as a person reads them. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** step;
  return `${step === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[step]}`;
}

/** A model or place as others may read it: the folders that it lies in tell of a machine and its user. A hub id stays. */
export function publicName(place: string): string {
  if (!/^(?:[/\\~.]|[A-Za-z]:[/\\])/.test(place)) return place;
  return place.split(/[/\\]/).findLast((part) => part !== "") ?? "a model";
}
