import type { Cell, Figure } from "../../findings/figure.js";

/** A figure's row by the names of its columns. */
export type Row = Readonly<Record<string, Cell>>;

export function rowsOf({ columns, rows }: Figure): Row[] {
  return rows.map((cells) =>
    Object.fromEntries(columns.map(({ name }, index) => [name, cells[index] ?? null])),
  );
}
