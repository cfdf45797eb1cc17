import type { ProbeResult } from "../../contracts/index.js";
import {
  bestLayer,
  calibration,
  classCounts,
  heldOut,
  mostWrong,
  ofRows,
  roc,
} from "../../findings/probe.js";
import { probeFinding } from "../../findings/probe-finding.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { wrap } from "../../terminal/fit.js";
import { beside, finding, heading } from "../../terminal/page.js";
import { bold, dim, inScale, probabilityScale } from "../../terminal/paint.js";
import { type Axis, layerLines, plot, type Series } from "../../terminal/plot.js";
import { type Entry, table } from "../../terminal/table.js";
import { layersText, type Picture } from "../picture.js";

type Report = ProbeResult["reports"][number];

const unit: Axis = { low: 0, high: 1, ticks: [0, 0.5, 1].map((value) => [value, String(value)] as const) };
const worstShown = 3;
const cellsShown = 8;

/** A probe job: ROC, calibration and scores on held-out examples, then every layer with its controls. */
export function probePicture(result: Pick<ProbeResult, "reports" | "grid">, canvas: Canvas): string[] {
  const reports = [...result.reports].sort((a, b) => a.layer - b.layer);
  const { best, tie } = bestLayer(reports);
  const chosen =
    reports.length > 1 ? `layer ${best.layer}, with the highest AUROC${tie}` : `layer ${best.layer}`;
  return [
    heading("Held out", `${best.test_size} examples not used in training`, "", canvas),
    "",
    ...beside(
      [(half) => rocPlot(reports, half), (half) => calibrated(best, half)],
      { least: 34, gap: 4 },
      canvas,
    ),
    "",
    ...finding(probeFinding(reports), canvas),
    "",
    heading("Scores", `by class, ${chosen}`, "", canvas),
    ...histogram(best, canvas),
    "",
    heading("Layers", "compared with the majority class and shuffled labels", "", canvas),
    ...explanation(best, canvas),
    ...layerTable(reports, best, canvas),
    ...rowTable(reports, best, canvas),
    ...gridTable(result.grid, canvas),
    ...worst(best, canvas),
  ];
}

/** The same values per activation, if every token's activation was used. */
function rowTable(reports: readonly Report[], best: Report, canvas: Canvas): string[] {
  const rows = ofRows(reports);
  const chosen = rows.find(({ layer }) => layer === best.layer);
  if (chosen === undefined) return [];
  const shared = best.by_row?.shared_rows ?? 0;
  const words =
    "The values above are per text, by the mean score of its activations. Here, intervals resample whole texts, " +
    "and labels were shuffled between texts." +
    (shared === 0
      ? ""
      : ` ${shared} of these activations also occur in a training text with the same beginning.`);
  return [
    "",
    heading("Activations", "individually, each labelled like its text", "", canvas),
    ...wrap(words, canvas.width).map((line) => dim(line, canvas.colors)),
    ...layerTable(rows, chosen, canvas),
  ];
}

/** The cells of the grid with the largest AUROC. */
function gridTable(cells: ProbeResult["grid"], canvas: Canvas): string[] {
  if (cells === undefined) return [];
  const shown = cells.toSorted((a, b) => b.auc - a.auc).slice(0, cellsShown);
  const columns = ["layer", "point", "token", "C", "accuracy", "AUROC", "95 %"].map((title) => ({
    title,
    ...(title !== "point" && { align: "right" as const }),
  }));
  return [
    "",
    heading(
      "Grid",
      `${shown.length} of ${cells.length} probes, selected on the held-out examples`,
      "",
      canvas,
    ),
    ...table(
      columns,
      shown.map((cell) => [
        ...[String(cell.layer), cell.point, String(cell.position), String(cell.c)],
        ...[cell.accuracy.toFixed(3), cell.auc.toFixed(3), span(cell.auc_interval)],
      ]),
      canvas,
    ),
  ];
}

function rocPlot(reports: readonly Report[], canvas: Canvas): string[] {
  const series = layerLines(
    reports.map((report) => ({
      layer: report.layer,
      points: roc(heldOut(report)).map(
        ({ falsePositiveRate, truePositiveRate }) => [falsePositiveRate, truePositiveRate] as const,
      ),
    })),
  );
  const title = reports.length === 1 ? `ROC, AUROC ${(reports[0] as Report).auc.toFixed(3)}` : "ROC by layer";
  return unitSquare(title, series, "true vs. false positive rate; dotted: chance", canvas);
}

function calibrated(report: Report, canvas: Canvas): string[] {
  const points = calibration(heldOut(report)).map(
    ({ meanScore, positiveShare }) => [meanScore, positiveShare] as const,
  );
  const title = `Calibration, layer ${report.layer}, Brier ${report.brier.toFixed(3)}`;
  const series = [{ points, marker: "●", place: 0.65 }];
  return unitSquare(title, series, "share of label 1 vs. score; dotted: perfect", canvas);
}

/** A plot from 0 to 1 on both axes with its diagonal and a caption. */
function unitSquare(title: string, series: Series[], axes: string, canvas: Canvas): string[] {
  return [
    ...plot({ title, series, x: unit, y: unit, rows: 12, guides: { diagonal: true } }, canvas),
    ...wrap(axes, canvas.width).map((line) => dim(line, canvas.colors)),
  ];
}

const heights = " ▁▂▃▄▅▆▇█";

/** Score histograms of both classes, one above the other on the same scale. */
function histogram(report: Report, canvas: Canvas): string[] {
  const bins = Math.min(50, Math.max(10, canvas.width - 20));
  const { zeros, ones } = classCounts(heldOut(report), bins);
  const counts = [zeros, ones];
  const most = Math.max(1, ...counts.flat());
  const rows = counts.map((bin, label) => {
    const line = bin.map((count) => heights[Math.ceil((count / most) * 8)]).join("");
    return `${dim(`label ${label} │`, canvas.colors)}${inScale(line, label === 0 ? 0.45 : 0.85, probabilityScale, canvas.colors)}${dim("│", canvas.colors)}`;
  });
  return [...rows, dim(`score    0${" ".repeat(bins - 2)}1`, canvas.colors)];
}

/** Explains the table's intervals. */
function explanation({ shuffled_labels: shuffled }: Report, canvas: Canvas): string[] {
  if (shuffled === undefined) return [];
  const words =
    `95 %: bootstrap intervals over the held-out examples. shuffled: mean accuracy and middle 95 % of ${shuffled.permutations} probes ` +
    "trained on permuted labels. p: the share of them with an AUROC at least as high.";
  return wrap(words, canvas.width).map((line) => dim(line, canvas.colors));
}

function span(interval: { low: number; high: number } | undefined): string {
  return interval === undefined ? "" : `${interval.low.toFixed(2)}–${interval.high.toFixed(2)}`;
}

function layerTable(reports: readonly Report[], best: Report, canvas: Canvas): string[] {
  const number = (title: string, entry: (report: Report) => Entry, dispensable?: number) => ({
    column: { title, align: "right" as const, ...(dispensable === undefined ? {} : { dispensable }) },
    entry,
  });
  const strong = (text: string) => bold(text, canvas.colors);
  const painted = ({ accuracy }: Report): Entry => [
    accuracy.toFixed(3),
    (text) => inScale(text, 0.3 + 0.7 * accuracy, probabilityScale, canvas.colors),
  ];
  const shown = [
    number("layer", (report) => (report === best ? [String(report.layer), strong] : String(report.layer))),
    number("accuracy", painted),
    number("95 %", ({ accuracy_interval }) => span(accuracy_interval), 1),
    number("majority", ({ majority_accuracy }) => majority_accuracy.toFixed(3)),
    number("shuffled", ({ shuffled_labels, shuffled_label_accuracy }) =>
      (shuffled_labels?.accuracy.mean ?? shuffled_label_accuracy).toFixed(3),
    ),
    number("95 %", ({ shuffled_labels }) => span(shuffled_labels?.accuracy), 2),
    number("AUROC", ({ auc }) => auc.toFixed(3)),
    number("95 %", ({ auc_interval }) => span(auc_interval), 3),
    number("p", ({ shuffled_labels }) => shuffled_labels?.p_auc.toFixed(3) ?? "", 3),
    number("Brier", ({ brier }) => brier.toFixed(3), 4),
    number("train/test", ({ train_size, test_size }) => `${train_size}/${test_size}`, 5),
    {
      column: { title: "fit", dispensable: 6 },
      entry: ({ converged, iterations }: Report) =>
        converged ? `${iterations} steps` : `not converged in ${iterations} steps`,
    },
    // Jobs of earlier versions have no intervals.
  ].filter(({ entry }) => reports.some((report) => entry(report) !== ""));
  return table(
    shown.map(({ column }) => column),
    reports.map((report) => shown.map(({ entry }) => entry(report))),
    canvas,
  );
}

function worst(report: Report, canvas: Canvas): string[] {
  const misses = mostWrong(heldOut(report)).filter(({ error }) => error > 0.5);
  const title = heading("Errors", `held-out examples misclassified at layer ${report.layer}`, "", canvas);
  if (misses.length === 0) return ["", title, "none"];
  const columns = [
    { title: "label" },
    { title: "score", align: "right" as const },
    { title: "text", least: 10 },
  ];
  const rows = misses
    .slice(0, worstShown)
    .map(({ label, score, text }) => [String(label), score.toFixed(3), oneLine(text)]);
  const rest = misses.length - worstShown;
  return [
    "",
    title,
    ...table(columns, rows, canvas),
    ...(rest > 0 ? [dim(`… and ${rest} more`, canvas.colors)] : []),
  ];
}

export default {
  asked: (config) => [["Probed", `${config.examples.length} examples, ${layersText(config)}`]],
  draw: probePicture,
} satisfies Picture<"probe">;
