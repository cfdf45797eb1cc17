import { figureOf } from "../findings/numbers.js";
import { type Html, html } from "../report/index.js";
import { type Outcome, rangeText } from "./outcome.js";
import { rangeBar } from "./range-bar.js";

/** A value, its expected range and whether it is in it; further lines are in small print. */
export type Ranged = Pick<Outcome, "low" | "high" | "seen" | "held"> & {
  what: string;
  /** Said of the value, such as “measured”. */
  how: string;
  more: readonly string[];
  /** The two words for in and out of range. */
  words?: readonly [held: string, not: string];
};

/** A section with each value on a bar with its range; nothing without values. */
export function rangesSection(
  id: string,
  title: string,
  about: string | undefined,
  values: readonly Ranged[],
): Html | undefined {
  if (values.length === 0) return undefined;
  return html`<section class="card" aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${about !== undefined && html`<p class="soft">${about}</p>`}
<ul class="ranges">
${values.map(item)}</ul></section>`;
}

/** The page's first sentence. */
export function verdict(good: boolean, sentence: string): Html {
  return good ? html`<p class="verdict">${sentence}</p>` : html`<p class="verdict failed">${sentence}</p>`;
}

function item(value: Ranged): Html {
  const { what, how, seen, held, more, words: [good, bad] = ["in range", "out of range"] } = value;
  return html`<li${!held && html` class="failed"`}><div><p>${what}</p>
<p class="figure"><strong>${figureOf(seen)}</strong> ${how}, ${rangeText(value)} expected: ${held ? good : html`<strong>${bad}</strong>`}</p>
${more.map((line) => html`<p class="soft">${line}</p>`)}</div>
${rangeBar(value)}</li>
`;
}
