import { studyLimits } from "../../../contracts/studies/index.js";
import { narrowing } from "../../store/filters.js";
import { authorStudies, countFacets, listStudies } from "../../store/studies.js";
import { firstCharacters } from "../../text/display.js";
import { words } from "../../text/words.js";
import { html } from "../html.js";
import { counted, page, signature, when } from "../layout.js";
import { snippets } from "../snippets.js";
import { SiteError, type Visit } from "../visit.js";
import { facetPanel, givenFilters } from "./facets.js";
import { feedItem, pageLinks, pageOf } from "./feed.js";

/** The public account with this handle. */
export async function findAuthor(
  visit: Visit,
  handle: string,
): Promise<{ id: string; name: string; handle: string; newest: number }> {
  const { db } = visit.service.store;
  const row = await db
    .selectFrom("accounts")
    .select(["id", "name", "handle"])
    .where("handle", "=", handle)
    .executeTakeFirst();
  const newest =
    row &&
    (await db
      .selectFrom("studies")
      .select("published_at")
      .where("account_id", "=", row.id)
      .where("listed", "=", 1)
      .orderBy("published_at", "desc")
      .limit(1)
      .executeTakeFirst());
  // Accounts without published studies are not public.
  if (newest === undefined || row?.handle == null) throw new SiteError(404, "Author not found.");
  return { id: row.id, name: row.name, handle: row.handle, newest: newest.published_at };
}

/** An author's studies, with search and filters. */
export async function author(visit: Visit, handle: string): Promise<void> {
  const { store } = visit.service;
  const found = await findAuthor(visit, handle);
  const { number, offset, size } = pageOf(visit);
  const query = new URLSearchParams(visit.ctx.querystring);
  const q = firstCharacters(query.get("q") ?? "", studyLimits.q);
  const { author: _, ...given } = givenFilters(visit);
  const asked: Record<string, string> = { ...(q.trim() === "" ? {} : { q }), ...given };
  const narrowed = Object.keys(asked).length > 0;
  const { filters, order } = narrowing((name) => (name === "author" ? found.handle : given[name]));
  const [all, matching, counts] = await Promise.all([
    authorStudies(store, found.id, size, offset),
    narrowed ? listStudies(store, q, size, offset, undefined, { filters, order }) : null,
    countFacets(store, q, filters),
  ]);
  const { rows, total, exact } = matching ?? all;
  const wanted = words(q);
  const excerpts = await snippets(store, rows, wanted);
  const path = `/authors/${found.handle}`;
  page(
    visit,
    found.name,
    html`<h1>${signature(found.name, found.handle)}</h1>
<ul class="meta"><li>${all.total} published</li><li>latest ${when(found.newest)}</li><li><a href="${path}/feed.atom">Atom feed</a></li></ul>
<form class="search" role="search" action="${path}"><label class="visually-hidden" for="q">Search these studies</label>
<input type="search" id="q" name="q" value="${q}" placeholder="Search in studies by ${found.name}"><button>Search</button>
${facetPanel({ path, q, given, counts, fixed: "author" })}</form>
${narrowed ? html`<p class="hint">${exact ? counted(total, "study matches", "studies match") : `More than ${total} studies match`}. <a href="${path}">Show all</a></p>` : null}
<ol class="feed">${rows.map((row) => feedItem(row, { wanted, snippet: excerpts.get(row.published_at) }))}</ol>${pageLinks({ path, query: asked, number, total })}`,
    { head: html`<link rel="alternate" type="application/atom+xml" href="${path}/feed.atom">` },
  );
}
