import type { FeaturePage, FeaturesResult } from "../../contracts/index.js";
import {
  dictionaryWarnings,
  featuresFinding,
  greatest,
  greatestActivation,
  shadeOf,
  upTo,
} from "../../findings/features.js";
import { percentTo, shortNumber } from "../../findings/numbers.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { wrap } from "../../terminal/fit.js";
import { finding, heading, labelled } from "../../terminal/page.js";
import { dim, inScale, magnitudeScale } from "../../terminal/paint.js";
import { table } from "../../terminal/table.js";
import { visible } from "../../text/visible.js";
import type { Picture } from "../picture.js";

/** Maximum number of tokens of the first text listed with their features. */
const tokensShown = 40;
const featuresShown = 4;

/** How well a dictionary fits the texts, features by token, and the strongest features. */
export function featuresPicture(result: FeaturesResult, canvas: Canvas): string[] {
  return [
    heading("Fidelity", "how well the dictionary reconstructs activations on these texts", "", canvas),
    ...finding(featuresFinding(result), canvas),
    ...dictionaryWarnings(result.features, { unit: "token" }).flatMap((line) => wrap(line, canvas.width)),
    "",
    ...fidelity(result, canvas),
    "",
    ...byToken(result, canvas),
    "",
    heading("Strongest features", "by maximum activation", "", canvas),
    ...strongest(result, canvas),
    ...(result.pages ?? []).flatMap((page) => ["", ...pagePicture(page, result, canvas)]),
  ];
}

/** A feature dashboard: where it is active, which tokens it raises and lowers, and its nearest features. */
function pagePicture(page: FeaturePage, { texts, fidelity }: FeaturesResult, canvas: Canvas): string[] {
  const { feature, label, groups, histogram, raised, lowered, neighbours } = page;
  const most = greatestActivation(groups);
  const row = (name: string, text: string) => labelled(name, text, canvas);
  const words = (tokens: FeaturePage["raised"]) =>
    tokens?.map(({ token, effect }) => `${visible(token)} ${shortNumber(effect)}`).join(", ") ??
    "no logit lens";
  const examples = groups.flatMap(({ name, examples }) =>
    examples.map(({ text, token, activation, from, activations }, i) => {
      const tokens = texts[text]?.tokens.slice(from, from + activations.length) ?? [];
      const shown = tokens
        .map((piece, j) =>
          inScale(visible(piece), shadeOf(activations[j] as number, most), magnitudeScale, canvas.colors),
        )
        .join("");
      return `${(i === 0 ? name : "").padEnd(10)} ${shortNumber(activation).padStart(7)}  ${String(text).padStart(4)}:${String(token).padEnd(4)} ${shown}`;
    }),
  );
  return [
    heading(
      `Feature ${feature}`,
      label === undefined ? `active on ${page.active_tokens} of ${fidelity.tokens} tokens` : oneLine(label),
      "",
      canvas,
    ),
    ...(histogram.length === 0
      ? [dim("Not active on any token of these texts.", canvas.colors)]
      : row(
          "Activations",
          `0 ${sparks(histogram.map(({ tokens }) => tokens))} ${shortNumber(most)}, ${page.active_tokens} tokens`,
        )),
    ...row("Raises", words(raised)),
    ...row("Lowers", words(lowered)),
    ...row(
      "Near",
      neighbours
        .map(
          ({ feature, cosine, label }) =>
            `${feature} ${cosine.toFixed(2)}${label === undefined ? "" : ` ${oneLine(label)}`}`,
        )
        .join(", "),
    ),
    ...examples,
  ];
}

/** One bar per number, on a square-root scale, so that the few strong activations remain visible. */
function sparks(counts: readonly number[]): string {
  const most = Math.max(1, ...counts);
  return counts
    .map((count) => (count === 0 ? " " : "▁▂▃▄▅▆▇█"[Math.min(7, Math.floor(8 * Math.sqrt(count / most)))]))
    .join("");
}

function fidelity({ fidelity, dictionary, layer, point }: FeaturesResult, canvas: Canvas): string[] {
  const share = (value: number | null) => (value === null ? "–" : percentTo(value, 1));
  const { cross_entropy: loss } = fidelity;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  return [
    ...row(
      "Dictionary",
      `${oneLine(dictionary.name)}, ${dictionary.features} features (${dictionary.activation}, ${dictionary.layout}), ` +
        `${point ?? "output"} of block ${layer}`,
    ),
    ...row(
      "Loss",
      loss === null
        ? "no next token to predict"
        : `${loss.clean.toFixed(3)} nats per token unmodified, ${loss.reconstructed.toFixed(3)} through the dictionary, ` +
            `${loss.ablated.toFixed(3)} ablated: ${share(fidelity.loss_recovered)} recovered`,
    ),
    ...row(
      "Explained",
      `${share(fidelity.explained_variance)} of the variance of ${fidelity.tokens} tokens, cosine ${fidelity.cosine.toFixed(3)}, ` +
        `${fidelity.l0.toFixed(1)} features active per token`,
    ),
  ];
}

function byToken({ texts }: FeaturesResult, canvas: Canvas): string[] {
  const [text] = texts;
  if (text === undefined) return [];
  const most = greatest(text.top.flatMap((top) => top.map(({ activation }) => activation)));
  const rows = text.tokens.slice(0, tokensShown).map((token, index) => {
    const top = (text.top[index] ?? []).slice(0, featuresShown);
    const share = shadeOf(top[0]?.activation ?? 0, most);
    return [
      String(index),
      [visible(token), (shown: string) => inScale(shown, share, magnitudeScale, canvas.colors)] as const,
      top.map(({ feature, activation }) => `${feature} ${shortNumber(activation)}`).join("   ") || "none",
    ];
  });
  const more = text.tokens.length - rows.length;
  const title = texts.length === 1 ? "By token" : "By token, first text";
  return [
    heading(title, "feature and activation, strongest first", "", canvas),
    ...table(
      [{ title: "#", align: "right" }, { title: "token" }, { title: "features", least: 12 }],
      rows,
      canvas,
    ),
    ...(more > 0 ? [dim(`… ${more} more tokens in the result`, canvas.colors)] : []),
  ];
}

function strongest({ features, texts }: FeaturesResult, canvas: Canvas): string[] {
  const rows = features.map(({ feature, max, mean, frequency, text, token }) => {
    const around = upTo(texts, text, token, 6).map(visible).join("");
    return [
      String(feature),
      shortNumber(max),
      shortNumber(mean),
      percentTo(frequency, frequency < 0.1 ? 1 : 0),
      oneLine(around),
    ];
  });
  const right = { align: "right" as const };
  return table(
    [
      { title: "feature", ...right },
      { title: "max", ...right },
      { title: "mean", ...right, dispensable: 1 },
      { title: "active", ...right },
      { title: "strongest after", least: 12 },
    ],
    rows,
    canvas,
  );
}

export default {
  asked({ texts, prompt = "", dictionary }) {
    const [first = prompt, ...more] = texts ?? [];
    const shown = more.length === 0 ? oneLine(first) : `${more.length + 1} texts`;
    return [["Read", `${shown}, through the dictionary ${dictionary}`]];
  },
  draw: featuresPicture,
} satisfies Picture<"features">;
