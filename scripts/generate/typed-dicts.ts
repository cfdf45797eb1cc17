/**
 * Schemas as Python TypedDicts. Python 3.10 has no NotRequired, so optional fields are in a separate class, and fields
 * named like a Python keyword use the functional form.
 */
import type { TSchema } from "typebox";

/** The parts of JSON Schema that the contracts use. */
interface Schema {
  type?: string;
  title?: string;
  description?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema | Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  patternProperties?: Record<string, Schema>;
}

export interface Module {
  description: string;
  /** Schemas to write, including every object within them. */
  schemas: TSchema[];
  /** Names of enumerations, used wherever exactly these values are allowed. */
  words: Record<string, readonly string[]>;
  /** Names of objects by title, or by `Class.field` without one. Default: the title, or the field without its dot. */
  names: Record<string, string>;
  /** Types of fields, by `Class.field`, that override the schema's. */
  types: Record<string, string>;
  /** Classes after the types, and their imports. */
  more?: { typing: string[]; imports: string; classes: string[] };
}

const lineWidth = 110;

// `keyword.kwlist` of Python 3.10 to 3.14.
const keywords = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield"
  ).split(" "),
);

interface Field {
  name: string;
  type: string;
  description: string;
  required: boolean;
}

/** The text of a Python module. @throws for schemas that are not supported, and for name conflicts */
export function pythonModule({ description, schemas, words, names, types, more }: Module): string {
  const classes = new Map<string, { fields: Field[]; text: string }>();
  const aliases = new Map(Object.entries(words).map(([name, all]) => [literal(all), name]));
  const used = new Set<string>();

  const named = (table: Record<string, string>, key: string) => {
    if (table[key] !== undefined) used.add(key);
    return table[key];
  };

  function typeOf(schema: Schema, place: string): string {
    const given = named(types, place);
    if (given !== undefined) return given;
    if (schema.anyOf !== undefined) return union(schema.anyOf, place);
    if (schema.const !== undefined) return literal([schema.const]);
    if (schema.enum !== undefined) return aliases.get(literal(schema.enum)) ?? literal(schema.enum);
    if (schema.type === "array" && schema.items !== undefined) {
      // JSON has no tuples: the client receives a list.
      return `list[${union([schema.items].flat(), place)}]`;
    }
    if (schema.properties !== undefined) return classOf(schema, place);
    if (schema.patternProperties !== undefined) {
      return `dict[str, ${union(Object.values(schema.patternProperties), place)}]`;
    }
    const plain: Record<string, string> = {
      string: "str",
      integer: "int",
      number: "float",
      boolean: "bool",
      null: "None",
    };
    const type = plain[schema.type ?? ""];
    if (type === undefined) throw new Error(`${place}: no Python type for ${JSON.stringify(schema)}.`);
    return type;
  }

  function union(options: Schema[], place: string): string {
    const all = new Set(options.map((option) => typeOf(option, place)));
    return [...all].sort((a, b) => Number(a === "None") - Number(b === "None")).join(" | ");
  }

  function classOf(schema: Schema, place: string): string {
    const fields = (name: string) =>
      Object.entries(schema.properties as Record<string, Schema>).map(([field, of]) => ({
        name: field,
        type: typeOf(of, `${name}.${field}`),
        description: ownDescription(of),
        required: schema.required?.includes(field) ?? false,
      }));
    const known = schema.title === undefined && names[place] === undefined ? likeTitled(schema) : schema;
    const title = known?.title;
    const name =
      title === undefined ? (named(names, place) ?? parted(place)) : (named(names, title) ?? title);
    const found = classes.get(name);
    const made = fields(name);
    if (found === undefined) {
      const about = title === undefined ? "" : (known?.description ?? "");
      classes.set(name, { fields: made, text: classText(name, about, made) });
    } else if (shape(found.fields) !== shape(made)) {
      throw new Error(`Two objects with different fields are called ${name}.`);
    }
    return name;
  }

  /** The titled object with exactly these fields, such as Excluded. */
  function likeTitled({ properties }: Schema): Schema | undefined {
    return titled.find((one) => JSON.stringify(one.properties) === JSON.stringify(properties));
  }

  const titled = schemas.flatMap((schema) => titledIn(schema as Schema));
  for (const schema of schemas) classOf(schema as Schema, "");
  const unused = [...Object.keys(names), ...Object.keys(types)].filter((key) => !used.has(key));
  if (unused.length > 0) throw new Error(`Not found in the schemas: ${unused.join(", ")}.`);
  const typing = ["Literal", "TypedDict", ...(more?.typing ?? [])].sort().join(", ");
  const imports = more === undefined ? "" : `\n${more.imports}\n`;
  const head = `"""${description}"""\n\nfrom __future__ import annotations\n\nfrom typing import ${typing}\n${imports}\n`;
  const lists = [...aliases].map(([type, name]) => `${assigned(name, type)}\n`);
  const texts = [...classes.values()].map(({ text }) => text);
  return [`${head}${lists.join("")}`, ...texts, ...(more?.classes ?? [])].join("\n\n");
}

/** The description of a field. A titled object is described by its class. */
function ownDescription(schema: Schema): string {
  const { title, description, anyOf = [], items = [], properties } = schema;
  const titledObject = title !== undefined && properties !== undefined;
  if (description !== undefined) return titledObject ? "" : description;
  return [...anyOf, ...[items].flat()].map(ownDescription).find((text) => text !== "") ?? "";
}

function titledIn(schema: Schema): Schema[] {
  const { anyOf = [], items = [], properties = {} } = schema;
  const inner = [...anyOf, ...[items].flat(), ...Object.values(properties)].flatMap(titledIn);
  return schema.title !== undefined && schema.properties !== undefined ? [schema, ...inner] : inner;
}

const shape = (fields: Field[]) =>
  JSON.stringify(fields.map(({ name, type, required }) => [name, type, required]));

/** `Class.some_field` as a name. */
function parted(place: string): string {
  return place
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

function literal(values: readonly unknown[]): string {
  const text = (value: unknown) =>
    typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);
  return `Literal[${values.map(text).join(", ")}]`;
}

/** A name and its type, wrapped. */
function assigned(name: string, type: string, between = " = ", indent = ""): string {
  const line = `${indent}${name}${between}${type}`;
  const [, outer, inner, rest] = /^((?:list\[)*Literal\[)(.*?)(\]+.*)$/.exec(type) ?? [];
  if (line.length <= lineWidth || inner === undefined) return line;
  return `${indent}${name}${between}${outer}\n${wrapped(inner, `${indent}    `)}\n${indent}${rest}`;
}

function classText(name: string, description: string, fields: Field[]): string {
  const words = fields.filter((field) => keywords.has(field.name));
  const plain = fields.filter((field) => !keywords.has(field.name));
  const [required, optional] = [
    plain.filter((field) => field.required),
    plain.filter((field) => !field.required),
  ];
  const parts: string[] = [];
  const bases: string[] = [];
  for (const field of words) {
    const base = `_${name}${parted(field.name)}`;
    const total = field.required ? "" : ", total=False";
    const comment = field.description === "" ? "" : `${wrapped(pythonWords(field.description), "# ")}\n`;
    parts.push(`${comment}${base} = TypedDict("${base}", {"${field.name}": ${field.type}}${total})\n`);
    bases.push(base);
  }
  if (required.length > 0 && optional.length > 0) {
    const base = `_${name}Required`;
    parts.push(`class ${base}(TypedDict):\n${required.map(fieldText).join("")}`);
    bases.push(base);
  }
  const own = optional.length > 0 ? optional : required;
  const heads = bases.length > 0 ? bases : ["TypedDict"];
  if (optional.length > 0) heads.push("total=False");
  const about = description === "" ? "" : `${docstring(description)}\n`;
  const body = own.map(fieldText).join("");
  const gap = about !== "" && body !== "" ? "\n" : "";
  parts.push(
    `class ${name}(${heads.join(", ")}):\n${about}${gap}${body}${about + body === "" ? "    pass\n" : ""}`,
  );
  return parts.join("\n\n");
}

function fieldText({ name, type, description }: Field): string {
  const line = assigned(name, type, ": ", "    ");
  return `${line}\n${description === "" ? "" : `${docstring(description)}\n`}`;
}

function docstring(description: string): string {
  return wrapped(
    `"""${pythonWords(description).replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"')}"""`,
    "    ",
  );
}

const pythonWords = (text: string) => text.replace(/\bnull\b/gi, "None");

function wrapped(text: string, indent: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && indent.length + last.length + 1 + word.length <= lineWidth) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(word);
  }
  return lines.map((line) => `${indent}${line}`).join("\n");
}
