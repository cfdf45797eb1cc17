/** Moves every titled schema to the components and replaces it with a reference. */
export function withReferences(schema: unknown, components: Record<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((entry) => withReferences(entry, components));
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, withReferences(value, components)]),
  );
  if (Array.isArray(copy.items)) {
    // A tuple, in the syntax of the JSON Schema draft that OpenAPI 3.1 uses.
    copy.prefixItems = copy.items;
    copy.items = false;
    delete copy.additionalItems;
  }
  if (typeof copy.title !== "string") return copy;
  const { title, ...rest } = copy;
  components[title] = rest;
  return { $ref: `#/components/schemas/${title}` };
}
