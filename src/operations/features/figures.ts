import type { FeaturePage, FeaturesResult } from "../../contracts/index.js";
import { greatest, greatestActivation, shadeOf, upTo } from "../../findings/features.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf } from "../../findings/figure.js";
import { count, figureOf, percent, signed } from "../../findings/numbers.js";
import { visible } from "../../findings/text.js";
import { glimpse, Html, html } from "../../report/markup.js";
import type { Findings, Passage } from "../../report/parts.js";

/** Texts that are shown with their tokens. */
const textsShown = 12;

/** How well a dictionary fits texts, its strongest features, and where they are active. */
export function featuresFindings(result: FeaturesResult): Findings {
  const { dictionary, fidelity, layer, point } = result;
  const { explained_variance: explained, loss_recovered: recovered } = fidelity;
  return {
    summary: [
      `The dictionary ${dictionary.name} (${count(dictionary.features, "feature")}, ${dictionary.activation}) at ${point === undefined ? "" : `${point} of `}block ${layer}: ` +
        `${figureOf(fidelity.l0)} features are active a token, over ${count(fidelity.tokens, "token")}; ` +
        (explained === null
          ? "the rows do not vary."
          : `their sum explains ${percent(explained)} of the variance.`),
      ...(recovered === null
        ? []
        : [
            `With ${point === undefined ? "the block's output" : point} replaced by that sum, ${percent(recovered)} of the loss is recovered.`,
          ]),
    ],
    cautions: [
      "A dictionary that does not fit these texts shows features that mean nothing here: look at the explained variance and the loss recovered first.",
      "That a feature is active where we expect it does not show that the model uses it; steering with it is the experiment for that.",
    ],
    parts: [
      strongest(result),
      ...(result.pages ?? []).flatMap((page) => pageOf(page, result)),
      ...result.texts.slice(0, textsShown).map(tokens),
    ],
  };
}

/** A feature by itself: its activations as a histogram, its examples by quantile, and where its decoder row points. */
function pageOf(page: FeaturePage, result: FeaturesResult): Array<Figure | Passage> {
  const name = `Feature ${page.feature}${page.label === undefined ? "" : `: ${page.label}`}`;
  return [
    ...(page.histogram.length === 0 ? [] : [histogram(page, name)]),
    ...named(page, name, "raises"),
    ...named(page, name, "lowers"),
    ...near(page, name),
    examples(page, result),
  ];
}

function histogram({ feature, histogram, active_tokens }: FeaturePage, name: string): Figure {
  return {
    id: `feature-${feature}-activations`,
    title: `${name}: activations`,
    description: `The ${count(active_tokens, "token")} of these texts in which it is active, by activation.`,
    chart: { kind: "bars", label: "from", value: "tokens", axis: "tokens" },
    ...dataOf(histogram, {
      from: ["activation from", ({ least }) => figureOf(least)],
      tokens: ["tokens", (one) => one.tokens],
    }),
    details: histogram.map(({ least, tokens }) => `${count(tokens, "token")} from ${figureOf(least)} on`),
    table: {
      head: ["activation from", "tokens"],
      rows: histogram.map(({ least, tokens }) => [figureOf(least), String(tokens)]),
    },
  };
}

/** Tokens whose logits the decoder row by itself makes largest, or smallest. */
function named(page: FeaturePage, name: string, way: "raises" | "lowers"): Figure[] {
  const tokens = way === "raises" ? page.raised : page.lowered;
  if (tokens === null || tokens.length === 0) return [];
  return [
    {
      id: `feature-${page.feature}-${way}`,
      title: `${name}: tokens that it ${way}`,
      description: `The tokens whose logits the decoder row by itself makes ${way === "raises" ? "largest" : "smallest"}, less the mean of all.`,
      chart: { kind: "bars", label: "token", value: "effect", axis: "logit less the mean of all" },
      ...dataOf(tokens, {
        token: ["token", ({ token }) => visible(token)],
        token_id: ["token id", (one) => one.token_id],
        effect: ["logit less the mean of all", (one) => one.effect],
      }),
      details: tokens.map(
        ({ token, token_id, effect }) => `${visible(token)} (id ${token_id})\n${signed(effect)}`,
      ),
      table: {
        head: ["token", "id", "effect"],
        rows: tokens.map(({ token, token_id, effect }) => [
          visible(token),
          String(token_id),
          figureOf(effect),
        ]),
      },
    },
  ];
}

function near({ feature, neighbours, raised, lowered }: FeaturePage, name: string): Figure[] {
  const names = neighbours.map(
    ({ feature, label }) => `feature ${feature}${label === undefined ? "" : `: ${glimpse(label, 80)}`}`,
  );
  return [
    {
      id: `feature-${feature}-near`,
      title: `${name}: features near it`,
      description: "The features whose decoder rows have the largest cosine with its own.",
      chart: { kind: "bars", label: "feature", value: "cosine", axis: "cosine of the decoder rows" },
      columns: [
        { name: "feature", label: "feature" },
        { name: "cosine", label: "cosine" },
      ],
      rows: neighbours.map(({ cosine }, at) => [names[at] as string, cosine]),
      details: neighbours.map(({ cosine }, at) => `${names[at]}\n${figureOf(cosine)}`),
      ...((raised === null || lowered === null) && {
        notes: ["This model has no logit lens: which tokens the feature raises and lowers is not known."],
      }),
      table: {
        head: ["feature", "cosine"],
        rows: neighbours.map(({ cosine }, at) => [names[at] as string, figureOf(cosine)]),
      },
    },
  ];
}

/** Its examples, each token shaded by the feature's activation there. */
function examples({ feature, groups }: FeaturePage, { texts }: FeaturesResult): Passage {
  const most = greatestActivation(groups);
  const shaded = ({ text, from, activations }: FeaturePage["groups"][number]["examples"][number]) =>
    html`<bdi class="text">${activations.map((activation, i) => {
      const share = shadeOf(activation, most);
      const token = (texts[text]?.tokens[from + i] ?? "").replace(/\s+/g, " ").slice(0, 40);
      return html`<span class="shaded" style="${new Html(`--share:${share.toFixed(3)}`)}">${token}</span>`;
    })}</bdi>`;
  return {
    id: `feature-${feature}-examples`,
    title: `Feature ${feature}: examples`,
    description:
      "The tokens in which it is strongest, then some of each quarter of those in which it is active; the shade is its activation.",
    get body() {
      return html`<div class="features">${groups.map(
        ({ name, examples }) => html`<section class="feature"><h3>${name}</h3>
<ol>${examples.map((example) => html`<li>${shaded(example)} <span class="number">${figureOf(example.activation)}</span></li>`)}</ol></section>`,
      )}</div>`;
    },
  };
}

function strongest({ features, texts }: FeaturesResult): Figure {
  const around = (text: number, token: number) => glimpse(upTo(texts, text, token, 8).join(""), 80);
  return {
    id: "strongest-features",
    title: "Strongest features",
    description: "The features that become strongest anywhere in the texts, by their greatest activation.",
    chart: { kind: "bars", label: "feature", value: "max", axis: "greatest activation" },
    ...dataOf(features, {
      feature: ["feature", ({ feature }) => `feature ${feature}`],
      max: ["greatest activation", (one) => one.max],
      frequency: ["share of tokens", (one) => one.frequency],
    }),
    details: features.map(
      ({ feature, max, frequency, text, token }) =>
        `feature ${feature}\n${figureOf(max)} after ${around(text, token)}\nactive on ${percent(frequency)}`,
    ),
    table: {
      head: ["feature", "greatest", "mean where active", "share of tokens", "strongest after"],
      rows: features.map(({ feature, max, mean, frequency, text, token }) => [
        String(feature),
        figureOf(max),
        figureOf(mean),
        percent(frequency),
        around(text, token),
      ]),
    },
  };
}

/** A text whose tokens are shaded by the activation of their strongest feature. */
function tokens(text: FeaturesResult["texts"][number], index: number): Passage {
  const most = greatest(text.top.flatMap((top) => top.map(({ activation }) => activation)));
  return {
    id: `tokens-${index}`,
    title: `Text ${index + 1}`,
    description: "Each token with its strongest feature; the shade is that feature's activation.",
    get body() {
      return html`<ol>${text.tokens.map((token, at) => {
        const [top] = text.top[at] ?? [];
        const share = shadeOf(top?.activation ?? 0, most);
        return html`<li><bdi class="text shaded" style="${new Html(`--share:${share.toFixed(3)}`)}">${glimpse(token, 40)}</bdi> <span class="number">${top === undefined ? "none" : `feature ${top.feature}, ${figureOf(top.activation)}`}</span></li>`;
      })}</ol>`;
    },
  };
}
