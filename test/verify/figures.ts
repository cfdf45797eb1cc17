import type { Figure } from "./numerics/check.js";

export function holds({ value, bound, atLeast = false }: Figure): boolean {
  return atLeast ? value >= bound : value <= bound;
}

/** One line: the measured value, and its bound. */
export function printFigure(figure: Figure): void {
  const { what, value, bound, atLeast = false } = figure;
  const measured = Number.isFinite(value) ? Number(value.toPrecision(3)) : value;
  const relation = atLeast ? ">=" : "<=";
  console.log(
    `  ${holds(figure) ? "ok    " : "MISSED"} ${what.padEnd(66)} ${measured} (${relation} ${bound})`,
  );
}
