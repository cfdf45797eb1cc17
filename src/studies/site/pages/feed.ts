import { studyLimits } from "../../../contracts/studies/index.js";
import { listStudies, type StudyRow, type StudyRows, topStudies } from "../../store/studies.js";
import { firstCharacters } from "../../text/display.js";
import { html } from "../html.js";
import { counted, page, signature, when } from "../layout.js";
import { revealed } from "../reveal.js";
import type { Visit } from "../visit.js";

const pageSize = 20;

/** New and Top feeds, and search results. */
export async function feed(visit: Visit, kind: "new" | "top"): Promise<void> {
  const { ctx, service } = visit;
  const query = new URLSearchParams(ctx.querystring);
  const q = firstCharacters(query.get("q") ?? "", studyLimits.q);
  const most = Math.floor(studyLimits.offset / pageSize);
  const number = Math.min(most, Math.max(1, Number(/^\d{1,4}$/.exec(query.get("page") ?? "")?.[0] ?? 1)));
  const offset = (number - 1) * pageSize;
  const found: StudyRows =
    kind === "top"
      ? await topStudies(service.store, pageSize, offset)
      : await listStudies(service.store, q, pageSize, offset);
  const searching = kind === "new" && q.trim() !== "";
  const path = kind === "top" ? "/top" : "/";
  const link = (to: number, text: string, rel: string) => {
    const parameters = new URLSearchParams({ ...(searching ? { q } : {}), page: String(to) });
    return html`<a rel="${rel}" href="${path}?${parameters.toString()}">${text}</a>`;
  };
  const tab = (name: string, to: string, text: string) =>
    html`<li><a href="${to}"${kind === name && !searching ? html` aria-current="page"` : null}>${text}</a></li>`;
  const title = searching ? `Search: ${q}` : kind === "top" ? "Top studies" : "New studies";
  page(
    visit,
    title,
    html`<h1>${searching ? "Search results" : title}</h1>
<p class="lead">Small, reproducible studies of how language models work inside: the question, the method, every prompt
and answer, and what they do not show.</p>
<form class="search" role="search" action="/"><label class="visually-hidden" for="q">Search studies</label>
<input type="search" id="q" name="q" value="${q}" placeholder="Words in title, question, method, finding, model …">
<button>Search</button></form>
<ul class="tabs">${tab("new", "/", "New")}${tab("top", "/top", "Top")}</ul>
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
<ol class="feed">${found.rows.map(feedItem)}</ol>
<div class="pages"><span>${number > 1 ? link(number - 1, "← Newer", "prev") : null}</span>
<span>${offset + pageSize < found.total && number < most ? link(number + 1, "Older →", "next") : null}</span></div>`,
  );
}

/** Rows keep the beginning of a question. */
function isCut(question: string): boolean {
  return [...question].length === studyLimits.summary_question;
}

function emptiness(total: number, searching: boolean): string {
  if (total > 0) return "There are no more studies.";
  return searching ? "No study has all of these words." : "Nothing has been published yet.";
}

function feedItem(row: StudyRow) {
  const model = JSON.parse(row.model) as { name: string };
  return html`<li><h2 dir="auto"><a href="/studies/${row.id}">${revealed(row.title)}</a></h2>
<p dir="auto">${revealed(row.question)}${isCut(row.question) ? "…" : null}</p>
<ul class="meta"><li>${signature(row.author, row.handle)}</li><li>${when(row.published_at)}</li><li>${revealed(model.name)}</li>
<li>${counted(row.upvotes, "upvote")}</li><li>${counted(row.comment_count, "comment")}</li>
<li>${counted(row.entry_count, "entry", "entries")}</li>${row.version > 1 ? html`<li>version ${row.version}</li>` : null}</ul></li>`;
}
