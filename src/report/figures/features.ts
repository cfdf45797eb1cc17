import type { FeaturePage, FeaturesResult } from "../../contracts/index.js";
import { count, type Figure, type Findings, figureOf, type Passage, percent } from "../figure.js";
import { glimpse, Html, html } from "../markup.js";

/** Texts that are shown with their tokens. */
const textsShown = 12;

/** How well a dictionary fits texts, its strongest features, and where they are active. */
export function featuresFindings(result: FeaturesResult): Findings {
  const { dictionary, fidelity, layer } = result;
  const { explained_variance: explained, loss_recovered: recovered } = fidelity;
  return {
    summary: [
      `The dictionary ${dictionary.name} (${count(dictionary.features, "feature")}, ${dictionary.activation}) at block ${layer}: ` +
        `${figureOf(fidelity.l0)} features are active a token, over ${count(fidelity.tokens, "token")}; ` +
        (explained === null
          ? "the block outputs do not vary."
          : `their sum explains ${percent(explained)} of the variance.`),
      ...(recovered === null
        ? []
        : [`With the block's output replaced by that sum, ${percent(recovered)} of the loss is recovered.`]),
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
    around(page, name),
    examples(page, result),
  ];
}

function histogram({ feature, histogram, active_tokens }: FeaturePage, name: string): Figure {
  return {
    id: `feature-${feature}-activations`,
    title: `${name}: activations`,
    description: `The ${count(active_tokens, "token")} of these texts in which it is active, by activation.`,
    chart: { kind: "bars", label: "from", value: "tokens", axis: "tokens" },
    columns: [
      { name: "from", label: "activation from" },
      { name: "tokens", label: "tokens" },
    ],
    rows: histogram.map(({ least, tokens }) => [figureOf(least), tokens]),
    details: histogram.map(({ least, tokens }) => `${count(tokens, "token")} from ${figureOf(least)} on`),
    table: {
      head: ["activation from", "tokens"],
      rows: histogram.map(({ least, tokens }) => [figureOf(least), String(tokens)]),
    },
  };
}

function around({ feature, raised, lowered, neighbours }: FeaturePage, name: string): Passage {
  const list = (items: Array<readonly [string, number]>) =>
    html`<ol>${items.map(([what, value]) => html`<li><bdi class="text">${glimpse(what, 80)}</bdi> <span class="number">${figureOf(value)}</span></li>`)}</ol>`;
  const tokens = (named: FeaturePage["raised"]) =>
    named === null
      ? html`<p class="soft">This model has no logit lens.</p>`
      : list(named.map(({ token, effect }) => [token, effect] as const));
  return {
    id: `feature-${feature}`,
    title: name,
    description:
      "The tokens whose logits the decoder row by itself makes largest and smallest, less the mean of all; and the features " +
      "whose decoder rows have the largest cosine with its own.",
    get body() {
      return html`<div class="features"><section class="feature"><h3>raises</h3>${tokens(raised)}</section>
<section class="feature"><h3>lowers</h3>${tokens(lowered)}</section>
<section class="feature"><h3>near it</h3>${list(neighbours.map(({ feature, cosine, label }) => [`feature ${feature}${label === undefined ? "" : `: ${label}`}`, cosine] as const))}</section></div>`;
    },
  };
}

/** Its examples, each token shaded by the feature's activation there. */
function examples({ feature, groups }: FeaturePage, { texts }: FeaturesResult): Passage {
  const greatest = Math.max(
    Number.MIN_VALUE,
    ...groups.flatMap(({ examples }) => examples.map((one) => one.activation)),
  );
  const shaded = ({ text, from, activations }: FeaturePage["groups"][number]["examples"][number]) =>
    html`<bdi class="text">${activations.map((activation, i) => {
      const share = Math.max(0, Math.min(1, activation / greatest));
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
  const around = (text: number, token: number) =>
    glimpse(texts[text]?.tokens.slice(Math.max(0, token - 8), token + 1).join("") ?? "", 80);
  return {
    id: "strongest-features",
    title: "Strongest features",
    description: "The features that become strongest anywhere in the texts, by their greatest activation.",
    chart: { kind: "bars", label: "feature", value: "max", axis: "greatest activation" },
    columns: [
      { name: "feature", label: "feature" },
      { name: "max", label: "greatest activation" },
      { name: "frequency", label: "share of tokens" },
    ],
    rows: features.map(({ feature, max, frequency }) => [`feature ${feature}`, max, frequency]),
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
  const greatest = Math.max(
    Number.MIN_VALUE,
    ...text.top.flatMap((top) => top.map(({ activation }) => activation)),
  );
  return {
    id: `tokens-${index}`,
    title: `Text ${index + 1}`,
    description: "Each token with its strongest feature; the shade is that feature's activation.",
    get body() {
      return html`<ol>${text.tokens.map((token, at) => {
        const [top] = text.top[at] ?? [];
        const share = Math.max(0, Math.min(1, (top?.activation ?? 0) / greatest));
        return html`<li><bdi class="text shaded" style="${new Html(`--share:${share.toFixed(3)}`)}">${glimpse(token, 40)}</bdi> <span class="number">${top === undefined ? "none" : `feature ${top.feature}, ${figureOf(top.activation)}`}</span></li>`;
      })}</ol>`;
    },
  };
}
