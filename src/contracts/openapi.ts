/** Moves every titled schema to the components and leaves a reference in its place. */
export function withReferences(schema: unknown, components: Record<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((entry) => withReferences(entry, components));
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, withReferences(value, components)]),
  );
  if (Array.isArray(copy.items)) {
    // A tuple, in the words of the draft that OpenAPI 3.1 is written in.
    copy.prefixItems = copy.items;
    copy.items = false;
    delete copy.additionalItems;
  }
  if (typeof copy.title !== "string") return copy;
  const { title, ...rest } = copy;
  components[title] = rest;
  return { $ref: `#/components/schemas/${title}` };
}
