import { percent } from "../../findings/numbers.js";
import type { Measured } from "../../findings/uncertainty.js";
import type { Measurement } from "./measurements.js";

/** A figure that several measurements of one form have in common. */
export interface Compared {
  /** At the head of a row. */
  name: string;
  /** Within a sentence. */
  what: string;
  /** One per measurement. */
  figures: Measured[];
  text(value: number): string;
  /** Between the largest and the smallest value, with its unit; null if they are equal. */
  difference: string | null;
  /** Two measurements whose intervals do not overlap, the lower one first; null if all overlap. */
  apart: [number, number] | null;
}

/** A number of nats, with three significant digits. */
export const nats = (value: number): string => String(Number(value.toPrecision(3)));

const points = (share: number): string => {
  const value = String(Number((100 * share).toPrecision(2)));
  return `${value} percentage point${value === "1" ? "" : "s"}`;
};

const inNats = { text: nats, unit: (value: number) => `${nats(value)} nats` };
const inPercent = { text: percent, unit: points };

/**
 * Compares measurements of one form, figure by figure.
 * @returns `left` explains in sentences which figures are not comparable
 */
export function compareMeasurements(all: readonly Measurement[]): { compared: Compared[]; left: string[] } {
  const compared = [
    compare(
      "KL",
      "KL",
      all.map(({ divergence }) => divergence),
      inNats,
    ),
    compare(
      "Same top token",
      "the share of same top tokens",
      all.map(({ agreement }) => agreement),
      inPercent,
    ),
  ];
  const left: string[] = [];
  const drifts = all.flatMap(({ drift }) => drift ?? []);
  if (isShared(drifts, all, ({ layer }) => layer)) {
    compared.push(compare(`Drift at layer ${drifts[0]?.layer}`, "drift", drifts, inPercent));
  } else if (drifts.length > 0) {
    left.push("Drift is not compared, because it was not measured at the same layer.");
  }
  const survivals = all.flatMap(({ survival }) => survival ?? []);
  if (isShared(survivals, all, ({ sha256, layer, least }) => [sha256, layer, least].join())) {
    compared.push(compare("Features surviving", "surviving features", survivals, inPercent));
  } else if (survivals.length > 0) {
    left.push(
      "Surviving features are not compared, because they were not measured with the same dictionary.",
    );
  }
  return { compared, left };
}

/** Whether every measurement has the figure, measured in the same way. */
function isShared<T>(found: readonly T[], all: readonly unknown[], way: (one: T) => unknown): boolean {
  return found.length === all.length && new Set(found.map(way)).size === 1;
}

function compare(
  name: string,
  what: string,
  figures: Measured[],
  { text, unit }: { text(value: number): string; unit(value: number): string },
): Compared {
  const values = figures.map(({ value }) => value);
  const difference = Math.max(...values) - Math.min(...values);
  // Intervals overlap pairwise exactly if the highest low end is not above the lowest high end.
  const highest = placeOf(figures, (one, best) => one.low > best.low);
  const lowest = placeOf(figures, (one, best) => one.high < best.high);
  const overlap = (figures[highest] as Measured).low <= (figures[lowest] as Measured).high;
  return {
    ...{ name, what, figures, text },
    difference: difference === 0 ? null : unit(difference),
    apart: overlap ? null : [lowest, highest],
  };
}

function placeOf(figures: readonly Measured[], isBetter: (one: Measured, best: Measured) => boolean): number {
  let place = 0;
  for (const [at, one] of figures.entries()) if (isBetter(one, figures[place] as Measured)) place = at;
  return place;
}
