import type { Row } from "./figures.js";

/** Where a suite reports its progress, so that a run that is stopped early still shows the figures measured so far. */
export interface Report {
  /** Names the next measurement on stderr, with the time since the start. */
  stage(what: string): void;
  /** A figure, as soon as it is known. */
  rows(...rows: Row[]): Row[];
}

/** Prints to the terminal. `shown` holds the rows that were printed already. */
export function terminalReport(): Report & { shown: ReadonlySet<Row> } {
  const started = performance.now();
  const shown = new Set<Row>();
  return {
    shown,
    stage(what) {
      const seconds = Math.round((performance.now() - started) / 1000);
      process.stderr.write(`[${seconds} s] ${what}\n`);
    },
    rows(...rows) {
      for (const each of rows) {
        shown.add(each);
        console.log(lineOf(each, nameWidth));
      }
      return rows;
    },
  };
}

/** Wide enough for most names; a longer one moves its own figures only. */
const nameWidth = 100;

/** A row as a line: name, median, range, goal. */
export function lineOf({ name, value, spread, unit, goal, ok }: Row, width: number): string {
  const figure = `${short(value)} ${unit}`.padStart(18);
  const range = `${short(spread[0])} to ${short(spread[1])}`.padStart(20);
  const verdict = goal === undefined ? "" : `${goal} ${ok ? "met" : "MISSED"}`;
  return `${name.padEnd(width)} ${figure} ${range}  ${verdict}`.trimEnd();
}

function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(4);
}
