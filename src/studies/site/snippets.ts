import { sql } from "kysely";
import type { StudyPackage } from "../../contracts/studies/index.js";
import { listedPackages } from "../store/search-entry.js";
import type { Store } from "../store/store.js";
import type { StudyRow } from "../store/studies.js";
import { matchesIn, snippetOf } from "../text/matches.js";
import { type Html, html } from "./html.js";
import { Pace } from "./pace.js";
import { revealed } from "./reveal.js";

/** Larger packages are not searched for a snippet. */
const mostBytes = 200_000;

/** A text with the search words highlighted. */
export function highlighted(text: string, wanted: readonly string[]): Html {
  if (wanted.length === 0) return revealed(text);
  return html`${matchesIn(text, wanted).map((part) =>
    part.match ? html`<mark>${revealed(part.text)}</mark>` : revealed(part.text),
  )}`;
}

/** For each study of a page, by publication time, a passage with search words that its title and question lack. */
export async function snippets(
  store: Store,
  rows: readonly StudyRow[],
  wanted: readonly string[],
): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  if (rows.length === 0 || wanted.length === 0) return found;
  const packages = await listedPackages(store.db)
    .where(
      "studies.published_at",
      "in",
      rows.map((row) => row.published_at),
    )
    .where(sql<boolean>`length(versions.package) <= ${sql.lit(mostBytes)}`)
    .execute();
  const pace = new Pace();
  for (const row of packages) {
    await pace.turn();
    const snippet = snippetOf(JSON.parse(row.package.toString("utf8")) as StudyPackage, wanted);
    if (snippet !== null) found.set(row.published_at, snippet);
  }
  return found;
}
