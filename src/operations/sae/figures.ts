import type { SaeResult } from "../../contracts/index.js";
import { greatestActivation, shadeOf, trainedUnit, trainedWarnings } from "../../findings/features.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf, tabled } from "../../findings/figure.js";
import { figureOf, percent } from "../../findings/numbers.js";
import { glimpse, Html, html } from "../../report/markup.js";
import type { Findings, Passage } from "../../report/parts.js";

type Report = SaeResult["reports"][number];

/** Loss, quality, features by frequency and mean activation, and their top examples. */
export function saeFindings({ reports, target }: SaeResult): Findings {
  const sorted = reports.toSorted((a, b) => a.layer - b.layer);
  const inBatches = sorted.some(({ training }) => training !== undefined);
  return {
    summary: sorted.flatMap((report) => [
      (report.explained_variance === null
        ? `Layer ${report.layer}: the held-out ${target === undefined ? "block outputs" : "MLP outputs"} are identical, so there is no variance to explain, with `
        : `Layer ${report.layer}: ${target === undefined ? "the autoencoder" : "the transcoder"} explains ${percent(report.explained_variance)} of the held-out variance${target === undefined ? "" : ` of ${target}`} with `) +
        `${figureOf(report.mean_active)} active features per ${trainedUnit(report)}; ${report.dead_features} (${percent(report.dead_fraction)}) are active on none.`,
      ...trainedWarnings(report),
    ]),
    cautions: [
      "A readout is not causal evidence. A feature is a direction that helps to reconstruct these activations. Firing on texts that look similar to us does not show that the model uses it; to test that, steer with it.",
      `${inBatches ? "" : "A few hundred texts, their last tokens, and a small autoencoder: "}${inBatches ? "A" : "a"} different seed, size or set of texts finds different features. Explained variance and the share of dead features show how well the features represent the block at all.`,
    ],
    parts: [
      losses(sorted),
      ...(inBatches ? [densities(sorted)] : []),
      quality(sorted),
      features(sorted),
      ...sorted.map(topFeatures),
    ],
  };
}

/** Features by firing frequency: those that fire on nearly every activation say little, dead ones nothing. */
function densities(reports: Report[]): Figure {
  const bins = reports.flatMap(({ layer, training }) =>
    (training?.densities ?? []).map((bin) => ({ layer, share: bin.least, count: bin.features })),
  );
  return {
    id: "densities",
    title: "Firing frequency",
    description:
      "Features by the share of held-out activations on which they fire, on a logarithmic scale. Features on the far right fire " +
      "nearly everywhere; dead features are not drawn.",
    chart: {
      kind: "lines",
      x: "share",
      y: "features",
      series: "layer",
      xAxis: "share of held-out activations, power of ten",
      yAxis: "features",
      logarithmic: false,
    },
    ...tabled(bins, {
      layer: ["layer", (one) => layerName(one.layer), String],
      share: ["share of activations, power of ten", (one) => Math.log10(one.share), figureOf],
      features: ["features", (one) => one.count, String],
    }),
    details: bins.map(
      ({ layer, share, count }) => `layer ${layer}\n${count} features from ${percent(share)}`,
    ),
  };
}

const layerName = (layer: number) => `layer ${layer}`;

function losses(reports: Report[]): Figure {
  const points = reports.flatMap(({ layer, losses }) => losses.map((one) => ({ layer, ...one })));
  const positive = points.every(({ loss }) => loss > 0);
  return {
    id: "loss",
    title: "Training loss",
    description: `${reports.some(({ training }) => training !== undefined) ? "Reconstruction error of the batches" : "Reconstruction error plus L1 penalty on the training texts, every ten steps"}${positive ? ", on a logarithmic scale" : ""}. If a line is still falling at its end, train for more steps.`,
    chart: {
      kind: "lines",
      x: "step",
      y: "loss",
      series: "layer",
      xAxis: "step",
      yAxis: "loss",
      logarithmic: positive,
    },
    ...tabled(points, {
      layer: ["layer", (one) => layerName(one.layer), String],
      step: ["step", (one) => one.step, String],
      loss: ["loss", (one) => one.loss, figureOf],
    }),
    details: points.map(({ layer, step, loss }) => `layer ${layer}, step ${step}\nloss ${figureOf(loss)}`),
  };
}

function quality(reports: Report[]): Figure {
  const bars = reports.flatMap(({ layer, explained_variance, dead_fraction }) => [
    ...(explained_variance === null
      ? []
      : [{ layer, measure: "explained variance", value: explained_variance }]),
    { layer, measure: "dead features", value: dead_fraction },
  ]);
  const name = ({ layer, measure }: (typeof bars)[number]) =>
    reports.length > 1 ? `${layerName(layer)}, ${measure}` : measure;
  return {
    id: "quality",
    title: "Explained variance and dead features",
    description:
      "The share of the held-out variance that the features explain, and the share of features that are active on " +
      "no held-out text.",
    chart: {
      kind: "bars",
      label: "measure",
      value: "value",
      axis: "share",
      domain: [Math.min(0, ...bars.map(({ value }) => value)), 1],
    },
    ...dataOf(bars, {
      layer: ["layer", (one) => one.layer],
      measure: ["measure", name],
      value: ["value", (one) => one.value],
    }),
    details: bars.map((bar) => `${layerName(bar.layer)}\n${bar.measure}  ${percent(bar.value)}`),
    table: {
      head: ["layer", "explained variance", "held-out MSE", "training MSE", "active per text", "dead"],
      rows: reports.map((report) => [
        String(report.layer),
        report.explained_variance === null ? "–" : percent(report.explained_variance),
        figureOf(report.held_out_mse),
        figureOf(report.train_mse),
        figureOf(report.mean_active),
        `${report.dead_features} (${percent(report.dead_fraction)})`,
      ]),
    },
  };
}

function features(reports: Report[]): Figure {
  const points = reports.flatMap(({ layer, features }) =>
    features.map(({ feature, mean, frequency, examples }) => ({
      layer,
      feature,
      mean,
      frequency,
      example: glimpse(examples[0]?.text ?? "", 60),
    })),
  );
  return {
    id: "features",
    title: "Features",
    description:
      "The most active features of each layer: the mean activation of each against the share of held-out texts on which " +
      "it fires. Features on the right are nearly always on.",
    chart: {
      kind: "scatter",
      x: "frequency",
      y: "mean",
      series: "layer",
      label: "feature",
      xAxis: "share of texts on which it is active",
      yAxis: "mean activation",
    },
    ...tabled(points, {
      layer: ["layer", (one) => layerName(one.layer), String],
      feature: ["feature", (one) => one.feature, String],
      frequency: ["frequency", (one) => one.frequency, percent],
      mean: ["mean activation", (one) => one.mean, figureOf],
      example: ["top example", (one) => one.example, String],
    }),
    details: points.map(
      ({ layer, feature, mean, frequency, example }) =>
        `layer ${layer}, feature ${feature}\nactive on ${percent(frequency)}, mean ${figureOf(mean)}\n${example}`,
    ),
  };
}

function topFeatures({ layer, features, training }: Report): Passage {
  const strongest = greatestActivation(features);
  return {
    id: `top-features-${layer}`,
    title: `Top examples at layer ${layer}`,
    description:
      training === undefined
        ? "The held-out texts on which each feature is most active. The bar shows the activation at the " +
          "text's last token, the only one used in this experiment; a full bar is the layer's strongest activation."
        : "The texts of the held-out activations on which each feature is strongest. A full bar is the layer's strongest activation.",
    get body() {
      return html`<div class="features">${features.map(
        ({ feature, mean, frequency, examples }) => html`<section class="feature">
<h3>feature ${feature}</h3><p class="soft">active on ${percent(frequency)}, mean ${figureOf(mean)}</p>
<ol>${examples.map(({ text, activation }) => {
          const share = shadeOf(activation, strongest);
          return html`<li><bdi class="text">${glimpse(text, 240)}</bdi> <span class="number"><span class="bar" style="${new Html(`--share:${share.toFixed(3)}`)}"></span><span>${figureOf(activation)}</span></span></li>`;
        })}</ol></section>`,
      )}</div>`;
    },
  };
}
