/** Every string value in a JSON value (not property names), with its pointer. */
export function* strings(value: unknown, pointer = ""): Generator<[pointer: string, text: string]> {
  if (typeof value === "string") {
    yield [pointer, value];
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) yield* strings(item, `${pointer}/${key}`);
  }
}
