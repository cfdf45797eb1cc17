import type { PatchGrowth } from "../../contracts/index.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf } from "../../findings/figure.js";
import { percent } from "../../findings/numbers.js";
import { visible } from "../../text/visible.js";

/**
 * The map of a running sweep as far as it is computed, on its final scale, so that cells keep their color. With several
 * pairs, the map of the one being patched; with several points, the last point's.
 */
export function growingPatchMap(growth: PatchGrowth): Figure {
  const { layers, points, positions, clean, corrupted, recovery, pair, pairs } = growth;
  const point = points.at(-1) as string;
  const cells = layers.flatMap((layer, row) =>
    positions.map((position, column) => ({
      ...{ layer, position, column },
      value: recovery[(row * points.length + points.length - 1) * positions.length + column] ?? null,
    })),
  );
  const here = (column: number) => [clean[column] as string, corrupted[column] as string].map(visible);
  const words = (value: number | null) =>
    value === null ? "not computed yet" : `recovery ${percent(value)}`;
  const computed = cells.filter(({ value }) => value !== null).length;
  return {
    id: "patch-map",
    title: `Recovery by layer and token${point === "block_out" ? "" : `, ${point}`}, so far`,
    description:
      `${computed} of ${cells.length} sites${pairs > 1 ? ` of pair ${pair + 1} of ${pairs}` : ""}. How far a single patched activation ` +
      "moves the logit difference, from the unpatched run (0) to the run that the activation comes from (1). Dashed cells " +
      "are not computed yet.",
    chart: {
      kind: "sites",
      columns: positions.map((_, column) => {
        const [above = "", below = ""] = here(column);
        return { above, below: above === below ? "" : below };
      }),
      value: "recovery",
      legend: "recovery",
      least: 1,
    },
    ...dataOf(cells, {
      layer: ["layer", (one) => one.layer],
      position: ["position", (one) => one.position],
      column: ["column", (one) => one.column],
      recovery: ["recovery", ({ value }) => value],
      inside: ["has an effect", ({ value }) => (value === 0 ? 0 : 1)],
    }),
    details: cells.map(({ layer, position, column, value }) => {
      const [above, below] = here(column);
      return [
        `layer ${layer}, token ${position}`,
        above === below ? `both prompts: ${above}` : `clean ${above}, corrupted ${below}`,
        words(value),
      ].join("\n");
    }),
    table: {
      head: ["token", "clean", "corrupted", ...layers.map((layer) => `layer ${layer}`)],
      rows: positions.map((position, column) => [
        ...[String(position), ...here(column)],
        ...layers.map((_, row) => {
          const { value } = cells[row * positions.length + column] as (typeof cells)[number];
          return value === null ? "" : percent(value);
        }),
      ]),
    },
  };
}
