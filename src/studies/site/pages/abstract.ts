import { blocksOf, type StudyPackage } from "../../../contracts/studies/index.js";
import { type Html, html } from "../html.js";
import { Markdown } from "../markdown/render.js";
import type { Outline } from "../outline.js";
import { revealed } from "../reveal.js";
import type { ViewOptions } from "./package-view.js";

/** A study with this much prose or this many entries is long. */
const longProse = 2500;
const manyEntries = 6;
/** Longer paragraphs are cut. */
const longestParagraph = 900;

/** Whether a study is long enough to need an abstract. */
export function isLong(study: StudyPackage): boolean {
  if (study.entries.length >= manyEntries) return true;
  const { question, hypothesis, method, finding, limitations } = study;
  let prose = 0;
  for (const text of [question, hypothesis, method, finding, limitations]) {
    for (const block of blocksOf(text)) if (!block.code) prose += block.text.length;
  }
  return prose >= longProse;
}

/** Question and finding, one paragraph each, and the first figure. */
export async function abstractView(study: StudyPackage, options: ViewOptions): Promise<Html | null> {
  if (!isLong(study) || options.source) return null;
  const markdown = new Markdown({ shown: options.shown, pace: options.pace });
  const parts: Html[] = [];
  for (const [name, text] of [
    ["Question", study.question],
    ["Finding", study.finding],
  ] as const) {
    const paragraph = firstParagraph(text);
    if (paragraph !== null)
      parts.push(html`<div class="short"><h3>${name}</h3>${await markdown.of(paragraph, 4)}</div>`);
  }
  const headline = options.outline?.headline ?? null;
  return html`<section class="abstract card" aria-labelledby="abstract"><h2 id="abstract">Abstract</h2>${parts}${
    headline === null
      ? null
      : html`<div class="headline result" role="figure" aria-label="First figure"><p class="hint"><a href="#${headline.id}">${revealed(headline.title)}</a></p>${headline.drawings}</div>`
  }</section>`;
}

/** The first paragraph of prose; null if there is none. */
export function firstParagraph(text: string): string | null {
  for (const block of blocksOf(text)) {
    if (block.code) continue;
    for (const part of block.text.split(/\n[^\S\n]*\n/)) {
      const paragraph = part.trim();
      // Not a heading, list, table, quotation, formula or line.
      if (paragraph === "" || /^(?:#|[-+*] |\d+[.)] |\||>|\$\$|\\\[|[-=*_]{3,}$)/.test(paragraph)) continue;
      if (paragraph.length <= longestParagraph) return paragraph;
      const cut = paragraph.slice(0, longestParagraph);
      const end = cut.lastIndexOf(" ");
      return `${cut.slice(0, end > 0 ? end : longestParagraph).replace(/[\ud800-\udbff]$/, "")} …`;
    }
  }
  return null;
}

/** Table of contents, with a link between the rendered view and the source text. */
export function contentsView(
  content: StudyPackage,
  path: string,
  { source, outline, reproductions }: { source: boolean; outline: Outline; reproductions: number },
): Html {
  const sections = [
    ["question", "Question", content.question],
    ["hypothesis", "Hypothesis", content.hypothesis],
    ["method", "Method", content.method],
    ["finding", "Finding", content.finding],
    ["limitations", "Limitations", content.limitations],
    ["left-out", "Omissions", content.omissions.join("")],
    ["entries", `Entries (${content.entries.length})`, "x"],
    ["reproductions", `Reproductions (${reproductions})`, reproductions === 0 ? "" : "x"],
    ["provenance", "Provenance", "x"],
    ["discussion", "Discussion", "x"],
  ] as const;
  const long = isLong(content);
  const inside = (id: string) => {
    const named = long ? outline.within(id) : [];
    return named.length === 0
      ? null
      : html`<ul>${named.map((one) => html`<li><a href="#${one.id}"><bdi>${revealed(one.name)}</bdi></a></li>`)}</ul>`;
  };
  return html`<nav class="toc" aria-label="On this page"><ul>${sections
    .filter(([, , text]) => text !== "")
    .map(([id, name]) => html`<li><a href="#${id}">${name}</a>${inside(id)}</li>`)}<li>${
    source
      ? html`Source text; <a href="${path}">rendered view</a>`
      : html`<a href="${path}?view=source">Source text</a>`
  }</li></ul></nav>`;
}
