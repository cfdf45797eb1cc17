import type { Entry, StudyPackage } from "../../../contracts/studies/index.js";
import { blocksOf } from "../../text/prose.js";
import { type Html, html } from "../html.js";
import type { Pace } from "../pace.js";

/** How research text is shown: with hidden characters made visible. */
export type Shown = (text: string) => Html;

/** Markup of a package in the readable view; what comes after is left to the exact bytes. */
const mostMarkup = 3_000_000;

/** A text in its own direction, code in it set as code. */
export function prose(text: string, shown: Shown): Html {
  return html`${blocksOf(text).map(({ code, label, text: part }) =>
    code
      ? html`${label === "" ? null : html`<p class="hint code-label">${shown(label)}</p>`}<pre class="code" dir="ltr">${shown(part)}</pre>`
      : html`<div class="text" dir="auto">${shown(part)}</div>`,
  )}`;
}

/** The readable view of a package, within a bound, made in slices. */
export async function packageView(study: StudyPackage, shown: Shown, pace: Pace): Promise<Html> {
  return new PackageView(shown, pace).whole(study);
}

const deepest = 6;

class PackageView {
  readonly #shown: Shown;
  readonly #pace: Pace;
  #left = mostMarkup;
  #leftOut = 0;

  constructor(shown: Shown, pace: Pace) {
    this.#shown = shown;
    this.#pace = pace;
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
      if (text !== "") parts.push(html`<h2>${heading}</h2>${await this.#prose(text)}`);
    }
    if (study.omissions.length > 0) {
      const omissions: Html[] = [];
      for (const text of study.omissions) {
        omissions.push(await this.#bounded(() => html`<li dir="auto">${this.#shown(text)}</li>`));
      }
      parts.push(html`<h2>Left out</h2><ul>${omissions}</ul>`);
    }
    parts.push(html`<h2>Entries</h2>${await this.#tree(study.entries)}`);
    if (this.#leftOut > 0) {
      parts.push(
        html`<p class="notice">This view ends here: ${this.#leftOut} more texts would make the page too large. The exact bytes hold all of them.</p>`,
      );
    }
    return html`${parts}`;
  }

  async #bounded(make: () => Html): Promise<Html> {
    if (this.#left <= 0) {
      this.#leftOut += 1;
      return html``;
    }
    await this.#pace.turn();
    const made = make();
    this.#left -= made.markup.length;
    return made;
  }

  #prose(text: string): Promise<Html> {
    return this.#bounded(() => prose(text, this.#shown));
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
    const part = async (heading: string, text: string | undefined, open = false) =>
      text === undefined || text === ""
        ? null
        : html`<details${open ? html` open` : null}><summary>${heading}</summary>${await this.#prose(text)}</details>`;
    const context: Html[] = [];
    for (const { role, content } of entry.context ?? []) {
      context.push(await this.#bounded(() => html`<p class="hint">${role}</p>${prose(content, shown)}`));
    }
    const { settings } = entry;
    return html`<article class="entry" id="entry-${entry.id}"><h3><span class="badge ${entry.kind}">${entry.kind}</span>
${entry.title === "" ? "Untitled" : html`<bdi>${shown(entry.title)}</bdi>`}</h3>
<ul class="meta">${entry.model === undefined ? null : html`<li>model ${shown(entry.model)}</li>`}${
      settings === undefined
        ? null
        : html`<li>temperature ${settings.temperature}</li><li>seed ${settings.seed}</li><li>at most ${settings.maxTokens} tokens</li><li>thinking ${settings.thinking}</li>`
    }${entry.finishReason == null ? null : html`<li>finished: ${shown(entry.finishReason)}</li>`}</ul>
${await part("System prompt", entry.system)}${
  context.length === 0
    ? null
    : html`<details><summary>Context (${context.length})</summary>${context}</details>`
}${await part("Prompt", entry.prompt, true)}${await part("Thinking", entry.thinking)}${await part("Answer", entry.answer, true)}${await part("Note", entry.note, true)}</article>`;
  }
}
