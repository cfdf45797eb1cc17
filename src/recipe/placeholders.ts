/**
 * Replaces each object within a value whose only field is `field`, with a text: `{"texts": "stems"}`.
 * @param of the replacement for a name
 */
export function replaced(value: unknown, field: string, of: (name: string) => unknown): unknown {
  return replacedPairs(value, [field], (names) => of(names[field] as string));
}

/** The same for objects with several fields, all of them texts. */
export function replacedPairs(
  value: unknown,
  fields: readonly string[],
  of: (names: Readonly<Record<string, string>>) => unknown,
): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((entry) => replacedPairs(entry, fields, of));
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  const isOne = fields.every((field) => typeof (value as Record<string, unknown>)[field] === "string");
  if (isOne && entries.length === fields.length) return of(Object.fromEntries(entries));
  return Object.fromEntries(entries.map(([key, entry]) => [key, replacedPairs(entry, fields, of)]));
}
