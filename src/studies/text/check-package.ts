import { type Compiled, compile, type Failure } from "../../contracts/compile.js";
import {
  ContextMessage,
  Entry,
  Settings,
  StudyModel,
  StudyPackage,
  studyLimits,
} from "../../contracts/studies/index.js";
import { ApiError } from "../api-error.js";
import { isBlank } from "./blank.js";

let compiled: Compiled | undefined;

/**
 * Validates a parsed body against the StudyPackage schema and additional rules.
 * @throws ApiError for the first fault, with its limit and the actual value
 */
export function checkPackage(value: unknown): StudyPackage {
  compiled ??= compile(StudyPackage);
  if (!compiled.Check(value)) {
    throw describe(value, compiled.Errors(shortened(value)));
  }
  const study = value as StudyPackage;
  if (isBlank(study.title)) {
    throw new ApiError("blank_title", "The title is blank.", { field: "/title" });
  }
  checkTree(study.entries);
  return study;
}

function checkTree(entries: StudyPackage["entries"]): void {
  const places = new Map<string, number>();
  entries.forEach(({ id }, index) => {
    const first = places.get(id.toLowerCase());
    if (first !== undefined) {
      throw new ApiError("duplicate_entry_id", `Entries ${first} and ${index} have the same id.`, {
        field: `/entries/${index}/id`,
      });
    }
    places.set(id.toLowerCase(), index);
  });
  const parents = entries.map(({ parent }, index) => {
    if (parent === undefined || parent === null) return -1;
    const place = places.get(parent.toLowerCase());
    if (place === undefined) {
      throw new ApiError("unknown_parent", `The parent of entry ${index} does not exist.`, {
        field: `/entries/${index}/parent`,
      });
    }
    return place;
  });
  for (const start of parents.keys()) {
    const walk = new Set<number>();
    for (let at = start; at !== -1; at = parents[at] as number) {
      if (walk.has(at)) {
        throw new ApiError("parent_cycle", `Entry ${at} is its own ancestor.`, {
          field: `/entries/${at}/parent`,
        });
      }
      walk.add(at);
    }
  }
}

const known = new Set(
  [StudyPackage, StudyModel, Entry, ContextMessage, Settings].flatMap(({ properties }) =>
    Object.keys(properties),
  ),
);
const longestArray = Math.max(studyLimits.entries, studyLimits.omissions, studyLimits.context_messages);

/**
 * Shortens a value but keeps its first fault: long lists stay too long, and one unknown property stays. Listing half a
 * million faults would take seconds.
 */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, longestArray + 1).map(shortened);
  if (typeof value !== "object" || value === null) return value;
  let unknown = 0;
  const first = Object.entries(value).filter(([name]) => {
    if (known.has(name)) return true;
    unknown += 1;
    return unknown === 1;
  });
  return Object.fromEntries(first.map(([name, item]) => [name, shortened(item)]));
}

// Report missing properties first, then unknown ones ("boolean": their schema is false), then wrong values in the order of
// the schema. The list of failures may be truncated, so skip those that depend on others.
const urgency = ["required", "boolean"];

function describe(root: unknown, failures: Failure[]): ApiError {
  const rank = ({ keyword }: Failure) => {
    const place = urgency.indexOf(keyword);
    return place === -1 ? urgency.length : place;
  };
  const candidates = failures.filter(
    ({ keyword }) => keyword !== "additionalProperties" && keyword !== "anyOf",
  );
  const failure = candidates.reduce((best, next) => (rank(next) < rank(best) ? next : best));
  const { keyword, params, instancePath } = failure;
  const actual = at(root, instancePath);
  const pointer = (name: unknown) =>
    `${instancePath}/${String(name).replace(/~/g, "~0").replace(/\//g, "~1")}`;
  const where = instancePath === "" ? "The body" : instancePath;
  if (keyword === "required") {
    const name = (params.requiredProperties as string[])[0];
    return new ApiError("missing_property", `${where} lacks the property ${name}.`, { field: pointer(name) });
  }
  if (keyword === "boolean") {
    const owner = instancePath.slice(0, instancePath.lastIndexOf("/")) || "The body";
    return new ApiError("unknown_property", `${owner} has an unknown property.`, {
      field: instancePath,
    });
  }
  return new ApiError("invalid_value", `${where} ${sentence(keyword, params, actual)}.`, {
    field: instancePath,
  });
}

function sentence(keyword: string, params: Record<string, unknown>, actual: unknown): string {
  const limit = params.limit as number;
  const size = Array.isArray(actual) ? actual.length : typeof actual === "string" ? [...actual].length : 0;
  switch (keyword) {
    case "type":
      return `must be of type ${String(params.type)}, not ${typeName(actual)}`;
    case "enum":
      return `must be one of ${(params.allowedValues as unknown[]).join(", ")}`;
    case "const":
      return `must be ${JSON.stringify(params.allowedValue)}`;
    case "minLength":
      return limit === 1 ? "must not be empty" : `must have at least ${limit} characters, got ${size}`;
    case "maxLength":
      return `must have at most ${limit} characters, got ${size}`;
    case "minItems":
      return `must have at least ${limit} ${limit === 1 ? "item" : "items"}, got ${size}`;
    case "maxItems":
      return `must have at most ${limit} items, got ${size}`;
    case "pattern":
      return "must be a UUID of version 1 to 8, all zeros or all f";
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
      return `must be ${String(params.comparison)} ${limit}, got ${String(actual)}`;
    default:
      return `violates ${keyword}`;
  }
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function at(root: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .map((key) => key.replace(/~1/g, "/").replace(/~0/g, "~"))
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | null)?.[key], root);
}
