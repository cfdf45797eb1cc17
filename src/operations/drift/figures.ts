import type { DriftResult, Measured } from "../../contracts/index.js";
import { driftFinding } from "../../findings/drift-finding.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf, tabled } from "../../findings/figure.js";
import { count, figureOf } from "../../findings/numbers.js";
import type { Findings } from "../../report/parts.js";

/** The distance between two models' block outputs by layer, and the measurements of artefacts in both. */
export function driftFindings(result: DriftResult): Findings {
  const { models, texts, tokens, dictionary, probe, vector } = result;
  const { says, controls } = driftFinding(result);
  const names = models.map(({ name, quantization }) =>
    quantization === "" ? name : `${name} (${quantization})`,
  );
  return {
    summary: [
      says,
      controls,
      `Compared: ${names.join(" and ")}, on ${count(texts, "text")} with ${count(tokens, "token")}.`,
      ...(dictionary === undefined
        ? []
        : [
            `The dictionary ${dictionary.name} at ${dictionary.point === undefined ? "" : `${dictionary.point} of `}layer ${dictionary.layer}: ` +
              (dictionary.jaccard === null
                ? "no feature is active"
                : `of the features active in either model, ${shown(dictionary.jaccard)} are active in both`) +
              (dictionary.loss_recovered === null
                ? "."
                : `; the loss recovered is ${dictionary.loss_recovered.map(shown).join(" and ")}.`),
          ]),
      ...(probe === undefined
        ? []
        : [
            `The probe ${probe.name} at layer ${probe.layer}: AUROC ${probe.auroc.map(shown).join(" and ")}.`,
          ]),
      ...(vector === undefined
        ? []
        : [
            `The vector ${vector.name} at layer ${vector.layer}: separation ${vector.separation.map(shown).join(" and ")}.`,
          ]),
    ],
    cautions: [
      "Intervals come from resampling the examples: they show how much the values depend on this choice of texts, not on the kind of text.",
      "Similar block outputs do not imply similar behavior: comparing the models' answers is a separate measurement.",
    ],
    parts: [byLayer(result), ...artefacts(result)],
  };
}

function shown({ value, low, high }: Measured): string {
  return `${figureOf(value)} (${figureOf(low)} to ${figureOf(high)})`;
}

function byLayer({ layers }: DriftResult): Figure {
  const measures = [
    ["cosine", "cosine"],
    ["relative_length", "relative length"],
    ["relative_difference", "relative difference"],
  ] as const;
  const sorted = layers.toSorted((a, b) => a.layer - b.layer);
  const points = measures.flatMap(([field, name]) =>
    sorted.map((one) => ({ name, layer: one.layer, ...one[field] })),
  );
  return {
    id: "drift-by-layer",
    title: "Block outputs by layer",
    description:
      "For each token's block output a in the first model and b in the second: the cosine of a and b, |b| / |a|, and " +
      "|a - b| / |a|; means over tokens with 95 % bootstrap intervals over texts.",
    chart: {
      kind: "lines",
      x: "layer",
      y: "value",
      series: "measure",
      xAxis: "layer",
      yAxis: "mean over tokens",
      interval: { low: "low", high: "high" },
      dots: true,
    },
    ...dataOf(points, {
      measure: ["measure", (one) => one.name],
      layer: ["layer", (one) => one.layer],
      value: ["value", (one) => one.value],
      low: ["low", (one) => one.low],
      high: ["high", (one) => one.high],
    }),
    details: points.map((point) => `layer ${point.layer}\n${point.name} ${shown(point)}`),
    table: {
      head: ["layer", ...measures.map(([, name]) => name)],
      rows: sorted.map((one) => [String(one.layer), ...measures.map(([field]) => shown(one[field]))]),
    },
  };
}

/** Each artefact's measurements in both models. */
function artefacts({ dictionary, probe, vector }: DriftResult): Figure[] {
  const pairs = [
    ...(dictionary?.loss_recovered
      ? [{ name: `loss recovered, ${dictionary.name}`, pair: dictionary.loss_recovered }]
      : []),
    ...(probe === undefined ? [] : [{ name: `AUROC, ${probe.name}`, pair: probe.auroc }]),
    ...(vector === undefined ? [] : [{ name: `separation, ${vector.name}`, pair: vector.separation }]),
  ];
  const bars = pairs.flatMap(({ name, pair }) =>
    pair.map((measured, i) => ({ name: `${name}, ${i === 0 ? "first" : "second"} model`, ...measured })),
  );
  const jaccard = dictionary?.jaccard;
  if (jaccard) bars.push({ name: `shared active features, ${dictionary.name}`, ...jaccard });
  if (bars.length === 0) return [];
  return [
    {
      id: "drift-artefacts",
      title: "Artefacts in both models",
      description: "The same measurements in both models. The table has 95 % bootstrap intervals over texts.",
      chart: { kind: "bars", label: "name", value: "value", axis: "share" },
      ...tabled(bars, {
        name: ["measurement", (one) => one.name, String],
        value: ["value", (one) => one.value, figureOf],
        low: ["low", (one) => one.low, figureOf],
        high: ["high", (one) => one.high, figureOf],
      }),
      details: bars.map((bar) => `${bar.name}\n${shown(bar)}`),
    },
  ];
}
