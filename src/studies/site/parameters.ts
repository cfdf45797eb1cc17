import { studyFilterNames, studyLimits } from "../../contracts/studies/index.js";

/** Query parameters of a page, each with a function that normalizes its value (null: same as absent). */
export type Parameters = Record<string, (value: string) => string | null>;

const any = (value: string) => value;
const digits = (value: string) => (/^\d{1,6}$/.test(value) ? String(Number(value)) : null);

/** A list with search, filters and pages. */
export const listParameters: Parameters = {
  q: any,
  page: digits,
  ...Object.fromEntries(studyFilterNames.map((name) => [name, any])),
};
export const pageParameters: Parameters = { page: digits };
export const searchParameters: Parameters = { q: any };
export const versionParameters: Parameters = { version: any };
export const changeParameters: Parameters = { from: any, to: any };
export const studyParameters: Parameters = {
  version: any,
  view: (value) => (value === "source" ? value : null),
  // Round down to the start of a page of comments.
  comments: (value) => {
    const offset = Number(digits(value) ?? 0);
    const first = offset - (offset % studyLimits.discussion_page);
    return first === 0 ? null : String(Math.min(first, studyLimits.offset));
  },
};

/**
 * The query reduced to the parameters that a page reads, in a fixed order, so that equivalent addresses share one cache
 * entry.
 */
export function canonicalQuery(querystring: string, known: Parameters): string {
  const given = new URLSearchParams(querystring);
  const canonical = new URLSearchParams();
  for (const [name, normalize] of Object.entries(known)) {
    const value = given.get(name);
    const normalized = value === null ? null : normalize(value);
    if (normalized !== null) canonical.set(name, normalized);
  }
  return canonical.toString();
}
