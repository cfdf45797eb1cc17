/** Parses numbers and lists in addresses and form fields. */

/** A number in the query; undefined without one. */
export function numberIn(
  query: URLSearchParams,
  name: string,
  pattern = /^-?\d{1,8}(?:\.\d{1,8})?$/,
): number | undefined {
  const text = query.get(name);
  return text !== null && pattern.test(text) ? Number(text) : undefined;
}

/** Non-blank lines. */
export function linesOf(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line.trim() !== "");
}

const partsOf = (text: string) => text.split(/[\s,]+/).filter((part) => part !== "");

/** @returns the indices in a text such as `0, 3, 5-7`; undefined for an empty one @throws Error */
export function parseLayers(text: string, what = "Layers"): number[] | undefined {
  const parts = partsOf(text).flatMap((part) => {
    const [, first, last = first] = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(part) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (!(from <= to))
      throw new Error(`${what}: expected numbers and ranges such as 0, 3, 5-7; got ${part}.`);
    return Array.from({ length: to - from + 1 }, (_, at) => from + at);
  });
  return parts.length === 0 ? undefined : [...new Set(parts)];
}

/** @returns integers, which may be negative @throws Error */
export function numbersOf(text: string, what: string): number[] {
  const parts = partsOf(text);
  const odd = parts.find((part) => !/^-?\d{1,6}$/.test(part));
  if (odd !== undefined) throw new Error(`${what}: expected integers such as 0, 3, -1; got ${odd}.`);
  if (parts.length === 0) throw new Error(`${what}: enter at least one.`);
  return [...new Set(parts.map(Number))];
}
