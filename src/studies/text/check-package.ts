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
 * Checks a parsed body against the StudyPackage schema and the rules beyond it.
 * @throws ApiError that names the first fault, its limit and the actual value
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
      throw new ApiError("unknown_parent", `Entry ${index} names a parent that is not among the entries.`, {
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
 * As much of a value as shows its first fault: a list that is too long stays too long, a property that is unknown stays.
 * Half a million faults would take seconds to list.
 */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, longestArray + 1).map(shortened);
  if (typeof value !== "object" || value === null) return value;
  let unknown = 0;
  const kept = Object.entries(value).filter(([name]) => {
    if (known.has(name)) return true;
    unknown += 1;
    return unknown === 1;
  });
  return Object.fromEntries(kept.map(([name, item]) => [name, shortened(item)]));
}

// Told first: what is absent, what should not be there ("boolean": its schema is false), then wrong values in the order
// of the schema. The list of failures may end early, so only what says enough by itself is taken from it.
const urgency = ["required", "boolean"];

function describe(root: unknown, failures: Failure[]): ApiError {
  const rank = ({ keyword }: Failure) => {
    const place = urgency.indexOf(keyword);
    return place === -1 ? urgency.length : place;
  };
  const told = failures.filter(({ keyword }) => keyword !== "additionalProperties" && keyword !== "anyOf");
  const failure = told.reduce((best, next) => (rank(next) < rank(best) ? next : best));
  const { keyword, params, instancePath } = failure;
  const actual = at(root, instancePath);
  const pointer = (name: unknown) =>
    `${instancePath}/${String(name).replace(/~/g, "~0").replace(/\//g, "~1")}`;
  const where = instancePath === "" ? "The body" : instancePath;
  if (keyword === "required") {
    const name = (params.requiredProperties as string[])[0];
    return new ApiError("missing_property", `${where} lacks ${name}.`, { field: pointer(name) });
  }
  if (keyword === "boolean") {
    const owner = instancePath.slice(0, instancePath.lastIndexOf("/")) || "The body";
    return new ApiError("unknown_property", `${owner} has a property that the contract does not know.`, {
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
      return limit === 1 ? "must not be empty" : `must have at least ${limit} characters; it has ${size}`;
    case "maxLength":
      return `may have at most ${limit} characters; it has ${size}`;
    case "minItems":
      return `must have at least ${limit} ${limit === 1 ? "item" : "items"}; it has ${size}`;
    case "maxItems":
      return `may have at most ${limit} items; it has ${size}`;
    case "pattern":
      return "must be a UUID of version 1 to 8, all zeros or all f";
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
      return `must be ${String(params.comparison)} ${limit}; it is ${String(actual)}`;
    default:
      return `does not satisfy ${keyword}`;
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
