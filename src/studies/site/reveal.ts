import { type HiddenRun, splitHidden } from "../text/hidden.js";
import { type Html, html } from "./html.js";

/** Renders research text with hidden characters made visible. */
export type Shown = (text: string) => Html;

/** Labels per page; further hidden characters are shown as a placeholder. */
const mostMarks = 2000;
const placeholder = "\u25AF";

/** Renders texts of one page, with hidden and bidirectional characters as visible labels. */
export class Reveal {
  #left = mostMarks;
  #beyond = 0;

  readonly show: Shown = (text) => {
    const parts: (string | Html)[] = [];
    for (const part of splitHidden(text)) {
      if (typeof part === "string") parts.push(part);
      else if (this.#left > 0) {
        this.#left -= 1;
        parts.push(mark(part));
      } else {
        this.#beyond += 1;
        parts.push(placeholder);
      }
    }
    return html`${parts}`;
  };

  /** Notice to show after all texts are rendered; null if every character got a label. */
  notice(): Html | null {
    if (this.#beyond === 0) return null;
    return html`<p class="notice">This page has hidden characters in ${mostMarks + this.#beyond} places. The first
${mostMarks} are labeled; the rest are shown as ${placeholder}.</p>`;
  }
}

function mark({ code, name, count }: HiddenRun): Html {
  return html`<span class="hidden-char" title="${name}">${code}${count === 1 ? null : ` ×${count}`}</span>`;
}

/** Renders one short text. */
export function revealed(text: string): Html {
  return new Reveal().show(text);
}
