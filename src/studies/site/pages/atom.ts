import { studyLimits } from "../../../contracts/studies/index.js";
import { authorStudies, listStudies, type StudyRow } from "../../store/studies.js";
import { firstCharacters } from "../../text/display.js";
import { absolute, studyPath } from "../address.js";
import type { Visit } from "../visit.js";
import { findAuthor } from "./author.js";
import { plain, sendXml, xml } from "./xml.js";

const entries = 20;

/** The newest studies, or search results, as a feed. */
export async function feedAtom(visit: Visit): Promise<void> {
  const q = firstCharacters(new URLSearchParams(visit.ctx.querystring).get("q") ?? "", studyLimits.q).trim();
  const { rows } = await listStudies(visit.service.store, q, entries, 0);
  const query = q === "" ? "" : `?${new URLSearchParams({ q }).toString()}`;
  send(visit, {
    title: q === "" ? "tapline studies" : `tapline studies: ${q}`,
    page: `/${query}`,
    self: `/feed.atom${query}`,
    // Search results come best match first, but feeds should show the newest first.
    rows: rows.toSorted((a, b) => b.published_at - a.published_at),
  });
}

export async function authorAtom(visit: Visit, handle: string): Promise<void> {
  const author = await findAuthor(visit, handle);
  const { rows } = await authorStudies(visit.service.store, author.id, entries, 0);
  send(visit, {
    title: `tapline studies by ${author.name}`,
    page: `/authors/${author.handle}`,
    self: `/authors/${author.handle}/feed.atom`,
    rows,
  });
}

interface Feed {
  title: string;
  page: string;
  self: string;
  rows: readonly StudyRow[];
}

function send(visit: Visit, { title, page, self, rows }: Feed): void {
  const at = (path: string) => absolute(visit.service, path);
  const time = (ms: number) => new Date(ms).toISOString();
  sendXml(
    visit,
    "application/atom+xml",
    xml`<feed xmlns="http://www.w3.org/2005/Atom"><title>${plain(title)}</title><id>${at(self)}</id>
<link rel="self" href="${at(self)}"/><link href="${at(page)}"/><updated>${time(rows[0]?.published_at ?? 0)}</updated>
${rows.map(
  (
    row,
  ) => xml`<entry><title>${plain(row.title)}</title><id>urn:uuid:${row.id}</id><link href="${at(studyPath(row.id))}"/>
<published>${time(row.created_at)}</published><updated>${time(row.published_at)}</updated><author><name>${plain(row.author)}</name>${
    row.handle === null ? null : xml`<uri>${at(`/authors/${row.handle}`)}</uri>`
  }</author><summary>${plain(row.question)}</summary></entry>
`,
)}</feed>`,
  );
}
