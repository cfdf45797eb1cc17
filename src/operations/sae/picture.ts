import type { SaeResult } from "../../contracts/index.js";
import { trainedWarnings } from "../../findings/features.js";
import { percentTo, shortNumber } from "../../findings/numbers.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { wrap } from "../../terminal/fit.js";
import { heading } from "../../terminal/page.js";
import { dim, inScale, probabilityScale } from "../../terminal/paint.js";
import { type Axis, layerLines, plot } from "../../terminal/plot.js";
import { table } from "../../terminal/table.js";
import { layersText, type Picture } from "../picture.js";

type Report = SaeResult["reports"][number];

/** Examples shown per feature. */
const examplesShown = 2;

/**
 * An SAE job: loss curves, reconstruction quality and dead features, and the most active features.
 * @param total number of features
 */
export function saePicture(
  result: Pick<SaeResult, "reports" | "target">,
  total: number,
  canvas: Canvas,
): string[] {
  const reports = [...result.reports].sort((a, b) => a.layer - b.layer);
  // All features of a single layer, or a few of each of several.
  const what =
    result.target === undefined ? "reconstruct activations" : `predict ${result.target} of activations`;
  const featuresShown = reports.length === 1 ? 16 : reports.length === 2 ? 8 : 4;
  return [
    heading("Training", "loss by step, logarithmic", "", canvas),
    ...losses(reports, canvas),
    "",
    heading("Held out", `how well the features ${what} not used in training`, "", canvas),
    ...summary(reports, total, canvas),
    ...reports.flatMap((report) => trainedWarnings(report).flatMap((line) => wrap(line, canvas.width))),
    ...reports.flatMap(({ layer, note }) =>
      note === undefined
        ? []
        : wrap(`Layer ${layer}: ${note}`, canvas.width).map((line) => dim(line, canvas.colors)),
    ),
    ...reports.flatMap((report) => ["", ...features(report, featuresShown, canvas)]),
  ];
}

function losses(reports: readonly Report[], canvas: Canvas): string[] {
  const logs = (report: Report) =>
    report.losses.map(({ step, loss }) => [step, Math.log10(Math.max(loss, 1e-12))] as const);
  const series = layerLines(reports.map((report) => ({ layer: report.layer, points: logs(report) })));
  const all = series.flatMap(({ points }) => points);
  const [low, high] = [Math.min(...all.map(([, y]) => y)), Math.max(...all.map(([, y]) => y))];
  const last = Math.max(...all.map(([x]) => x));
  const first = Math.min(...all.map(([x]) => x));
  const middle = (low + high) / 2;
  const y: Axis = {
    low,
    high,
    ticks: (high > low ? [low, middle, high] : [low]).map(
      (value) => [value, shortNumber(10 ** value)] as const,
    ),
  };
  const x: Axis = {
    low: first,
    high: last,
    ticks: [...new Set([first, Math.round((first + last) / 2), last])].map(
      (value) => [value, `step ${value}`] as const,
    ),
  };
  return plot({ series, x, y, rows: 8 }, { ...canvas, width: Math.min(canvas.width, 100) });
}

function summary(reports: readonly Report[], total: number, canvas: Canvas): string[] {
  const right = { align: "right" as const };
  const columns = [
    { title: "layer", ...right },
    { title: "explained", ...right },
    { title: "MSE", ...right },
    { title: "train MSE", ...right, dispensable: 2 },
    { title: "active", ...right },
    { title: "dead", ...right },
    { title: "alive", dispensable: 1 },
  ];
  const rows = reports.map((report) => {
    return [
      String(report.layer),
      report.explained_variance === null ? "–" : percentTo(report.explained_variance, 1),
      shortNumber(report.held_out_mse),
      shortNumber(report.train_mse),
      report.mean_active.toFixed(1),
      `${report.dead_features} of ${total}`,
      [
        aliveBar(report.dead_fraction),
        (text: string) => inScale(text, 0.65, probabilityScale, canvas.colors),
      ] as const,
    ];
  });
  return table(columns, rows, canvas);
}

/** The share of features that are alive. */
function aliveBar(deadFraction: number): string {
  const room = 24;
  const alive = Math.round((1 - deadFraction) * room);
  return "█".repeat(alive) + "·".repeat(room - alive);
}

function features(report: Report, count: number, canvas: Canvas): string[] {
  const columns = [
    { title: "feature", align: "right" as const },
    { title: "fires", align: "right" as const },
    { title: "mean", align: "right" as const, dispensable: 2 },
    { title: "value", align: "right" as const, dispensable: 1 },
    { title: "strongest on", least: 12 },
  ];
  const rows = report.features.slice(0, count).flatMap(({ feature, mean, frequency, examples }) => {
    const shown = examples.slice(0, examplesShown);
    const strongest = examples[0]?.activation ?? 0;
    return (shown.length === 0 ? [undefined] : shown).map((example, index) => [
      index === 0 ? String(feature) : "",
      index === 0 ? percentTo(frequency, 0) : "",
      index === 0 ? shortNumber(mean) : "",
      example === undefined
        ? ""
        : ([
            shortNumber(example.activation),
            (text: string) =>
              inScale(
                text,
                0.4 + 0.6 * (strongest > 0 ? example.activation / strongest : 0),
                probabilityScale,
                canvas.colors,
              ),
          ] as const),
      example === undefined
        ? (["no held-out example", (text: string) => dim(text, canvas.colors)] as const)
        : oneLine(example.text),
    ]);
  });
  return [
    heading(
      `Layer ${report.layer}`,
      `the ${Math.min(count, report.features.length)} most active features on held-out examples`,
      "",
      canvas,
    ),
    ...table(columns, rows, canvas),
  ];
}

export default {
  asked(config) {
    const what = config.from === undefined ? `${config.examples?.length} examples` : oneLine(config.from);
    return [
      ["Trained", `${config.features} features on ${what}, ${config.steps} steps, ${layersText(config)}`],
    ];
  },
  draw: (result, canvas, { features }) => saePicture(result, features, canvas),
} satisfies Picture<"sae">;
