import Type, { type TSchema } from "typebox";

/**
 * Schemas as `tools/list` shows them. A host puts all of them before its model, so they are short: what a tool answers is named
 * and not spelled out, and what a submission's field means in full says lab_operation. Calls are checked against the full ones.
 */

/** Longest description of a field in a list. */
const fieldCharacters = 60;
/** Of an input's schema, what only a check needs. */
const checks = [
  ...["title", "additionalProperties", "additionalItems", "minItems", "uniqueItems"],
  ...["minLength", "maxLength", "pattern"],
];
/** Bounds this far from 0 only keep numbers finite or whole. */
const farBound = 1_000_000;

type Json = Record<string, unknown>;

/** An input's schema whose fields have neither lengths, patterns nor far bounds, and descriptions of one clause. It is as closed as it was. */
export function brief<S extends TSchema>(schema: S): S {
  const { properties = {}, ...rest } = schema as S & { properties?: Json };
  const fields = Object.entries(properties).map(([name, field]) => [name, trimmed(field)]);
  return { ...rest, properties: Object.fromEntries(fields) } as unknown as S;
}

function trimmed(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(trimmed);
  if (typeof part !== "object" || part === null) return part;
  const kept = Object.entries(part as Json)
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
  return asEnum(Object.fromEntries(kept));
}

/** A choice between constants in its short form. */
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

/** That a result holds an object, or a list of them: what its fields are, they say themselves. */
export const anObject: TSchema = Type.Unsafe({ type: "object" });
export const objects: TSchema = Type.Array(anObject);
