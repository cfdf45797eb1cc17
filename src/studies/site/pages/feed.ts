import { studyLimits } from "../../../contracts/studies/index.js";
import { narrowing } from "../../store/filters.js";
import { reproducedStudies } from "../../store/reproductions.js";
import { countFacets, listStudies, type StudyRow, type StudyRows, topStudies } from "../../store/studies.js";
import { firstCharacters } from "../../text/display.js";
import { withoutMarkup } from "../../text/plain.js";
import { words } from "../../text/words.js";
import { type Html, html } from "../html.js";
import { authorLink, counted, page, when } from "../layout.js";
import { revealed } from "../reveal.js";
import { highlighted, snippets } from "../snippets.js";
import type { Visit } from "../visit.js";
import { facetPanel, type Given, givenFilters } from "./facets.js";

const pageSize = 20;

/** The requested page of a list. */
export function pageOf({ ctx }: Visit): { number: number; offset: number; size: number } {
  const asked = new URLSearchParams(ctx.querystring).get("page") ?? "";
  const number = Math.min(mostPages, Math.max(1, Number(/^\d{1,4}$/.exec(asked)?.[0] ?? 1)));
  return { number, offset: (number - 1) * pageSize, size: pageSize };
}

const mostPages = Math.floor(studyLimits.offset / pageSize);

interface Pages {
  path: string;
  query: Record<string, string>;
  number: number;
  total: number;
  labels?: { previous: string; next: string };
}

const timeLabels = { previous: "← Newer", next: "Older →" };

/** Links to the previous and next page. */
export function pageLinks({ path, query, number, total, labels = timeLabels }: Pages): Html {
  const link = (to: number, text: string, rel: string) =>
    html`<a rel="${rel}" href="${path}?${new URLSearchParams({ ...query, page: String(to) }).toString()}">${text}</a>`;
  return html`<div class="pages"><span>${number > 1 ? link(number - 1, labels.previous, "prev") : null}</span>
<span>${number * pageSize < total && number < mostPages ? link(number + 1, labels.next, "next") : null}</span></div>`;
}

const titles = { new: "New studies", top: "Top studies", reproduced: "Reproduced studies" } as const;

/** The feeds, and search results. */
export async function feed(visit: Visit, kind: keyof typeof titles): Promise<void> {
  const { ctx, service } = visit;
  const query = new URLSearchParams(ctx.querystring);
  const q = firstCharacters(query.get("q") ?? "", studyLimits.q);
  const { number, offset } = pageOf(visit);
  const given: Given = kind === "new" ? givenFilters(visit) : {};
  const narrowed = narrowing((name) => given[name]);
  const found: StudyRows =
    kind === "top"
      ? await topStudies(service.store, pageSize, offset)
      : kind === "reproduced"
        ? await reproducedStudies(service.store, pageSize, offset)
        : await listStudies(service.store, q, pageSize, offset, undefined, narrowed);
  const counts = kind === "new" ? await countFacets(service.store, q, narrowed.filters) : null;
  const searching = kind === "new" && (q.trim() !== "" || Object.keys(given).length > 0);
  const wanted = kind === "new" ? words(q) : [];
  const excerpts = await snippets(service.store, found.rows, wanted);
  const path = kind === "new" ? "/" : `/${kind}`;
  const asked: Record<string, string> = searching ? { ...(q.trim() === "" ? {} : { q }), ...given } : {};
  const atom = `/feed.atom${searching ? `?${new URLSearchParams(asked).toString()}` : ""}`;
  const tab = (name: string, to: string, text: string) =>
    html`<li><a href="${to}"${kind === name && !searching ? html` aria-current="page"` : null}>${text}</a></li>`;
  const title = searching ? `Search: ${q}` : titles[kind];
  page(
    visit,
    title,
    html`<h1>${searching ? "Search results" : title}</h1>
<p class="lead">Small, reproducible studies of how language models work inside: the question, the method, every prompt
and answer, and the limitations.</p>
<form class="search" role="search" action="/"><label class="visually-hidden" for="q">Search studies</label>
<input type="search" id="q" name="q" value="${q}" placeholder="Search title, question, method, finding, model …">
<button>Search</button>
${counts === null ? null : facetPanel({ path: "/", q, given, counts })}</form>
<ul class="tabs">${tab("new", "/", "New")}${tab("top", "/top", "Top")}${tab("reproduced", "/reproduced", "Reproduced")}</ul>
${
  searching
    ? html`<p class="hint">${
        found.exact
          ? counted(found.total, "study matches", "studies match")
          : `More than ${found.total} studies match`
      }.</p>`
    : null
}
${found.rows.length === 0 ? html`<p>${emptiness(found.total, searching)}</p>` : null}
<ol class="feed">${found.rows.map((row) => feedItem(row, { wanted, snippet: excerpts.get(row.published_at) }))}</ol>
${pageLinks({ path, query: asked, number, total: found.total })}<p class="hint"><a href="${atom}">Atom feed</a></p>`,
    { head: html`<link rel="alternate" type="application/atom+xml" href="${atom}">` },
  );
}

/** Rows store only the beginning of a question. */
function isCut(question: string): boolean {
  return [...question].length === studyLimits.summary_question;
}

function emptiness(total: number, searching: boolean): string {
  if (total > 0) return "No more studies.";
  return searching ? "No studies match all of these words." : "No studies yet.";
}

/** @param found folded search words, and an excerpt that contains them */
export function feedItem(
  row: StudyRow,
  { wanted, snippet }: { wanted: readonly string[]; snippet?: string | undefined } = { wanted: [] },
): Html {
  const model = JSON.parse(row.model) as { name: string };
  return html`<li><h2 dir="auto"><a href="/studies/${row.id}">${highlighted(row.title, wanted)}</a></h2>
<p dir="auto">${highlighted(withoutMarkup(row.question), wanted)}${isCut(row.question) ? "…" : null}</p>${
    snippet === undefined
      ? null
      : html`<p class="snippet" dir="auto">${highlighted(withoutMarkup(snippet), wanted)}</p>`
  }
<ul class="meta"><li>${authorLink(row)}</li><li>${when(row.published_at)}</li><li>${revealed(model.name)}</li>
<li>${counted(row.upvotes, "upvote")}</li><li>${counted(row.comment_count, "comment")}</li>
<li>${counted(row.entry_count, "entry", "entries")}</li>${row.version > 1 ? html`<li>version ${row.version}</li>` : null}</ul></li>`;
}
