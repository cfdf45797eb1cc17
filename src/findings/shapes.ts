/**
 * The shape of a series over layers (or strengths): what a headline may say of it. The index of the largest value means
 * nothing on a plateau, where the next run would name another one; these detectors name the whole span instead.
 * All take values in the order of their axis and return indices into it.
 */

/** Neighbouring points, both ends included. */
export interface Span {
  from: number;
  to: number;
}

/** Values within this share of the range below the largest are as good as the largest. */
export const alike = 0.1;

export type Shape =
  /** No value exceeds what the control reaches. */
  | { kind: "none" }
  /** All values are alike. */
  | { kind: "flat" }
  /** Small before `at`, large from there to the end. */
  | { kind: "onset"; at: number }
  /** Large from the beginning to `at`, small after it. */
  | { kind: "until"; at: number }
  /** Large in the middle alone; one point or several that are alike. */
  | ({ kind: "peak" | "plateau" } & Span)
  /** Large in several separate spans. */
  | { kind: "several"; spans: Span[] };

/**
 * Names the shape of effects that are at least zero: recoveries, or sizes of changes.
 * @param floor the largest value that counts as no effect, such as the largest that a random control reaches
 */
export function shapeOf(values: readonly number[], floor = 0): Shape {
  const most = Math.max(...values);
  if (values.length === 0 || most <= floor) return { kind: "none" };
  if (most - Math.min(...values) <= alike * most) return { kind: "flat" };
  const spans = spansAbove(values, Math.max(most / 2, floor));
  const [span] = spans;
  if (span === undefined || spans.length > 1) return { kind: "several", spans };
  if (span.to === values.length - 1) return { kind: "onset", at: span.from };
  if (span.from === 0) return { kind: "until", at: span.to };
  const top = bestSpan(values);
  return { kind: top.from === top.to ? "peak" : "plateau", ...top };
}

/** The points above a level, as spans of neighbours. */
export function spansAbove(values: readonly number[], level: number): Span[] {
  const spans: Span[] = [];
  values.forEach((value, index) => {
    if (value <= level) return;
    const last = spans.at(-1);
    if (last !== undefined && last.to === index - 1) last.to = index;
    else spans.push({ from: index, to: index });
  });
  return spans;
}

/** The span around the largest value whose points are as good as it: a maximum to name where it is one point only. */
export function bestSpan(values: readonly number[], tolerance = alike): Span {
  const most = Math.max(...values);
  const least = most - tolerance * (most - Math.min(...values));
  const at = values.indexOf(most);
  let [from, to] = [at, at];
  while (from > 0 && (values[from - 1] as number) >= least) from -= 1;
  while (to < values.length - 1 && (values[to + 1] as number) >= least) to += 1;
  return { from, to };
}

/** A stretch of the axis on which one of several series leads; without a series where none reaches the level. */
export interface Lead extends Span {
  series?: number;
}

/**
 * Which of several series leads where: a hand-over is two stretches, one after the other. A series keeps its lead while it is
 * as good as the largest, so that near-ties do not change the lead.
 * @param level the smallest value that leads
 */
export function leads(series: readonly (readonly number[])[], level = 0.5): Lead[] {
  const found: Lead[] = [];
  for (let at = 0; at < (series[0]?.length ?? 0); at++) {
    const here = series.map((values) => values[at] as number);
    const most = Math.max(...here);
    const last = found.at(-1);
    const held = last?.series !== undefined && (here[last.series] as number) >= (1 - alike) * most;
    const leader = most < level ? undefined : held ? last.series : here.indexOf(most);
    if (last !== undefined && last.series === leader) last.to = at;
    else found.push({ from: at, to: at, ...(leader !== undefined && { series: leader }) });
  }
  return found;
}

/**
 * The smallest dose from which the effect stays large: at least half of the largest effect of the series, at this dose
 * and at every larger one.
 * @param effects in the order of growing doses
 * @returns undefined where no effect exceeds `floor`, or where the largest dose has lost it again
 */
export function threshold(effects: readonly number[], floor = 0): number | undefined {
  const half = Math.max(...effects) / 2;
  const below = effects.findLastIndex((effect) => effect < half || effect <= floor);
  return below === effects.length - 1 ? undefined : below + 1;
}
