import { type HiddenRun, splitHidden } from "../text/hidden.js";
import { type Html, html } from "./html.js";

/** How research text is shown: with hidden characters made visible. */
export type Shown = (text: string) => Html;

/** Marks of one page; what hides beyond them is shown as a plain character. */
const mostMarks = 2000;
const placeholder = "\u25AF";

/** Shows research text and names on one page: hidden and bidirectional characters become visible marks. */
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

  /** What to say of the page once all of it was shown. */
  notice(): Html | null {
    if (this.#beyond === 0) return null;
    return html`<p class="notice">This page holds ${mostMarks + this.#beyond} places with hidden characters. The first
${mostMarks} are labelled; the others are shown as ${placeholder}.</p>`;
  }
}

function mark({ code, name, count }: HiddenRun): Html {
  return html`<span class="hidden-char" title="${name}">${code}${count === 1 ? null : ` ×${count}`}</span>`;
}

/** One short text by itself. */
export function revealed(text: string): Html {
  return new Reveal().show(text);
}
