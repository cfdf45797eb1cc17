import { studyFilterNames, studyLimits } from "../../contracts/studies/index.js";

/** What a page reads from its address, by parameter: the value as the page takes it, or null where it is as if absent. */
export type Parameters = Record<string, (value: string) => string | null>;

const any = (value: string) => value;
const digits = (value: string) => (/^\d{1,6}$/.test(value) ? String(Number(value)) : null);

/** A list that can be searched, narrowed down and turned over. */
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
  // Comments are linked a page at a time: other numbers begin within one.
  comments: (value) => {
    const offset = Number(digits(value) ?? 0);
    const first = offset - (offset % studyLimits.discussion_page);
    return first === 0 ? null : String(Math.min(first, studyLimits.offset));
  },
};

/**
 * A query with nothing but what a page reads, in one order: addresses that differ in anything else are one page, which
 * is made once.
 */
export function canonicalQuery(querystring: string, known: Parameters): string {
  const given = new URLSearchParams(querystring);
  const taken = new URLSearchParams();
  for (const [name, taking] of Object.entries(known)) {
    const value = given.get(name);
    const meant = value === null ? null : taking(value);
    if (meant !== null) taken.set(name, meant);
  }
  return taken.toString();
}
