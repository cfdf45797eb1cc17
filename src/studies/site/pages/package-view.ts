import type { Entry, StudyPackage } from "../../../contracts/studies/index.js";
import { type HiddenCharacter, splitHidden } from "../../text/hidden.js";
import { blocksOf } from "../../text/prose.js";
import { type Html, html } from "../html.js";

/** How research text is shown: as it is on a study's page, with hidden characters made visible in a review. */
export type Shown = (text: string) => Html;

export const plain: Shown = (text) => html`${text}`;

const labels = new WeakMap<HiddenCharacter, Html>();

/** Shows hidden and bidirectional characters as labels. */
export const revealed: Shown = (text) =>
  html`${splitHidden(text).map((part) => {
    if (typeof part === "string") return part;
    const label =
      labels.get(part) ?? html`<span class="hidden-char" title="${part.name}">${part.code}</span>`;
    labels.set(part, label);
    return label;
  })}`;

/** A text in its own direction, code in it set as code. */
export function prose(text: string, shown: Shown): Html {
  return html`${blocksOf(text).map(({ code, label, text: part }) =>
    code
      ? html`${label === "" ? null : html`<p class="hint code-label">${shown(label)}</p>`}<pre class="code" dir="ltr">${shown(part)}</pre>`
      : html`<div class="text" dir="auto">${shown(part)}</div>`,
  )}`;
}

/** The readable view of a package. */
export function packageView(study: StudyPackage, shown: Shown): Html {
  const section = (heading: string, text: string) =>
    text === "" ? null : html`<h2>${heading}</h2>${prose(text, shown)}`;
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
      : html`<details${open ? html` open` : null}><summary>${heading}</summary>${prose(text, shown)}</details>`;
  const { settings } = entry;
  return html`<article class="entry" id="entry-${entry.id}"><h3><span class="badge ${entry.kind}">${entry.kind}</span>
${entry.title === "" ? "Untitled" : html`<bdi>${shown(entry.title)}</bdi>`}</h3>
<ul class="meta">${entry.model === undefined ? null : html`<li>model ${shown(entry.model)}</li>`}${
    settings === undefined
      ? null
      : html`<li>temperature ${settings.temperature}</li><li>seed ${settings.seed}</li><li>at most ${settings.maxTokens} tokens</li><li>thinking ${settings.thinking}</li>`
  }${entry.finishReason == null ? null : html`<li>finished: ${shown(entry.finishReason)}</li>`}</ul>
${part("System prompt", entry.system)}${
  entry.context === undefined || entry.context.length === 0
    ? null
    : html`<details><summary>Context (${entry.context.length})</summary>${entry.context.map(
        ({ role, content }) => html`<p class="hint">${role}</p>${prose(content, shown)}`,
      )}</details>`
}${part("Prompt", entry.prompt, true)}${part("Thinking", entry.thinking)}${part("Answer", entry.answer, true)}${part("Note", entry.note, true)}</article>`;
}
