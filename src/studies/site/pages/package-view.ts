import { blockLabels, blocksOf, type Entry, type StudyPackage } from "../../../contracts/studies/index.js";
import { resultFigures } from "../figures.js";
import { type Html, html } from "../html.js";
import { asWritten, codeBlock, type Fence, Markdown } from "../markdown/render.js";
import type { Outline } from "../outline.js";
import type { Pace } from "../pace.js";
import type { Shown } from "../reveal.js";

/** Size limit for the markup of a rendered package. */
const mostMarkup = 3_000_000;

/** Text given to a model, verbatim, with code blocks set as code. */
function verbatim(text: string, shown: Shown): Html {
  return html`${blocksOf(text).map(({ code, label, text: part }) =>
    code ? codeBlock(part, label, shown) : asWritten(part, shown),
  )}`;
}

export interface ViewOptions {
  shown: Shown;
  pace: Pace;
  /** Show source texts instead of rendered Markdown. */
  source: boolean;
  /** Collects the table of contents. */
  outline?: Outline;
  /** Path of the version, for permalinks, and whether the visitor may quote it in a comment. */
  links?: { permanent: string; quote: boolean };
}

/** Renders a package, up to a size limit, in slices. */
export async function packageView(study: StudyPackage, options: ViewOptions): Promise<Html> {
  return new PackageView(options).whole(study);
}

/** Renders comment texts. */
export function commentTexts(options: ViewOptions): (text: string) => Promise<Html> {
  if (options.source) return async (text) => asWritten(text, options.shown);
  const markdown = new Markdown(options);
  return (text) => markdown.of(text, 3);
}

const deepest = 6;

class PackageView {
  readonly #shown: Shown;
  readonly #pace: Pace;
  readonly #markdown: Markdown | null;
  readonly #outline: Outline | undefined;
  readonly #links: ViewOptions["links"];
  #left = mostMarkup;
  #leftOut = 0;

  constructor(options: ViewOptions) {
    this.#shown = options.shown;
    this.#pace = options.pace;
    const { outline } = options;
    this.#outline = outline;
    this.#links = options.links;
    const fence: Fence = async (label, text, shown, pace) =>
      label === blockLabels.quants
        ? html`<details><summary>Figures as data</summary>${codeBlock(text, label, shown)}</details>`
        : resultFigures(label, text, shown, pace, outline);
    const heading = outline && ((text: string) => outline.heading(text));
    this.#markdown = options.source
      ? null
      : new Markdown({ ...options, fence, ...(heading === undefined ? {} : { heading }) });
  }

  async whole(study: StudyPackage): Promise<Html> {
    const parts: Html[] = [];
    for (const [heading, text] of [
      ["Question", study.question],
      ["Hypothesis", study.hypothesis],
      ["Method", study.method],
      ["Finding", study.finding],
      ["Limitations", study.limitations],
    ] as const) {
      this.#outline?.begin(heading.toLowerCase());
      if (text !== "")
        parts.push(html`<h2 id="${heading.toLowerCase()}">${heading}</h2>${await this.#prose(text, 2)}`);
    }
    if (study.omissions.length > 0) {
      const omissions: Html[] = [];
      for (const text of study.omissions) {
        omissions.push(await this.#bounded(() => html`<li dir="auto">${this.#shown(text)}</li>`));
      }
      parts.push(html`<h2 id="left-out">Omissions</h2><ul>${omissions}</ul>`);
    }
    parts.push(html`<h2 id="entries">Entries</h2>${await this.#tree(study.entries)}`);
    if (this.#leftOut > 0) {
      parts.push(
        html`<p class="notice">${this.#leftOut} more texts are not shown, to limit the page size. The package download is complete.</p>`,
      );
    }
    return html`${parts}`;
  }

  async #bounded(make: () => Html | Promise<Html>): Promise<Html> {
    if (this.#left <= 0) {
      this.#leftOut += 1;
      return html``;
    }
    await this.#pace.turn();
    const made = await make();
    this.#left -= made.markup.length;
    return made;
  }

  /** Text written by people, as Markdown. */
  #prose(text: string, heading: number): Promise<Html> {
    return this.#bounded(() => this.#markdown?.of(text, heading) ?? asWritten(text, this.#shown));
  }

  #verbatim(text: string): Promise<Html> {
    return this.#bounded(() => verbatim(text, this.#shown));
  }

  async #tree(entries: Entry[]): Promise<Html> {
    const children = new Map<string, Entry[]>();
    for (const entry of entries) {
      const parent = entry.parent?.toLowerCase() ?? "";
      const siblings = children.get(parent);
      if (siblings === undefined) children.set(parent, [entry]);
      else siblings.push(entry);
    }
    const level = async (parent: string, depth: number): Promise<Html | null> => {
      const below = children.get(parent);
      if (below === undefined) return null;
      const kind = depth === 0 ? "tree" : depth > deepest ? "tree-deep" : "tree-level";
      const items: Html[] = [];
      for (const entry of below) {
        const own = await this.#entry(entry);
        items.push(html`<li>${own}${await level(entry.id.toLowerCase(), depth + 1)}</li>`);
      }
      return html`<ul class="${kind}">${items}</ul>`;
    };
    return (await level("", 0)) as Html;
  }

  async #entry(entry: Entry): Promise<Html> {
    const shown = this.#shown;
    const part = async (heading: string, text: string | undefined, { open = false, written = false }) =>
      text === undefined || text === ""
        ? null
        : html`<details${open ? html` open` : null}><summary>${heading}</summary>${await (written ? this.#prose(text, 3) : this.#verbatim(text))}</details>`;
    const context: Html[] = [];
    for (const { role, content } of entry.context ?? []) {
      context.push(await this.#bounded(() => html`<p class="hint">${role}</p>${verbatim(content, shown)}`));
    }
    const { settings } = entry;
    this.#outline?.entry(entry);
    const anchor = `#entry-${entry.id}`;
    const links = this.#links;
    return html`<article class="entry" id="entry-${entry.id}"><h3><span class="badge ${entry.kind}">${entry.kind}</span>
${entry.title === "" ? "Untitled" : html`<bdi>${shown(entry.title)}</bdi>`} <a class="permanent" href="${links?.permanent ?? ""}${anchor}" aria-label="Link to this entry">¶</a>${
      links?.quote
        ? html` <a class="quote" rel="nofollow" href="${links.permanent}?quote=entry-${entry.id}#body-new">Quote<span class="visually-hidden"> this entry</span></a>`
        : null
    }</h3>
<ul class="meta">${entry.model === undefined ? null : html`<li>model ${shown(entry.model)}</li>`}${
      settings === undefined
        ? null
        : html`<li>temperature ${settings.temperature}</li><li>seed ${settings.seed}</li><li>max tokens ${settings.maxTokens}</li><li>thinking ${settings.thinking}</li>`
    }${entry.finishReason == null ? null : html`<li>finish reason: ${shown(entry.finishReason)}</li>`}</ul>
${await part("System prompt", entry.system, {})}${
  context.length === 0
    ? null
    : html`<details><summary>Context (${context.length})</summary>${context}</details>`
}${await part("Prompt", entry.prompt, { open: true })}${await part("Thinking", entry.thinking, {})}${await part("Answer", entry.answer, { open: true, written: true })}${await part("Note", entry.note, { open: true, written: true })}</article>`;
  }
}
