import type { Entry, StudyPackage } from "../../../contracts/studies/index.js";
import { splitHidden } from "../../text/hidden.js";
import { type Html, html } from "../html.js";

/** How research text is shown: as it is on a study's page, with hidden characters made visible in a review. */
export type Shown = (text: string) => Html;

export const plain: Shown = (text) => html`${text}`;

/** Shows hidden and bidirectional characters as labels. */
export const revealed: Shown = (text) =>
  html`${splitHidden(text).map((part) =>
    typeof part === "string"
      ? part
      : html`<span class="hidden-char" title="${part.name}">${part.code}</span>`,
  )}`;

/** The readable view of a package. */
export function packageView(study: StudyPackage, shown: Shown): Html {
  const section = (heading: string, text: string) =>
    text === "" ? null : html`<h2>${heading}</h2><div class="text" dir="auto">${shown(text)}</div>`;
  return html`${section("Question", study.question)}${section("Hypothesis", study.hypothesis)}
${section("Method", study.method)}${section("Finding", study.finding)}${section("Limitations", study.limitations)}
${
  study.omissions.length === 0
    ? null
    : html`<h2>Left out</h2><ul>${study.omissions.map((text) => html`<li dir="auto">${shown(text)}</li>`)}</ul>`
}
<h2>Entries</h2>${entryTree(study.entries, shown)}`;
}

const deepest = 6;

function entryTree(entries: Entry[], shown: Shown): Html {
  const children = new Map<string, Entry[]>();
  for (const entry of entries) {
    const parent = entry.parent?.toLowerCase() ?? "";
    children.set(parent, [...(children.get(parent) ?? []), entry]);
  }
  const level = (parent: string, depth: number): Html | null => {
    const below = children.get(parent);
    if (below === undefined) return null;
    const kind = depth === 0 ? "tree" : depth > deepest ? "tree-deep" : "tree-level";
    return html`<ul class="${kind}">${below.map(
      (entry) => html`<li>${entryView(entry, shown)}${level(entry.id.toLowerCase(), depth + 1)}</li>`,
    )}</ul>`;
  };
  return level("", 0) as Html;
}

function entryView(entry: Entry, shown: Shown): Html {
  const part = (heading: string, text: string | undefined, open = false) =>
    text === undefined || text === ""
      ? null
      : html`<details${open ? html` open` : null}><summary>${heading}</summary><div class="text" dir="auto">${shown(text)}</div></details>`;
  const { settings } = entry;
  return html`<article class="entry" id="entry-${entry.id}"><h3 dir="auto"><span class="badge ${entry.kind}">${entry.kind}</span>
${entry.title === "" ? "Untitled" : shown(entry.title)}</h3>
<ul class="meta">${entry.model === undefined ? null : html`<li>model ${shown(entry.model)}</li>`}${
    settings === undefined
      ? null
      : html`<li>temperature ${settings.temperature}</li><li>seed ${settings.seed}</li><li>at most ${settings.maxTokens} tokens</li><li>thinking ${settings.thinking}</li>`
  }${entry.finishReason == null ? null : html`<li>finished: ${shown(entry.finishReason)}</li>`}</ul>
${part("System prompt", entry.system)}${
  entry.context === undefined || entry.context.length === 0
    ? null
    : html`<details><summary>Context (${entry.context.length})</summary>${entry.context.map(
        ({ role, content }) =>
          html`<p class="hint">${role}</p><div class="text" dir="auto">${shown(content)}</div>`,
      )}</details>`
}${part("Prompt", entry.prompt, true)}${part("Thinking", entry.thinking)}${part("Answer", entry.answer, true)}${part("Note", entry.note, true)}</article>`;
}
