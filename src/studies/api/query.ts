import { brokenFilter, studyFilterNames, studyLimits, uuidPattern } from "../../contracts/studies/index.js";
import { ApiError } from "../api-error.js";
import { narrowing } from "../store/filters.js";

const uuid = new RegExp(uuidPattern);

/**
 * Splits a query string into its parameters.
 * @throws ApiError for parameters outside `accepted`, for repeats, and for escapes that are not UTF-8
 */
export function parseQuery(querystring: string, accepted: readonly string[]): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const pair of querystring.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals), null);
    if (!accepted.includes(name)) {
      const known = accepted.length === 0 ? "none" : accepted.join(", ");
      throw new ApiError("unknown_parameter", `There is no such query parameter; accepted here: ${known}.`, {
        field: [...name].slice(0, 100).join(""),
      });
    }
    if (parameters.has(name)) {
      throw new ApiError("repeated_parameter", `The query parameter ${name} occurs more than once.`, {
        field: name,
      });
    }
    parameters.set(name, decode(equals === -1 ? "" : pair.slice(equals + 1), name));
  }
  return parameters;
}

function decode(text: string, name: string | null): string {
  try {
    return decodeURIComponent(text.replace(/\+/g, " "));
  } catch {
    throw invalid(name ?? "query", "The query is not percent-encoded UTF-8.");
  }
}

function invalid(field: string, sentence: string): ApiError {
  return new ApiError("invalid_parameter", sentence, { field });
}

/** A whole number in plain decimal digits, as the contract's `limit` and `offset` are. */
export function integerParameter(
  parameters: Map<string, string>,
  name: string,
  range: { minimum: number; maximum: number; otherwise: number },
): number {
  const text = parameters.get(name);
  if (text === undefined) return range.otherwise;
  const value = /^(?:0|[1-9]\d{0,8})$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= range.minimum && value <= range.maximum)) {
    const bounds = `from ${range.minimum} to ${range.maximum}`;
    throw invalid(name, `${name} must be a whole number ${bounds}, in plain digits.`);
  }
  return value;
}

export function offsetParameter(parameters: Map<string, string>): number {
  return integerParameter(parameters, "offset", { minimum: 0, maximum: studyLimits.offset, otherwise: 0 });
}

/** What the list is narrowed down by, and its order. */
export function narrowingParameters(parameters: Map<string, string>) {
  for (const name of studyFilterNames) {
    const value = parameters.get(name);
    const broken = value === undefined ? null : brokenFilter(name, value);
    if (broken !== null) throw invalid(name, `${name} ${broken}.`);
  }
  return narrowing((name) => parameters.get(name));
}

export function searchParameter(parameters: Map<string, string>): string {
  const q = parameters.get("q") ?? "";
  const length = [...q].length;
  if (length > studyLimits.q) {
    throw invalid("q", `q may have at most ${studyLimits.q} characters; it has ${length}.`);
  }
  return q;
}

/** A path's version. */
export function versionParameter(segment: string): number {
  if (!/^[1-9]\d{0,8}$/.test(segment)) {
    throw invalid("version", "The version in the path must be a whole number from 1, in plain digits.");
  }
  return Number(segment);
}

/** A path's id, in lower case. */
export function idParameter(segment: string): string {
  if (!uuid.test(segment)) {
    throw invalid("id", "The study's id in the path is not a UUID.");
  }
  return segment.toLowerCase();
}
