import { anchorOf, code } from "./markdown.js";

/** The parts of JSON Schema that the services' OpenAPI documents use. */
export interface Schema {
  $ref?: string;
  type?: string;
  description?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema | false;
  prefixItems?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  patternProperties?: Record<string, Schema>;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  default?: unknown;
}

export interface Field {
  /** Fields of objects within have their path: `layers[].norms`. */
  name: string;
  type: string;
  required: boolean;
  description: string;
}

/** The fields of an object and of the untitled objects in it. */
export function fieldsOf(schema: Schema, path = ""): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, of]) => {
    const field: Field = {
      name: `${path}${name}`,
      type: typeText(of),
      required: schema.required?.includes(name) ?? false,
      description: of.description ?? "",
    };
    const inner = objectIn(of);
    return inner === undefined
      ? [field]
      : [field, ...fieldsOf(inner.schema, `${path}${name}${inner.suffix}.`)];
  });
}

/** The untitled object that a field has, alone, in a list or as an alternative to null. */
function objectIn(schema: Schema): { schema: Schema; suffix: string } | undefined {
  if (schema.properties !== undefined) return { schema, suffix: "" };
  if (schema.items) {
    const inner = objectIn(schema.items);
    return inner && { ...inner, suffix: `[]${inner.suffix}` };
  }
  const [only, ...more] = (schema.anyOf ?? []).flatMap((option) => objectIn(option) ?? []);
  return more.length === 0 ? only : undefined;
}

/** A schema's type with its bounds and default, as one line of Markdown. */
export function typeText(schema: Schema): string {
  const text = `${shapeText(schema)}${boundsText(schema)}`;
  return schema.default === undefined ? text : `${text}; default ${code(JSON.stringify(schema.default))}`;
}

function shapeText(schema: Schema): string {
  const { $ref, anyOf, oneOf, enum: words, items, prefixItems, patternProperties } = schema;
  if ($ref !== undefined) {
    const name = $ref.split("/").at(-1) as string;
    return `[${name}](#${anchorOf(name)})`;
  }
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (words !== undefined) return words.map((word) => code(JSON.stringify(word))).join(", ");
  const options = anyOf ?? oneOf;
  if (options !== undefined) return [...new Set(options.map(typeText))].join(" or ");
  if (prefixItems !== undefined) return `[${prefixItems.map(typeText).join(", ")}]`.replace("[[", "[ [");
  if (items) return `list of ${plural(typeText(items))}`;
  if (patternProperties !== undefined) {
    return `object of ${plural(Object.values(patternProperties).map(typeText).join(" or "))}`;
  }
  if (typeof schema.additionalProperties === "object") {
    return `object of ${plural(typeText(schema.additionalProperties))}`;
  }
  return schema.type ?? "any JSON value";
}

/** "list of numbers (0 to 1)". */
const plural = (type: string) => type.replace(/^(string|number|integer|boolean|object)\b/, "$1s");

function boundsText(schema: Schema): string {
  const { minimum, maximum, exclusiveMinimum, minItems, maxItems, minLength, maxLength, pattern } = schema;
  const bounds = [
    exclusiveMinimum === undefined ? range(minimum, maximum) : `above ${exclusiveMinimum}`,
    exclusiveMinimum !== undefined && maximum !== undefined ? `at most ${maximum}` : "",
    range(minItems, maxItems, "entries"),
    range(minLength === 1 ? undefined : minLength, maxLength, "characters"),
    pattern === undefined ? "" : `matches ${code(pattern)}`,
  ].filter((text) => text !== "");
  return bounds.length === 0 ? "" : ` (${bounds.join(", ")})`;
}

function range(least: number | undefined, most: number | undefined, unit?: string): string {
  if (least === undefined && most === undefined) return "";
  const of = unit === undefined ? "" : ` ${unit}`;
  if (most === undefined) return least === 0 && unit !== undefined ? "" : `at least ${least}${of}`;
  if (least === undefined) return `at most ${most}${of}`;
  return least === most ? `${most}${of}` : `${least} to ${most}${of}`;
}
