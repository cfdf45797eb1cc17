import { mcpLimits } from "../contracts/mcp.js";

/** A value that a result shows in part. */
export interface Cut {
  /** JSON pointer. */
  pointer: string;
  /** Characters of a text, items of an array. */
  total: number;
  shown: number;
}

export interface Excerpt {
  value: unknown;
  cut: Cut[];
}

/** From generous to tight: limits on characters per text and items per array. */
const levels: readonly [characters: number, items: number][] = [
  [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  [mcpLimits.piece_characters, 100],
  [4000, 50],
  [1000, 20],
  [200, 8],
  [120, 4],
];

/** Length of a value's JSON. */
export function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}

/** A JSON value that fits into a result, with long texts and arrays cut if necessary. */
export function excerpt(value: unknown, pointer = "", budget: number = mcpLimits.page_characters): Excerpt {
  let found: Excerpt = { value, cut: [] };
  for (const [characters, items] of levels) {
    found = { value: undefined, cut: [] };
    found.value = shorten(value, pointer, characters, items, found.cut);
    if (sizeOf(found.value) + sizeOf(found.cut) <= budget) break;
  }
  return found;
}

function shorten(value: unknown, pointer: string, characters: number, items: number, cut: Cut[]): unknown {
  if (typeof value === "string") {
    if (value.length <= characters) return value; // a text has at most as many characters as UTF-16 units
    const [shown, total] = part(value, 0, characters);
    if (total > characters) cut.push({ pointer, total, shown: characters });
    return shown;
  }
  if (Array.isArray(value)) {
    if (value.length > items) cut.push({ pointer, total: value.length, shown: items });
    return value
      .slice(0, items)
      .map((item, index) => shorten(item, `${pointer}/${index}`, characters, items, cut));
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      shorten(item, `${pointer}/${name.replace(/~/g, "~0").replace(/\//g, "~1")}`, characters, items, cut),
    ]),
  );
}

/** `count` characters (code points) of a text from an offset, and its total length. */
function part(text: string, from: number, count: number): [shown: string, total: number] {
  const points = [...text];
  return [points.slice(from, from + count).join(""), points.length];
}

/** The leading items that fit into a budget; at least the first, possibly as an excerpt. */
export function pageOf<T>(
  items: readonly T[],
  pointerOf: (index: number) => string,
  budget: number,
): { items: T[]; cut: Cut[] } {
  const page: { items: T[]; cut: Cut[] } = { items: [], cut: [] };
  let left = budget;
  for (const [index, item] of items.entries()) {
    const size = sizeOf(item) + 2;
    if (size > left && index > 0) break;
    const { value, cut } = excerpt(item, pointerOf(index), left);
    page.items.push(value as T);
    page.cut.push(...cut);
    left -= sizeOf(value) + 2;
  }
  return page;
}

/** A piece of a value that a result has cut. */
export interface Piece {
  pointer: string;
  offset: number;
  /** Characters of the text, items of the array; null for anything else. */
  total: number | null;
  next_offset: number | null;
  value: unknown;
  cut: Cut[];
}

/**
 * The value at a JSON pointer: of a text or array, as much as fits from an offset; of anything else, an excerpt. Undefined
 * if there is no value.
 */
export function pieceAt(root: unknown, pointer: string, offset: number): Piece | undefined {
  const value = lookUp(root, pointer);
  if (value === undefined) return undefined;
  const piece = (shown: unknown, total: number | null, count: number, cut: Cut[] = []): Piece => ({
    pointer,
    offset,
    total,
    next_offset: total !== null && offset + count < total ? offset + count : null,
    value: shown,
    cut,
  });
  if (typeof value === "string") {
    const [shown, total] = part(value, offset, mcpLimits.piece_characters);
    return piece(shown, total, mcpLimits.piece_characters);
  }
  if (Array.isArray(value)) {
    const place = (index: number) => `${pointer}/${offset + index}`;
    const { items, cut } = pageOf(value.slice(offset), place, mcpLimits.page_characters / 2);
    return piece(items, value.length, items.length, cut);
  }
  const found = excerpt(value, pointer, mcpLimits.page_characters / 2);
  return piece(found.value, null, 0, found.cut);
}

function lookUp(root: unknown, pointer: string): unknown {
  if (pointer === "") return root;
  if (!pointer.startsWith("/")) return undefined;
  return pointer
    .slice(1)
    .split("/")
    .map((name) => name.replace(/~1/g, "/").replace(/~0/g, "~"))
    .reduce<unknown>((value, name) => {
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
      if (Array.isArray(value) && name === "length") return undefined;
      return (value as Record<string, unknown>)[name];
    }, root);
}
