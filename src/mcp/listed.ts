import Type, { type TSchema } from "typebox";

/**
 * Short schemas for `tools/list`, since hosts put all of them into the model's context: results are named but not spelled
 * out, and lab_operation returns the full submission schemas. Calls are validated against the full schemas.
 */

/** Longest description of a field in tools/list. */
const fieldCharacters = 60;
/** Schema keywords that only validation needs. */
const checks = [
  ...["title", "additionalProperties", "additionalItems", "minItems", "uniqueItems"],
  ...["minLength", "maxLength", "pattern"],
];
/** Bounds this far from 0 are omitted. */
const farBound = 1_000_000;

type Json = Record<string, unknown>;

/** An input schema whose fields have no lengths, patterns and far bounds, and descriptions of one clause. */
export function brief<S extends TSchema>(schema: S): S {
  const { properties = {}, ...rest } = schema as S & { properties?: Json };
  const fields = Object.entries(properties).map(([name, field]) => [name, trimmed(field)]);
  return { ...rest, properties: Object.fromEntries(fields) } as unknown as S;
}

function trimmed(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(trimmed);
  if (typeof part !== "object" || part === null) return part;
  const rest = Object.entries(part as Json)
    .filter(([name, value]) => !checks.includes(name) && !isFarBound(name, value))
    .map(([name, value]) => {
      // Field names are not keywords: a field may be called maxLength.
      if (name === "properties") {
        return [
          name,
          Object.fromEntries(Object.entries(value as Json).map(([field, of]) => [field, trimmed(of)])),
        ];
      }
      return [name, name === "description" && typeof value === "string" ? clause(value) : trimmed(value)];
    });
  return asEnum(Object.fromEntries(rest));
}

/** A union of constants as an enum. */
function asEnum({ anyOf, ...rest }: Json): Json {
  const constants = Array.isArray(anyOf) ? anyOf.map((one: Json) => one.const) : [undefined];
  if (constants.includes(undefined)) return anyOf === undefined ? rest : { ...rest, anyOf };
  return { ...rest, enum: constants };
}

function isFarBound(name: string, value: unknown): boolean {
  return (name === "minimum" || name === "maximum") && Math.abs(Number(value)) >= farBound;
}

/** The first clause of a description. */
function clause(text: string): string {
  if (text.length <= fieldCharacters) return text;
  const ends = [...text.matchAll(/[.;:,](?=\s)/g)]
    .map(({ index }) => index)
    .filter((at) => at <= fieldCharacters);
  const end = ends.at(-1);
  return end === undefined
    ? `${text.slice(0, fieldCharacters).replace(/\s+\S*$/, "")} …`
    : `${text.slice(0, end)} …`;
}

/** An object, or a list of objects, with unspecified fields. */
export const anObject: TSchema = Type.Unsafe({ type: "object" });
export const objects: TSchema = Type.Array(anObject);
