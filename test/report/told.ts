/** A report's findings as text: every sentence, table and row of figures, for a person to read. */
import type { Figure } from "../../src/findings/figure.js";
import type { Findings, Passage } from "../../src/report/parts.js";

/** A cell with at most six digits, so that rounding does not show. */
function cell(value: string | number | null): string {
  if (typeof value === "number") return String(Number(value.toPrecision(6)));
  return value === null ? "null" : value.replaceAll("\n", " ⏎ ");
}

function toldFigure({ id, title, description, chart, columns, rows, details, notes, table }: Figure): string {
  return [
    `== ${id}: ${title}`,
    description,
    JSON.stringify(chart),
    `-- ${columns.map(({ name, label }) => `${name} (${label})`).join(" | ")}`,
    ...rows.map((row) => row.map(cell).join(" | ")),
    "-- details",
    ...details.map(cell),
    `-- ${table.head.join(" | ")}`,
    ...table.rows.map((row) => row.join(" | ")),
    ...(notes ?? []).map((note) => `* ${note}`),
  ].join("\n");
}

function toldPassage({ id, title, description, body }: Passage): string {
  return [`== ${id}: ${title}`, description, body.markup].join("\n");
}

export function told({ summary, cautions, parts }: Findings): string {
  return [
    ...summary,
    ...cautions.map((caution) => `! ${caution}`),
    ...parts.map((part) => ("chart" in part ? toldFigure(part) : toldPassage(part))),
  ].join("\n");
}
