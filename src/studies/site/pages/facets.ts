import { operations } from "../../../contracts/index.js";
import {
  brokenFilter,
  licenses,
  type StudyFilterName,
  studyFilterNames,
} from "../../../contracts/studies/index.js";
import type { Facets } from "../../store/studies.js";
import { type Html, html } from "../html.js";
import { revealed } from "../reveal.js";
import type { Visit } from "../visit.js";

/** What an address narrows a list down by. */
export type Given = Partial<Record<StudyFilterName, string>>;

/** What an address says wrongly narrows nothing. */
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
  /** Page whose list it is, and what is asked of it. */
  path: string;
  q: string;
  given: Given;
  counts: Facets;
  /** The filter that the page itself stands for. */
  fixed?: FacetName;
}

/** What a list can be narrowed down by, with counts beside; open where something is. */
export function facetPanel({ path, q, given, counts, fixed }: Panel): Html {
  const rows = (Object.keys(facetNames) as FacetName[])
    .filter((name) => name !== fixed)
    .map((name) => facetRow(name, { path, q, given, counts }));
  const open = Object.keys(given).some((name) => name !== fixed);
  const same = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, name]));
  const choice = (name: StudyFilterName, label: string, all: string, values: Record<string, string>) =>
    html`<div class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}">${
      all === "" ? null : html`<option value="">${all}</option>`
    }${Object.entries(values).map(
      ([value, text]) =>
        html`<option value="${value}"${given[name] === value ? html` selected` : null}>${text}</option>`,
    )}</select></div>`;
  const text = (name: StudyFilterName, label: string) =>
    html`<div class="field"><label for="${name}">${label}</label><input type="text" id="${name}" name="${name}" value="${given[name] ?? ""}"></div>`;
  return html`<details class="filters"${open ? html` open` : null}><summary>Narrow down and sort</summary>
<dl class="facets">${rows}</dl><div class="filter-fields">
${text("model", "Model, exactly")}${fixed === "author" ? null : text("author", "Author's handle")}${text("year", "Year")}
${choice("method", "Method", "any", same(operations))}${choice("license", "License", "any", same(licenses))}${choice("reproduced", "Reproduced", "any", { yes: "by somebody" })}${choice("sort", "Sort by", "", orderNames)}</div></details>`;
}

/** Values of one filter, each a link that sets it; the one that is set leads back. */
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
    const label = name === "reproduced" ? "by somebody" : (one.name ?? one.value);
    return html`<a rel="nofollow" href="${path}${query === "" ? "" : `?${query}`}"${chosen ? html` aria-current="true"` : null}><bdi>${revealed(label)}</bdi> <span class="count">${one.count}</span>${
      chosen ? html`<span class="visually-hidden">, chosen; any</span>` : null
    }</a> `;
  });
  return html`<dt>${facetNames[name]}</dt><dd>${items}</dd>`;
}
