import type { ProbeResult } from "../../contracts/index.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf, tabled } from "../../findings/figure.js";
import { count, figureOf, percent } from "../../findings/numbers.js";
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
import { glimpse, type Html, html } from "../../report/markup.js";
import type { Findings, Passage } from "../../report/parts.js";
import { gridByLayer } from "./figures-grid.js";

type Report = ProbeResult["reports"][number];

const threeDigits = (value: number) => value.toFixed(3);
const histogramBins = 20;
const calibrationBins = 10;
const worstShown = 10;

/** Accuracy by layer with controls, ROC, calibration, scores, and the examples with the largest errors. */
export function probeFindings({ reports, grid }: ProbeResult): Findings {
  const sorted = reports.toSorted((a, b) => a.layer - b.layer);
  return {
    summary: summary(sorted),
    cautions: [
      "A readout is not causal evidence. A probe that can read a property from a block's output does not show that the model uses it; to test that, change the block and compare the answers (compare).",
      "Read accuracy together with its controls: an accuracy near the majority class's or near that with shuffled labels says nothing about the block. A probe can also pick up on anything that correlates with the label in these texts, such as length or a single word.",
    ],
    parts: [
      byLayer(sorted),
      ...rowsByLayer(sorted),
      ...gridByLayer(grid),
      rocCurves(sorted),
      reliability(sorted),
      histogram(sorted),
      worst(sorted),
    ],
  };
}

/** An interval in words: in percent, or with a number of decimals. */
function range(interval: { low: number; high: number } | undefined, decimals?: number): string {
  if (interval === undefined) return "";
  const words = (value: number) => (decimals === undefined ? percent(value) : value.toFixed(decimals));
  return `, 95 % interval ${words(interval.low)} to ${words(interval.high)}`;
}

function summary(reports: Report[]): string[] {
  const { says, controls } = probeFinding(reports);
  if (reports.length === 0) return [says];
  const { best, tie } = bestLayer(reports);
  const shuffled = best.shuffled_labels;
  const name =
    reports.length > 1 ? `Layer ${best.layer}, with the highest AUROC${tie},` : `Layer ${best.layer}`;
  const sentences = [
    says,
    controls,
    `${name} classifies ${percent(best.accuracy)} of ${count(best.test_size, "held-out example")} correctly` +
      `${range(best.accuracy_interval)} (AUROC ${best.auc.toFixed(3)}${range(best.auc_interval, 3)}${shuffled === undefined ? "" : `, p = ${shuffled.p_auc.toFixed(3)}`}, Brier ${best.brier.toFixed(3)}); ` +
      `always choosing the majority class gives ${percent(best.majority_accuracy)}, ` +
      (shuffled === undefined
        ? `a probe trained on shuffled labels ${percent(best.shuffled_label_accuracy)}.`
        : `${shuffled.permutations} probes trained on shuffled labels ${percent(shuffled.accuracy.mean)} on average (middle ` +
          `95 %: ${percent(shuffled.accuracy.low)} to ${percent(shuffled.accuracy.high)}).`),
  ];
  if (best.by_row !== undefined) sentences.push(ofSingleRows(best.by_row));
  if (reports.length > 1) {
    sentences.push(
      "This layer was selected on the same held-out examples, so its values are slightly optimistic.",
    );
  }
  const unfinished = reports.filter(({ converged }) => !converged).map(({ layer }) => layer);
  if (unfinished.length > 0)
    sentences.push(`The fit did not converge at layer ${unfinished.join(", ")}; its values are not final.`);
  return sentences;
}

function ofSingleRows(rows: NonNullable<Report["by_row"]>): string {
  const shared =
    rows.shared_rows === 0
      ? ""
      : ` ${rows.shared_rows} of these activations also occur in a training text with the same beginning.`;
  return (
    "A text's score is the mean over its activations. Per activation, the probe classifies " +
    `${percent(rows.accuracy)} of ${count(rows.test_size, "held-out activation")} correctly${range(rows.accuracy_interval)} ` +
    `(AUROC ${rows.auc.toFixed(3)}${range(rows.auc_interval, 3)}); with labels shuffled between texts, ` +
    `${percent(rows.shuffled_labels.accuracy.mean)} on average.${shared}`
  );
}

interface Measure {
  name: string;
  value: (report: Report) => number;
  interval: (report: Report) => { low: number; high: number } | undefined;
}

const measures: Measure[] = [
  { name: "held-out accuracy", value: ({ accuracy }) => accuracy, interval: (one) => one.accuracy_interval },
  { name: "AUROC", value: ({ auc }) => auc, interval: (one) => one.auc_interval },
  { name: "majority class", value: (one) => one.majority_accuracy, interval: () => undefined },
  {
    name: "shuffled labels",
    value: (one) => one.shuffled_labels?.accuracy.mean ?? one.shuffled_label_accuracy,
    interval: (one) => one.shuffled_labels?.accuracy,
  },
];

/** The same values per activation, if every token's activation was used. */
function rowsByLayer(reports: Report[]): Figure[] {
  const rows = ofRows(reports);
  if (rows.length === 0) return [];
  const { description, ...figure } = byLayer(rows);
  return [
    {
      ...figure,
      id: "rows-by-layer",
      title: "Single activations by layer",
      description: `${description} This figure is per activation, each labelled like its text. Activations of one text resemble each other, so intervals resample whole texts, and labels were shuffled between texts.`,
    },
  ];
}

function byLayer(reports: Report[]): Figure {
  const points = measures.flatMap(({ name, value, interval }) =>
    reports.map((report) => ({ layer: report.layer, name, value: value(report), ...interval(report) })),
  );
  const between = ({ low, high }: { low?: number; high?: number }) =>
    low === undefined || high === undefined ? "" : `${low.toFixed(3)} to ${high.toFixed(3)}`;
  const permutations = reports[0]?.shuffled_labels?.permutations;
  return {
    id: "accuracy-by-layer",
    title: "Accuracy by layer",
    description:
      "Held-out accuracy and AUROC of the probe at each layer, compared with the majority class and " +
      (permutations === undefined
        ? "a probe trained on shuffled labels."
        : `the mean of ${permutations} probes trained on shuffled labels. Vertical bars are 95 % ` +
          "intervals over the held-out examples and, for shuffled labels, the middle 95 % of the probes."),
    chart: {
      kind: "lines",
      x: "layer",
      y: "value",
      series: "measure",
      xAxis: "layer",
      yAxis: "accuracy or AUROC",
      yDomain: [0, 1],
      steps: true,
      emphasis: "held-out accuracy",
      dots: true,
      interval: { low: "low", high: "high" },
    },
    ...dataOf(points, {
      layer: ["layer", (one) => one.layer],
      measure: ["measure", (one) => one.name],
      value: ["value", (one) => one.value],
      low: ["95 % from", (one) => one.low ?? null],
      high: ["95 % to", (one) => one.high ?? null],
    }),
    details: points.map((point) => {
      const interval = between(point);
      const line = `layer ${point.layer}\n${point.name}  ${point.value.toFixed(3)}`;
      return interval === "" ? line : `${line}\n95 %: ${interval}`;
    }),
    table: {
      head: [
        ...["layer", "held-out accuracy", "95 %", "AUROC", "95 %", "majority class"],
        ...["shuffled labels", "95 %", "p (AUROC)", "Brier", "train / test", "converged"],
      ],
      rows: reports.map((report) => [
        String(report.layer),
        ...measures.flatMap(({ name, value, interval }) => [
          value(report).toFixed(3),
          ...(name === "majority class" ? [] : [between(interval(report) ?? {})]),
        ]),
        report.shuffled_labels?.p_auc.toFixed(3) ?? "",
        report.brier.toFixed(3),
        `${report.train_size} / ${report.test_size}`,
        `${report.converged ? "yes" : "no"} (${count(report.iterations, "iteration")})`,
      ]),
    },
  };
}

function rocCurves(reports: Report[]): Figure {
  const points = reports.flatMap((report) =>
    roc(heldOut(report)).map((point) => ({
      ...point,
      layer: report.layer,
      name: `layer ${report.layer} (${report.auc.toFixed(3)})`,
    })),
  );
  return {
    id: "roc",
    title: "ROC",
    description:
      "True positive rate against false positive rate on held-out examples, for every threshold. " +
      "Number in parentheses: area under the curve (AUROC).",
    chart: {
      kind: "lines",
      x: "false_positive_rate",
      y: "true_positive_rate",
      series: "layer",
      xAxis: "false positive rate",
      yAxis: "true positive rate",
      xDomain: [0, 1],
      yDomain: [0, 1],
      diagonal: "chance",
      // Curves of good probes overlap.
      ...(reports.length > 3 ? { panel: { column: "layer", label: "" } } : {}),
    },
    ...tabled(points, {
      layer: ["layer (AUROC)", (one) => one.name, String],
      false_positive_rate: ["false positive rate", (one) => one.falsePositiveRate, threeDigits],
      true_positive_rate: ["true positive rate", (one) => one.truePositiveRate, threeDigits],
      threshold: [
        "threshold",
        ({ threshold }) => (Number.isFinite(threshold) ? threshold : null),
        (value: number | null) => (value === null ? "" : figureOf(value)),
      ],
    }),
    details: points.map(
      ({ name, falsePositiveRate, truePositiveRate, threshold }) =>
        `${name}\nscore ${Number.isFinite(threshold) ? `at least ${figureOf(threshold)}` : "above all"}\n` +
        `true positives ${percent(truePositiveRate)}, false positives ${percent(falsePositiveRate)}`,
    ),
  };
}

function reliability(reports: Report[]): Figure {
  const bins = reports.flatMap(({ layer, brier, ...rest }) =>
    calibration(heldOut(rest), calibrationBins).map((bin) => ({ ...bin, layer, brier })),
  );
  return {
    id: "calibration",
    title: "Calibration",
    description:
      "Held-out examples in ten bins by score: the share of class 1 in each bin against its mean score. " +
      "On the diagonal, scores can be read as probabilities. Larger dots contain more examples; bins with few examples " +
      "are mostly noise.",
    chart: {
      kind: "lines",
      x: "mean_score",
      y: "positive_share",
      series: "layer",
      xAxis: "mean score",
      yAxis: "share of class 1",
      xDomain: [0, 1],
      yDomain: [0, 1],
      diagonal: "perfect",
      size: "examples",
      panel: { column: "layer", label: "layer" },
      dots: true,
    },
    ...tabled(bins, {
      layer: ["layer", (one) => one.layer, String],
      from: ["bin from", (one) => one.from, (from: number) => from.toFixed(1)],
      to: ["bin to", (one) => one.to, (to: number) => to.toFixed(1)],
      examples: ["examples", (one) => one.size, String],
      mean_score: ["mean score", (one) => one.meanScore, threeDigits],
      positive_share: ["share of class 1", (one) => one.positiveShare, threeDigits],
    }),
    details: bins.map(
      ({ layer, from, to, size, meanScore, positiveShare }) =>
        `layer ${layer}, scores ${from.toFixed(1)} to ${to.toFixed(1)}\n` +
        `${count(size, "example")}, mean score ${meanScore.toFixed(3)}\nclass 1: ${percent(positiveShare)}`,
    ),
    notes: [
      `Brier score (mean squared error of the scores; 0 is perfect): ${reports
        .map(({ layer, brier }) => `layer ${layer} ${brier.toFixed(3)}`)
        .join(", ")}.`,
    ],
  };
}

function scoreBins(examples: Report["scores"]) {
  const { ones, zeros } = classCounts(examples, histogramBins);
  return ones.map((count, bin) => ({
    ...{ from: bin / histogramBins, to: (bin + 1) / histogramBins },
    ...{ ones: count, zeros: zeros[bin] as number },
  }));
}

function histogram(reports: Report[]): Figure {
  const bins = reports.flatMap(({ layer, scores }) =>
    (["train", "test"] as const).flatMap((split) =>
      scoreBins(scores.filter((one) => one.split === split)).map((bin) => ({ layer, split, ...bin })),
    ),
  );
  const filled = bins.filter(({ ones, zeros }) => ones + zeros > 0);
  return {
    id: "scores",
    title: "Scores",
    description:
      "Number of examples by score, for each split and layer: class 1 above the line, class 0 below. If the probe " +
      "separates the classes, class 1 is on the right and class 0 on the left.",
    chart: {
      kind: "mirror",
      from: "from",
      to: "to",
      up: "class_1",
      down: "class_0",
      axis: "score",
      panels: ["layer", "split"],
    },
    ...tabled(filled, {
      layer: ["layer", (one) => one.layer, String],
      split: ["split", (one) => one.split, String],
      from: ["score from", (one) => one.from, (from: number) => from.toFixed(2)],
      to: ["score to", (one) => one.to, (to: number) => to.toFixed(2)],
      class_1: ["examples of class 1", ({ ones }) => ones, String],
      class_0: ["examples of class 0", ({ zeros }) => zeros, String],
    }),
    details: filled.map(
      ({ layer, split, from, to, ones, zeros }) =>
        `layer ${layer}, ${split}\nscore ${from.toFixed(2)} to ${to.toFixed(2)}\nclass 1: ${ones}, class 0: ${zeros}`,
    ),
  };
}

function worst(reports: Report[]): Passage {
  return {
    id: "worst",
    title: "Hardest examples",
    description: "The held-out examples with the largest errors, at each layer.",
    get body() {
      return html`${reports.map((report, index) => worstAt(report, index === 0))}`;
    },
  };
}

function worstAt(report: Report, open: boolean): Html {
  const examples = mostWrong(heldOut(report));
  const wrong = examples.filter(({ error }) => error > 0.5).length;
  return html`<details${open && html` open`}><summary>Layer ${report.layer}: ${wrong} of ${examples.length} on the wrong side of 0.5</summary>
<div class="scroll" tabindex="0" role="region" aria-label="Hardest examples at layer ${report.layer}"><table><thead><tr><th scope="col">text</th><th scope="col" class="number">label</th><th scope="col" class="number">score</th><th scope="col" class="number">error</th></tr></thead>
<tbody>${examples
    .slice(0, worstShown)
    .map(
      ({ text, label, score, error }) =>
        html`<tr${error > 0.5 && html` class="wrong"`}><td><bdi class="text">${glimpse(text, 400)}</bdi></td><td class="number">${label}</td><td class="number">${score.toFixed(3)}</td><td class="number">${error.toFixed(3)}${error > 0.5 && " ✗"}</td></tr>`,
    )}</tbody></table></div></details>`;
}
