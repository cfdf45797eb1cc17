import type { Figure } from "./numerics/check.js";

export function holds({ value, bound, atLeast = false }: Figure): boolean {
  return atLeast ? value >= bound : value <= bound;
}

/** One line: what was measured, and what it has to keep to. */
export function printFigure(figure: Figure): void {
  const { what, value, bound, atLeast = false } = figure;
  const measured = Number.isFinite(value) ? Number(value.toPrecision(3)) : value;
  const relation = atLeast ? ">=" : "<=";
  console.log(
    `  ${holds(figure) ? "ok    " : "MISSED"} ${what.padEnd(66)} ${measured} (${relation} ${bound})`,
  );
}
