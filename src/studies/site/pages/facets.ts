import { brokenFilter, type StudyFilterName, studyFilterNames } from "../../../contracts/studies/index.js";
import type { Facets } from "../../store/studies.js";
import { type Html, html } from "../html.js";
import { revealed } from "../reveal.js";
import type { Visit } from "../visit.js";

/** Filters given in the query. */
export type Given = Partial<Record<StudyFilterName, string>>;

/** The valid filters of the query; invalid ones are ignored. */
export function givenFilters({ ctx }: Visit): Given {
  const query = new URLSearchParams(ctx.querystring);
  const given: Given = {};
  for (const name of studyFilterNames) {
    const value = query.get(name);
    if (value !== null && brokenFilter(name, value) === null) given[name] = value;
  }
  return given;
}

const orderNames = {
  relevance: "best match",
  new: "newest",
  top: "most upvotes",
  discussed: "most comments",
};

const facetNames = {
  model: "Model",
  method: "Method",
  author: "Author",
  year: "Year",
  license: "License",
  reproduced: "Reproduced",
} as const;
type FacetName = keyof typeof facetNames;

interface Panel {
  /** Path and query of the page. */
  path: string;
  q: string;
  given: Given;
  counts: Facets;
  /** The filter that the page itself implies. */
  fixed?: FacetName;
}

/** Filters with counts; open if any is set. */
export function facetPanel({ path, q, given, counts, fixed }: Panel): Html {
  const rows = (Object.keys(facetNames) as FacetName[])
    .filter((name) => name !== fixed)
    .map((name) => facetRow(name, { path, q, given, counts }));
  const open = Object.keys(given).some((name) => name !== fixed);
  const text = (name: "model" | "author" | "year", label: string) =>
    html`<div class="field"><label for="${name}">${label}</label><input type="text" id="${name}" name="${name}" value="${given[name] ?? ""}"></div>`;
  // Filters that only links can set are preserved when the form is submitted.
  const preserved = (["method", "license", "reproduced"] as const).map((name) =>
    given[name] === undefined ? null : html`<input type="hidden" name="${name}" value="${given[name]}">`,
  );
  return html`<details class="filters"${open ? html` open` : null}><summary>Filter and sort</summary>
<dl class="facets">${rows}</dl><div class="filter-fields">${preserved}
${text("model", "Model (exact name)")}${fixed === "author" ? null : text("author", "Author (handle)")}${text("year", "Year")}
<div class="field"><label for="sort">Sort by</label><select id="sort" name="sort">${Object.entries(
    orderNames,
  ).map(
    ([value, name]) =>
      html`<option value="${value}"${given.sort === value ? html` selected` : null}>${name}</option>`,
  )}</select></div></div></details>`;
}

/** Values of one filter as links; the link of the selected value clears the filter. */
function facetRow(name: FacetName, { path, q, given, counts }: Panel): Html | null {
  const values: { value: string; count: number; name?: string }[] = counts[name];
  const set = given[name];
  const shown =
    set === undefined || values.some(({ value }) => value === set)
      ? values
      : [{ value: set, count: 0 }, ...values];
  if (shown.length === 0) return null;
  const items = shown.map((one) => {
    const { [name]: _, ...others } = given;
    const chosen = one.value === set;
    const asked = { ...(q.trim() === "" ? {} : { q }), ...others, ...(chosen ? {} : { [name]: one.value }) };
    const query = new URLSearchParams(asked).toString();
    const label = name === "reproduced" ? "yes" : (one.name ?? one.value);
    return html`<a rel="nofollow" href="${path}${query === "" ? "" : `?${query}`}"${chosen ? html` aria-current="true"` : null}><bdi>${revealed(label)}</bdi> <span class="count">${one.count}</span>${
      chosen ? html`<span class="visually-hidden">, selected; clear filter</span>` : null
    }</a> `;
  });
  return html`<dt>${facetNames[name]}</dt><dd>${items}</dd>`;
}
