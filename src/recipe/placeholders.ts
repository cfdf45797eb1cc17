/**
 * Replaces each object within a value whose only field is `field`, with a text: `{"texts": "stems"}`.
 * @param of the replacement for a name
 */
export function replaced(value: unknown, field: string, of: (name: string) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((entry) => replaced(entry, field, of));
  const { [field]: name, ...others } = value as Record<string, unknown>;
  if (typeof name === "string" && Object.keys(others).length === 0) return of(name);
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  return Object.fromEntries(entries.map(([key, entry]) => [key, replaced(entry, field, of)]));
}
