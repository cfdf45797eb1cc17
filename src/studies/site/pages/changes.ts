import type { StudyPackage } from "../../../contracts/studies/index.js";
import { listVersions } from "../../store/studies.js";
import { studyPath } from "../address.js";
import { html } from "../html.js";
import { page, when } from "../layout.js";
import { Pace } from "../pace.js";
import { Reveal } from "../reveal.js";
import type { Visit } from "../visit.js";
import { differenceView } from "./difference.js";
import { findShown } from "./find-study.js";

/** Differences between two published versions of a study; by default the last two. */
export async function changes(visit: Visit, id: string): Promise<void> {
  const query = new URLSearchParams(visit.ctx.querystring);
  const newer = await findShown(visit, id, query.get("to") ?? undefined);
  const { row } = newer;
  const standing = (await listVersions(visit.service.store, row.id)).filter(
    (one) => one.standing === "published",
  );
  const previous = standing.find(({ version }) => version < newer.version.version)?.version;
  const older = await findShown(visit, id, query.get("from") ?? String(previous ?? newer.version.version));
  const reveal = new Reveal();
  const { show } = reveal;
  const [before, after] = [older, newer].map(
    ({ version }) => JSON.parse(version.package.toString("utf8")) as StudyPackage,
  ) as [StudyPackage, StudyPackage];
  const found = await differenceView(before, after, show, new Pace());
  const [from, to] = [older.version.version, newer.version.version];
  const link = (version: number, at: number) =>
    html`<a href="${studyPath(row.id, version)}">version ${version}</a> (${when(at)})`;
  const choose = (name: string, label: string, chosen: number) =>
    html`<label for="${name}">${label}</label> <select id="${name}" name="${name}">${standing.map(
      ({ version }) =>
        html`<option value="${version}"${version === chosen ? html` selected` : null}>version ${version}</option>`,
    )}</select> `;
  page(
    visit,
    `Changes: ${after.title}`,
    html`<h1 dir="auto">Changes in ${show(after.title)}</h1>
<p>From ${link(from, older.version.published_at)} to ${link(to, newer.version.published_at)}.</p>
<form class="card" action="/studies/${row.id}/changes">${choose("from", "From", from)}${choose("to", "To", to)}<button class="quiet">Show</button></form>
${reveal.notice()}${found}`,
  );
}
