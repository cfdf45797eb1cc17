import { axesOf, type Row } from "../../findings/axes.js";
import type { Chart, Figure } from "../../findings/figure.js";
import type { Html } from "../markup.js";
import { cellText, differenceCell, differenceLegend } from "./grids.js";
import { axisWidth, layerAxis, layOut } from "./layers.js";
import { box, cutText, label, svg } from "./svg.js";

type Sites = Extract<Chart, { kind: "sites" }>;

const cellHeight = 26;
const sizes = { leastCell: 48, widestCell: 110 };

/** Differences around 0: layers over the tokens of two prompts; sites that cannot change anything are faint. */
export function drawSites(figure: Figure, chart: Sites, rows: readonly Row[], width: number): Html[] {
  const { columns, value, rows: named } = chart;
  const { layers, reach, digits, legend } = axesOf(chart, rows);
  const { pictures, cell } = layOut(columns.length, width, sizes);
  const height = layers.length * cellHeight;
  const cellsOf = (first: number, count: number) =>
    rows.flatMap((row) => {
      const column = Number(row.column) - first;
      if (column < 0 || column >= count) return [];
      const x = axisWidth + column * cell;
      const y = layers.indexOf(Number(row.layer)) * cellHeight;
      const { text, part, side } = differenceCell(row[value], { reach, digits });
      if (!row.inside) return [box(x + 0.5, y + 0.5, cell - 1, cellHeight - 1, "grid")];
      return [
        box(x + 0.5, y + 0.5, cell - 1, cellHeight - 1, `${side} a${part}`),
        ...cellText(text, x, y, cell, part, rows.length),
      ];
    });
  const drawn = pictures.map(({ first, count }) =>
    svg(
      axisWidth + 4 + cell * count,
      height + 42,
      pictures.length > 1 ? `${figure.title}: columns ${first} to ${first + count - 1}` : figure.title,
      [
        ...layerAxis(layers, cellHeight, named),
        ...cellsOf(first, count),
        ...columns.slice(first, first + count).flatMap(({ above, below }, at) => {
          const x = axisWidth + (at + 0.5) * cell;
          const under = { x, y: height + 34, anchor: "middle", kind: "soft" } as const;
          return [
            label(cutText(above, cell - 4), { x, y: height + 17, anchor: "middle" }),
            ...(below === "" ? [] : [label(cutText(below, cell - 4), under)]),
          ];
        }),
      ],
    ),
  );
  return [differenceLegend(chart.legend, legend, width), ...drawn];
}
