/** Lists as people type them. */

/** Lines that hold anything. */
export function linesOf(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line.trim() !== "");
}

const partsOf = (text: string) => text.split(/[\s,]+/).filter((part) => part !== "");

/** @returns the indices that a text names, as `0, 3, 5-7`; undefined for none @throws Error */
export function parseLayers(text: string, what = "Layers"): number[] | undefined {
  const parts = partsOf(text).flatMap((part) => {
    const [, first, last = first] = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(part) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (!(from <= to)) throw new Error(`${what} are numbers and ranges as 0, 3, 5-7; got ${part}.`);
    return Array.from({ length: to - from + 1 }, (_, at) => from + at);
  });
  return parts.length === 0 ? undefined : [...new Set(parts)];
}

/** @returns whole numbers, negative ones among them @throws Error */
export function numbersOf(text: string, what: string): number[] {
  const parts = partsOf(text);
  const odd = parts.find((part) => !/^-?\d{1,6}$/.test(part));
  if (odd !== undefined) throw new Error(`${what} are whole numbers as 0, 3, -1; got ${odd}.`);
  if (parts.length === 0) throw new Error(`${what}: name at least one.`);
  return [...new Set(parts.map(Number))];
}
