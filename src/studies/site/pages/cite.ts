import type { StudyPackage } from "../../../contracts/studies/index.js";
import { bibtex, type Citable, cff, ris } from "../../text/cite.js";
import { absolute, studyPath } from "../address.js";
import { SiteError, type Visit } from "../visit.js";
import { findShown, type ShownVersion } from "./find-study.js";

const forms: Record<string, { type: string; make: (study: Citable) => string; name: string }> = {
  bib: { type: "application/x-bibtex", make: bibtex, name: "BibTeX" },
  cff: { type: "application/yaml", make: cff, name: "CFF" },
  ris: { type: "application/x-research-info-systems", make: ris, name: "RIS" },
};

/** Citation formats by file extension. */
export const citeForms = Object.entries(forms).map(([ending, { name }]) => ({ ending, name }));

export function citableOf(visit: Visit, { row, version }: ShownVersion, content: StudyPackage): Citable {
  return {
    address: absolute(visit.service, studyPath(row.id, version.version)),
    id: row.id,
    version: version.version,
    title: content.title,
    author: row.author,
    license: content.license,
    publishedAt: version.published_at,
    sha256: version.sha256,
  };
}

/** A citation of one version, as a file for reference managers. */
export async function cite(visit: Visit, id: string, version: string, ending: string): Promise<void> {
  const form = forms[ending];
  if (form === undefined) throw new SiteError(404, "Page not found.");
  const shown = await findShown(visit, id, version);
  const content = JSON.parse(shown.version.package.toString("utf8")) as StudyPackage;
  const { ctx } = visit;
  ctx.set("Content-Type", `${form.type}; charset=utf-8`);
  ctx.set(
    "Content-Disposition",
    `attachment; filename="${shown.row.id}-v${shown.version.version}.${ending}"`,
  );
  ctx.body = form.make(citableOf(visit, shown, content));
}
