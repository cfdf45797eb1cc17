import { brokenFilter, studyFilterNames, studyLimits, uuidPattern } from "../../contracts/studies/index.js";
import { ApiError } from "../api-error.js";
import { narrowing } from "../store/filters.js";

const uuid = new RegExp(uuidPattern);

/**
 * Splits a query string into its parameters.
 * @throws ApiError for unknown or repeated parameters and for escapes that are not UTF-8
 */
export function parseQuery(querystring: string, accepted: readonly string[]): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const pair of querystring.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals), null);
    if (!accepted.includes(name)) {
      const known = accepted.length === 0 ? "none" : accepted.join(", ");
      throw new ApiError("unknown_parameter", `Unknown query parameter; this endpoint accepts: ${known}.`, {
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
    throw invalid(name ?? "query", "The query must be percent-encoded UTF-8.");
  }
}

function invalid(field: string, sentence: string): ApiError {
  return new ApiError("invalid_parameter", sentence, { field });
}

/** An integer in plain decimal digits, such as `limit` and `offset`. */
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
    throw invalid(name, `${name} must be an integer ${bounds}, in decimal digits.`);
  }
  return value;
}

export function offsetParameter(parameters: Map<string, string>): number {
  return integerParameter(parameters, "offset", { minimum: 0, maximum: studyLimits.offset, otherwise: 0 });
}

/** The list's filters and order. */
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
    throw invalid("q", `q must have at most ${studyLimits.q} characters, got ${length}.`);
  }
  return q;
}

/** A path's version. */
export function versionParameter(segment: string): number {
  if (!/^[1-9]\d{0,8}$/.test(segment)) {
    throw invalid("version", "The version in the path must be an integer of at least 1, in decimal digits.");
  }
  return Number(segment);
}

/** A path's id, in lower case. */
export function idParameter(segment: string): string {
  if (!uuid.test(segment)) {
    throw invalid("id", "The study id in the path must be a UUID.");
  }
  return segment.toLowerCase();
}
