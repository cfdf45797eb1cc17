import type { ProbeResult } from "../../contracts/index.js";
import { dataOf, type Figure } from "../../findings/figure.js";

type Cell = NonNullable<ProbeResult["grid"]>[number];

const between = ({ low, high }: { low: number; high: number }) => `${low.toFixed(3)} to ${high.toFixed(3)}`;

/** AUROC of all cells by layer, with a line for each position and C and a panel for each point; all figures in the table. */
export function gridByLayer(cells: readonly Cell[] | undefined): Figure[] {
  if (cells === undefined || cells.length === 0) return [];
  const best = cells.reduce((one, other) => (other.auc > one.auc ? other : one));
  const name = ({ position, c }: Cell) => `token ${position}, C ${c}`;
  return [
    {
      id: "grid",
      title: "Grid",
      description:
        "Held-out AUROC of a probe for each layer, point, token (counted from the text's end) and C, the inverse strength of " +
        "the L2 penalty.",
      chart: {
        kind: "lines",
        x: "layer",
        y: "auroc",
        series: "probe",
        xAxis: "layer",
        yAxis: "AUROC",
        yDomain: [0, 1],
        steps: true,
        dots: true,
        panel: { column: "point", label: "" },
        interval: { low: "low", high: "high" },
      },
      ...dataOf([...cells], {
        layer: ["layer", ({ layer }) => layer],
        point: ["point", ({ point }) => point],
        probe: ["token and C", name],
        auroc: ["AUROC", ({ auc }) => auc],
        low: ["95 % from", ({ auc_interval }) => auc_interval.low],
        high: ["95 % to", ({ auc_interval }) => auc_interval.high],
      }),
      details: cells.map(
        (cell) =>
          `layer ${cell.layer}, ${cell.point}\n${name(cell)}\nAUROC ${cell.auc.toFixed(3)}\n95 %: ${between(cell.auc_interval)}`,
      ),
      notes: [
        `The largest of ${cells.length} AUROCs is ${best.auc.toFixed(3)} (layer ${best.layer}, ${best.point}, ${name(best)}). It was ` +
          "selected on the same held-out examples, so it is optimistic, the more so the more probes there are.",
      ],
      table: {
        head: [
          ...["layer", "point", "token", "C", "held-out accuracy", "95 %", "AUROC", "95 %"],
          ...["majority class", "shuffled labels", "Brier", "converged"],
        ],
        rows: cells.map((cell) => [
          ...[String(cell.layer), cell.point, String(cell.position), String(cell.c)],
          ...[cell.accuracy.toFixed(3), between(cell.accuracy_interval)],
          ...[cell.auc.toFixed(3), between(cell.auc_interval)],
          ...[cell.majority_accuracy, cell.shuffled_label_accuracy, cell.brier].map((value) =>
            value.toFixed(3),
          ),
          cell.converged ? "yes" : "no",
        ]),
      },
    },
  ];
}
