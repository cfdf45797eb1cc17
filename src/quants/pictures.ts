import type { Figure } from "../findings/figure.js";
import { tabled } from "../findings/figure.js";
import { figureOf, percent } from "../findings/numbers.js";
import type { Measured } from "../findings/uncertainty.js";
import { bytesText } from "../text/words.js";
import type { Quants, QuantsForm } from "./result.js";
import { leastCorrelation, mostListed } from "./survival.js";

const withInterval = ({ value, low, high }: Measured, text: (value: number) => string) =>
  `${text(value)} (${text(low)} to ${text(high)})`;

/** Quality against bytes, drift by layer, and features that died. */
export function picturesOf(quants: Quants): Figure[] {
  const { forms } = quants;
  const survivals = forms.filter(({ survival }) => survival !== undefined);
  const circuits = forms.filter((form) => form.circuits?.overlap);
  return [
    againstBytes(forms, {
      id: "divergence-by-bytes",
      title: "KL divergence against size",
      description: "KL divergence from the reference per token of held-out texts; lower is better.",
      axis: "KL divergence (nats)",
      of: ({ divergence }) => divergence,
      text: figureOf,
    }),
    againstBytes(forms, {
      id: "changes-by-bytes",
      title: "Changed predictions against size",
      description: "Share of predictions with a different most probable token; lower is better.",
      axis: "changed predictions",
      of: ({ agreement: { value, low, high } }) => ({ value: 1 - value, low: 1 - high, high: 1 - low }),
      text: percent,
    }),
    driftByLayer(forms),
    ...(survivals.length === 0
      ? []
      : [
          againstBytes(survivals, {
            id: "features-by-bytes",
            title: "Surviving features against size",
            description:
              "Share of the reference's features that are active on at least half of the same tokens; higher is better.",
            axis: "surviving features",
            of: ({ survival }) => survival!.surviving,
            text: percent,
          }),
          againstBytes(survivals, {
            id: "correlated-by-bytes",
            title: "Correlated features against size",
            description: `Share of the reference's features whose activations have a Pearson correlation with the reference's of at least ${leastCorrelation}, over all tokens; higher is better.`,
            axis: "correlated features",
            of: ({ survival }) => survival!.correlated,
            text: percent,
          }),
          died(survivals),
        ]),
    ...(circuits.length === 0
      ? []
      : [
          againstBytes(circuits, {
            id: "circuits-by-bytes",
            title: "Overlap of circuits against size",
            description:
              "Of the neurons and heads in the pruned attribution graph of the reference or of the form, the share in both; higher is better.",
            axis: "overlap",
            over: "prompts",
            of: ({ circuits: own }) => own!.overlap!,
            text: percent,
          }),
          circuitsByPrompt(circuits),
        ]),
  ];
}

interface Against {
  id: string;
  title: string;
  description: string;
  axis: string;
  /** Default: texts. */
  over?: string;
  of(form: QuantsForm): Measured;
  text(value: number): string;
}

/** A dot with its interval per form. */
function againstBytes(
  forms: readonly QuantsForm[],
  { id, title, description, axis, over = "texts", of, text }: Against,
): Figure {
  const largest = Math.max(...forms.map(({ bytes }) => bytes));
  const highest = Math.max(...forms.map((form) => of(form).high));
  const [unit, per] = largest >= 1e9 ? ["GB", 1e9] : ["MB", 1e6];
  return {
    ...{ id, title, description: `${description} Bars are 95 % bootstrap intervals over ${over}.` },
    chart: {
      ...{ kind: "lines", x: "size", y: "value", series: "form", xAxis: `size (${unit})`, yAxis: axis },
      ...{
        xDomain: [0, (1.05 * largest) / per],
        yDomain: [0, 1.05 * highest || 1],
        dots: true,
        interval: { low: "low", high: "high" },
      },
    },
    ...tabled(forms, {
      form: ["form", ({ name }) => name, String],
      size: ["size", ({ bytes }) => bytes / per, (value: number) => bytesText(value * per)],
      value: [axis, (form) => of(form).value, text],
      low: ["low", (form) => of(form).low, text],
      high: ["high", (form) => of(form).high, text],
    }),
    details: forms.map((form) => `${form.name}, ${bytesText(form.bytes)}\n${withInterval(of(form), text)}`),
  };
}

function driftByLayer(forms: readonly QuantsForm[]): Figure {
  const points = forms.flatMap(({ name, drift }) =>
    drift.map(({ layer, relative_difference, cosine }) => ({ name, layer, cosine, ...relative_difference })),
  );
  return {
    id: "drift-by-layer",
    title: "Drift by layer",
    description:
      "|a − b| / |a| for each token's block output a in the reference and b in the form; means over tokens with 95 % bootstrap intervals over texts.",
    chart: {
      ...{ kind: "lines", x: "layer", y: "value", series: "form", xAxis: "layer" },
      ...{ yAxis: "relative difference", interval: { low: "low", high: "high" }, dots: true },
    },
    ...tabled(points, {
      form: ["form", ({ name }) => name, String],
      layer: ["layer", ({ layer }) => layer, String],
      value: ["relative difference", ({ value }) => value, percent],
      low: ["low", ({ low }) => low, percent],
      high: ["high", ({ high }) => high, percent],
      cosine: ["cosine", ({ cosine }) => cosine.value, figureOf],
    }),
    details: points.map((point) => `${point.name}, layer ${point.layer}\n${withInterval(point, percent)}`),
  };
}

function died(forms: readonly QuantsForm[]): Figure {
  const [{ survival }] = forms as [QuantsForm];
  const { dictionary, layer, least, features } = survival!;
  return {
    id: "features-died",
    title: "Features that died",
    description: `Share of ${features} features of ${dictionary} (layer ${layer}), active on at least ${least} tokens in the reference, that are active on none of these tokens in the form.`,
    chart: { kind: "bars", label: "form", value: "died", axis: "share of features" },
    ...tabled(forms, {
      form: ["form", ({ name }) => name, String],
      died: ["died", (form) => form.survival!.died.value, percent],
      low: ["low", (form) => form.survival!.died.low, percent],
      high: ["high", (form) => form.survival!.died.high, percent],
      recall: ["mean recall", (form) => form.survival!.recall.value, percent],
    }),
    details: forms.map((form) => `${form.name}\n${withInterval(form.survival!.died, percent)}`),
    notes: forms.flatMap(({ name, survival: own }) =>
      own!.dead.length === 0
        ? []
        : [
            `${name}: ${own!.dead.map(({ feature, tokens }) => `${feature} (${tokens} tokens)`).join(", ")}${own!.dead.length === mostListed ? ", …" : ""}.`,
          ],
    ),
  };
}

function circuitsByPrompt(forms: readonly QuantsForm[]): Figure {
  const points = forms.flatMap(({ name, circuits }) =>
    circuits!.prompts.map((prompt, at) => ({ name, number: at + 1, ...prompt })),
  );
  const share = (value: number | null) => (value === null ? "–" : percent(value));
  return {
    id: "circuits-by-prompt",
    title: "Circuits by prompt",
    description:
      "Overlap of the pruned attribution graphs of the reference and of the form, for the token that the reference finds most probable after each prompt.",
    chart: {
      ...{ kind: "lines", x: "number", y: "overlap", series: "form", xAxis: "prompt", yAxis: "overlap" },
      ...{ yDomain: [0, 1], dots: true },
    },
    ...tabled(points, {
      form: ["form", ({ name }) => name, String],
      number: ["prompt", ({ number }) => number, String],
      prompt: ["text", ({ prompt }) => prompt, String],
      target: ["target", ({ target }) => target, String],
      reference: ["nodes, reference", ({ nodes }) => nodes[0], String],
      own: ["nodes", ({ nodes }) => nodes[1], String],
      overlap: ["overlap", ({ overlap }) => overlap, share],
      rank: ["rank correlation", ({ rank }) => rank, (value: number | null) => value?.toFixed(3) ?? "–"],
      error0: ["error, reference", ({ error }) => error[0], percent],
      error: ["error", ({ error }) => error[1], percent],
      rounding: ["rounding", ({ rounding }) => rounding[1], percent],
    }),
    details: points.map(
      ({ name, prompt, target, overlap }) => `${name}, ${share(overlap)}\n${prompt} → ${target}`,
    ),
  };
}
