import type { Static, TSchema } from "typebox";
import { listed } from "../text/words.js";
import { type Compiled, compile, type Failure } from "./compile.js";
import { InvalidInput } from "./invalid-input.js";
import { namePattern } from "./live-limits.js";

export { InvalidInput } from "./invalid-input.js";

const validators = new WeakMap<TSchema, Compiled>();

/**
 * Checks a parsed JSON value against a schema and returns a copy with defaults filled in, its fields in the schema's
 * order.
 * @throws InvalidInput with the limit and the actual value of the most important violation
 */
export function validate<S extends TSchema>(schema: S, value: unknown): Static<S> {
  const loneSurrogate = findLoneSurrogate(value, "");
  if (loneSurrogate !== null) {
    throw new InvalidInput(loneSurrogate, "must be well-formed Unicode; it contains an unpaired surrogate.");
  }
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = compile(schema);
    validators.set(schema, validator);
  }
  if (!validator.Check(value)) {
    throw describe(schema, value, ofBestList(schema, value, validator.Errors(value)));
  }
  return withDefaults(schema, value) as Static<S>;
}

/** Cloning takes microseconds even for undefined, and chats have dozens of optional fields. */
const copyOf = (value: unknown) => (typeof value === "object" ? structuredClone(value) : value);

function withDefaults(schema: TSchema, value: unknown): unknown {
  const { properties } = schema as { properties?: Record<string, { default?: unknown }> };
  if (properties === undefined) return value;
  const given = value as Record<string, unknown>;
  const filled: Record<string, unknown> = {};
  for (const [name, { default: usual }] of Object.entries(properties)) {
    const field = given[name] === undefined ? copyOf(usual) : given[name];
    if (field !== undefined) filled[name] = field;
  }
  return filled;
}

// The order in which violations are reported: missing fields, unknown fields, then wrong values in document order.
const urgency = ["required", "boolean", "type", "enum", "const"];

const limiting = /^(m(in|ax)|uniqueItems|pattern)/;

/**
 * A field that accepts several kinds of list (prompts, or the tokens of one) fails as all of them. Only the failures
 * of the best match are reported: the kind valid for the most entries, then the one valid deepest within the next
 * entry. A list with only its length wrong counts as valid for all entries.
 */
function ofBestList(schema: TSchema, root: unknown, failures: Failure[]): Failure[] {
  const [, field = ""] = (failures[0]?.instancePath ?? "").split("/").map(unescapePointer);
  const { properties } = schema as { properties?: Record<string, { anyOf?: TSchema[] }> };
  const value = (root as Record<string, unknown> | null)?.[field];
  const kinds = properties?.[field]?.anyOf?.filter(({ type }: { type?: string }) => type === "array") ?? [];
  if (!Array.isArray(value) || kinds.length < 2) return failures;
  const found = kinds.map((kind) => compile(kind).Errors(value));
  const holding = found.map((errors) => {
    const paths = errors.map(({ instancePath }) => instancePath.split("/").slice(1));
    if (paths.some(({ length }) => length === 0)) return value.length;
    const depth = Math.max(...paths.map(({ length }) => length));
    return Number(paths[0]?.[0]) + 1 - 1 / depth;
  });
  const best = found.filter((_, kind) => holding[kind] === Math.max(...holding)).flat();
  return best.map((failure) => ({ ...failure, instancePath: `/${field}${failure.instancePath}` }));
}

function describe(schema: TSchema, root: unknown, failures: Failure[]): InvalidInput {
  const rank = (failure: Failure) => {
    const place = urgency.indexOf(failure.keyword);
    return place === -1 ? urgency.length : place;
  };
  // An unknown field is reported twice: on its own ("boolean", since its schema is false), and in its object's list,
  // which is truncated.
  const named = failures.filter(({ keyword }) => keyword !== "additionalProperties" && keyword !== "anyOf");
  // If a value matches one of several types but violates its limit, mismatches of the other types are irrelevant.
  const broken = new Set(named.filter(({ keyword }) => limiting.test(keyword)).map((it) => it.instancePath));
  // The same applies to values within a list: a client that sent a list did not mean a string or an enum value.
  const inner = (path: string) => named.some((it) => it.instancePath.startsWith(`${path}/`));
  const told = named.filter(
    (it) =>
      (it.keyword !== "type" && it.keyword !== "enum") ||
      !(broken.has(it.instancePath) || inner(it.instancePath)),
  );
  const failure = told.reduce((best, next) => (rank(next) < rank(best) ? next : best), told[0] as Failure);
  const keys = failure.instancePath.split("/").slice(1).map(unescapePointer);
  const actual = keys.reduce<unknown>((value, key) => (value as Record<string, unknown> | null)?.[key], root);
  if (failure.keyword === "boolean") return unknownField(schema, keys);
  const [missing] =
    failure.keyword === "required" ? (failure.params.requiredProperties as string[]) : [undefined];
  const field = pathText(missing === undefined ? keys : [...keys, missing]);
  const words = alternatives(told, failure);
  const what =
    words === undefined ? sentence(failure, keys, actual) : `must be ${words}, got ${shown(actual)}`;
  return new InvalidInput(pathText(keys), `${what}.`, field);
}

/** Everything a union accepts at the failure; undefined without alternatives. */
function alternatives(failures: Failure[], { instancePath, keyword }: Failure): string | undefined {
  const here = failures.filter((it) => it.instancePath === instancePath && accepts(it).length > 0);
  if (here.length < 2 || !["type", "enum", "const"].includes(keyword)) return undefined;
  const accepted = [...new Set(here.flatMap(accepts))];
  // An enum of strings also reports the type string.
  const some = accepted.some((word) => word.startsWith('"'));
  const words = accepted.filter((word) => !(some && word === "a string"));
  return words.length < 2 ? undefined : listed(words, "or");
}

/** What one alternative accepts, in words; empty if the failure is not about the kind of value. */
function accepts({ keyword, params }: Failure): string[] {
  switch (keyword) {
    case "type":
      return [params.type]
        .flat()
        .map((type) => (type === "null" ? "null" : `${article(String(type))} ${type}`));
    case "enum":
      return (params.allowedValues as unknown[]).map((value) => shown(value));
    case "const":
      return [shown(params.allowedValue)];
    default:
      return [];
  }
}

function article(word: string): string {
  return /^[aeiou]/.test(word) ? "an" : "a";
}

function unknownField(schema: TSchema, keys: string[]): InvalidInput {
  const parent = keys.slice(0, -1);
  const { properties } = schema as { properties?: object };
  const names = Object.keys(properties ?? {});
  const accepted =
    parent.length === 0 && names.length > 0
      ? `; accepted ${names.length === 1 ? "is" : "are"} ${listed(names)}`
      : "";
  return new InvalidInput(
    pathText(parent),
    `unknown field ${shown(keys.at(-1))}${accepted}.`,
    pathText(keys),
  );
}

function sentence(failure: Failure, keys: string[], actual: unknown): string {
  const { keyword, params } = failure;
  const limit = params.limit as number;
  const size = Array.isArray(actual) ? actual.length : typeof actual === "string" ? [...actual].length : 0;
  switch (keyword) {
    case "required":
      return `${listed(params.requiredProperties as string[])} ${
        (params.requiredProperties as string[]).length === 1 ? "is" : "are"
      } required`;
    case "type": {
      const wanted = String(params.type);
      return `must be ${article(wanted)} ${wanted}, got ${shown(actual)}`;
    }
    case "enum":
      return `must be ${listed((params.allowedValues as unknown[]).map(String), "or")}, got ${shown(actual)}`;
    case "const":
      return `must be ${shown(params.allowedValue)}, got ${shown(actual)}`;
    case "minimum":
      return `at least ${limit}, got ${shown(actual)}`;
    case "exclusiveMinimum":
      return `must be above ${limit}, got ${shown(actual)}`;
    case "maximum":
      return `at most ${limit}, got ${shown(actual)}`;
    case "minItems":
      return `at least ${limit} ${noun(keys, limit)}, got ${size}`;
    case "maxItems":
      return `at most ${limit} ${noun(keys, limit)}, got ${size}`;
    case "minLength":
      return limit === 1 ? "must not be empty" : `at least ${limit} characters, got ${size}`;
    case "maxLength":
      return `at most ${limit} characters, got ${size}`;
    case "uniqueItems":
      return `${shown((actual as unknown[])[(params.duplicateItems as number[])[0] as number])} appears twice`;
    case "pattern":
      return params.pattern === namePattern
        ? `letters, digits, dots, dashes and underscores, a letter or digit first; got ${shown(actual)}`
        : "must not be blank";
    default:
      return `is not accepted (${keyword}), got ${shown(actual)}`;
  }
}

const nouns: Record<string, [one: string, many: string]> = {
  layers: ["index", "indices"],
  strengths: ["number", "numbers"],
  prompt: ["prompt", "prompts"],
  prompts: ["prompt", "prompts"],
  positives: ["text", "texts"],
  negatives: ["text", "texts"],
  examples: ["example", "examples"],
};

function noun(keys: string[], count: number): string {
  const [one, many] = nouns[keys.at(-1) ?? ""] ?? ["entry", "entries"];
  return count === 1 ? one : many;
}

/** A value as shown in an error: at most 60 characters of JSON. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  const text = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? "nothing");
  return text.length > 60 ? `${[...text].slice(0, 57).join("")}...` : text;
}

function pathText(keys: string[]): string {
  return keys.map((key, index) => (/^\d+$/.test(key) ? `[${key}]` : index === 0 ? key : `.${key}`)).join("");
}

function unescapePointer(key: string): string {
  return key.replace(/~1/g, "/").replace(/~0/g, "~");
}

// Depth is bounded: anything deeper than the contracts' fields is refused as unknown anyway.
function findLoneSurrogate(value: unknown, path: string, depth = 0): string | null {
  if (typeof value === "string") return /\p{Surrogate}/u.test(value) ? path || "body" : null;
  if (typeof value !== "object" || value === null || depth > 8) return null;
  for (const [key, entry] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    if (typeof entry !== "string" && typeof entry !== "object") continue; // lists of tokens are long
    const name = typeof key === "number" || /^\w{1,40}$/.test(key) ? key : shown(key);
    const inner = typeof key === "number" ? `${path}[${key}]` : path === "" ? `${name}` : `${path}.${name}`;
    const found = findLoneSurrogate(entry, inner, depth + 1);
    if (found !== null) return found;
  }
  return null;
}
