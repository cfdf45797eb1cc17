import { authorStudies } from "../../store/studies.js";
import { html } from "../html.js";
import { page, signature } from "../layout.js";
import { SiteError, type Visit } from "../visit.js";
import { feedItem, pageLinks, pageOf } from "./feed.js";

/** The account that an address names by its handle, as far as the public knows it. */
export async function findAuthor(
  visit: Visit,
  handle: string | undefined,
): Promise<{ id: string; name: string; handle: string }> {
  const row = await visit.service.store.db
    .selectFrom("accounts")
    .select(["id", "name", "handle"])
    .where("handle", "=", handle ?? "")
    .executeTakeFirst();
  // Who has published nothing is nobody here.
  const known = row && (await authorStudies(visit.service.store, row.id, 1, 0)).rows.length > 0;
  if (row === undefined || row.handle === null || !known)
    throw new SiteError(404, "There is no such author.");
  return { id: row.id, name: row.name, handle: row.handle };
}

/** What somebody has published. */
export async function author(visit: Visit, handle: string | undefined): Promise<void> {
  const found = await findAuthor(visit, handle);
  const { number, offset, size } = pageOf(visit);
  const { rows, total } = await authorStudies(visit.service.store, found.id, size, offset);
  const path = `/authors/${found.handle}`;
  page(
    visit,
    found.name,
    html`<h1>${signature(found.name, found.handle)}</h1>
<p class="meta"><span>${total} published</span> <a href="${path}/feed.atom">Atom feed</a></p>
<ol class="feed">${rows.map((row) => feedItem(row))}</ol>${pageLinks({ path, query: {}, number, total })}`,
    { head: html`<link rel="alternate" type="application/atom+xml" href="${path}/feed.atom">` },
  );
}
