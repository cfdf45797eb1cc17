import { figureOf } from "../findings/numbers.js";
import { type Outcome, rangeText } from "./outcome.js";
import { html } from "./sheet.js";

type Range = Pick<Outcome, "low" | "high" | "seen">;

const width = 320;
const [left, right] = [10, width - 10];

/**
 * The ends of a value's axis: 0 and 1 where everything is a share, -1 and 1 where everything may be a correlation or the
 * difference of shares, else some room around the range and the value.
 */
export function axisEnds({ low, high, seen }: Range): [number, number] {
  const numbers = [low, high, seen].filter((value) => value !== undefined);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  if (most <= 1 && least >= 0) return [0, 1];
  if (most <= 1 && least >= -1) return [-1, 1];
  const room = 0.25 * (most - least || Math.abs(most));
  return [least >= 0 ? Math.max(0, least - room) : least - room, most + room];
}

/** A value's axis with the expected range as a band and the measured value as a mark: a dot, or a diamond outside the range. */
export function rangeBar(outcome: Range & { held: boolean }) {
  const { low, high, seen, held } = outcome;
  const [from, to] = axisEnds(outcome);
  const x = (value: number) => left + ((value - from) / (to - from)) * (right - left);
  const [start, end] = [x(low ?? from), x(high ?? to)].map((place) => round(place)) as [number, number];
  const at = round(x(seen));
  const label = `expected ${rangeText(outcome)}, measured ${figureOf(seen)}, on an axis from ${figureOf(from)} to ${figureOf(to)}`;
  return html`<svg class="range" viewBox="0 0 ${width} 42" role="img" aria-label="${label}">
<path class="axis" d="M${left},15H${right}"/>
<rect class="band" x="${start}" y="8" width="${round(Math.max(2, end - start))}" height="14" rx="2"/>
${held ? html`<circle class="mark" cx="${at}" cy="15" r="6.5"/>` : html`<path class="mark" d="M${at},6l9,9l-9,9l-9,-9z"/>`}
<text class="end" x="${left}" y="38">${figureOf(from)}</text><text class="end" x="${right}" y="38" text-anchor="end">${figureOf(to)}</text>
</svg>`;
}

const round = (place: number) => Math.round(place * 10) / 10;
