import type { FeaturePage, FeaturesResult } from "../../contracts/index.js";
import {
  dictionaryWarnings,
  featuresFinding,
  greatest,
  greatestActivation,
  shadeOf,
  upTo,
} from "../../findings/features.js";
import type { Figure } from "../../findings/figure.js";
import { tabled } from "../../findings/figure.js";
import { count, figureOf, percent, signed } from "../../findings/numbers.js";
import { glimpse, Html, html } from "../../report/markup.js";
import type { Findings, Passage } from "../../report/parts.js";
import { visible } from "../../text/visible.js";

/** Maximum number of texts shown token by token. */
const textsShown = 12;

/** How well a dictionary fits the texts, its strongest features, and where they are active. */
export function featuresFindings(result: FeaturesResult): Findings {
  const { dictionary, fidelity, layer, point } = result;
  const { explained_variance: explained } = fidelity;
  const { says, controls } = featuresFinding(result);
  return {
    summary: [
      says,
      controls,
      ...dictionaryWarnings(result.features, { unit: "token" }),
      `The dictionary ${dictionary.name} (${count(dictionary.features, "feature")}, ${dictionary.activation}) at ${point === undefined ? "" : `${point} of `}block ${layer}: ` +
        `${figureOf(fidelity.l0)} features are active per token, over ${count(fidelity.tokens, "token")}; ` +
        (explained === null
          ? "the activations do not vary."
          : `their reconstruction explains ${percent(explained)} of the variance.`),
    ],
    cautions: [
      "If the dictionary does not fit these texts, its features mean nothing here: check explained variance and loss recovered first.",
      "A feature that is active where you expect it is not proof that the model uses it; to test that, steer with it.",
    ],
    parts: [
      strongest(result),
      ...(result.pages ?? []).flatMap((page) => pageOf(page, result)),
      ...result.texts.slice(0, textsShown).map(tokens),
    ],
  };
}

/** A feature dashboard: a histogram of its activations, examples by quantile, and its decoder row's logit effects. */
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
    description: `Histogram of its activations on the ${count(active_tokens, "token")} of these texts where it is active.`,
    chart: { kind: "bars", label: "from", value: "tokens", axis: "tokens" },
    ...tabled(histogram, {
      from: ["activation from", ({ least }) => figureOf(least), String],
      tokens: ["tokens", (one) => one.tokens, String],
    }),
    details: histogram.map(({ least, tokens }) => `${count(tokens, "token")} from ${figureOf(least)}`),
  };
}

/** The tokens that the decoder row promotes or suppresses most. */
function named(page: FeaturePage, name: string, way: "raises" | "lowers"): Figure[] {
  const tokens = way === "raises" ? page.raised : page.lowered;
  if (tokens === null || tokens.length === 0) return [];
  return [
    {
      id: `feature-${page.feature}-${way}`,
      title: `${name}: tokens it ${way}`,
      description: `Tokens this feature ${way === "raises" ? "promotes" : "suppresses"} most (direct logit effect, mean-centred).`,
      chart: { kind: "bars", label: "token", value: "effect", axis: "direct logit effect" },
      ...tabled(tokens, {
        token: ["token", ({ token }) => visible(token), String],
        token_id: ["token id", (one) => one.token_id, String],
        effect: ["direct logit effect", (one) => one.effect, figureOf],
      }),
      details: tokens.map(
        ({ token, token_id, effect }) => `${visible(token)} (id ${token_id})\n${signed(effect)}`,
      ),
    },
  ];
}

function near({ feature, neighbours, raised, lowered }: FeaturePage, name: string): Figure[] {
  const named = neighbours.map(({ feature, label, cosine }) => ({
    name: `feature ${feature}${label === undefined ? "" : `: ${glimpse(label, 80)}`}`,
    cosine,
  }));
  return [
    {
      id: `feature-${feature}-near`,
      title: `${name}: nearest features`,
      description: "The features with the most similar decoder rows, by cosine.",
      chart: { kind: "bars", label: "feature", value: "cosine", axis: "cosine of the decoder rows" },
      ...tabled(named, {
        feature: ["feature", (one) => one.name, String],
        cosine: ["cosine", (one) => one.cosine, figureOf],
      }),
      details: named.map(({ name, cosine }) => `${name}\n${figureOf(cosine)}`),
      ...((raised === null || lowered === null) && {
        notes: [
          "This model has no logit lens, so the tokens that the feature raises and lowers are unknown.",
        ],
      }),
    },
  ];
}

/** Its examples, with each token shaded by the feature's activation. */
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
      "The tokens with its strongest activations, then samples from each quarter of its activations. Shading shows its activation.",
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
    description: "The features with the largest activation anywhere in the texts.",
    chart: { kind: "bars", label: "feature", value: "max", axis: "max activation" },
    ...tabled(features, {
      feature: ["feature", ({ feature }) => `feature ${feature}`, String],
      max: ["max activation", (one) => one.max, figureOf],
      mean: ["mean where active", (one) => one.mean, figureOf],
      frequency: ["share of tokens", (one) => one.frequency, percent],
      after: ["strongest after", ({ text, token }) => around(text, token), String],
    }),
    details: features.map(
      ({ feature, max, frequency, text, token }) =>
        `feature ${feature}\n${figureOf(max)} after ${around(text, token)}\nactive on ${percent(frequency)}`,
    ),
  };
}

/** A text with each token shaded by the activation of its strongest feature. */
function tokens(text: FeaturesResult["texts"][number], index: number): Passage {
  const most = greatest(text.top.flatMap((top) => top.map(({ activation }) => activation)));
  return {
    id: `tokens-${index}`,
    title: `Text ${index + 1}`,
    description: "Each token with its strongest feature. Shading shows that feature's activation.",
    get body() {
      return html`<ol>${text.tokens.map((token, at) => {
        const [top] = text.top[at] ?? [];
        const share = shadeOf(top?.activation ?? 0, most);
        return html`<li><bdi class="text shaded" style="${new Html(`--share:${share.toFixed(3)}`)}">${glimpse(token, 40)}</bdi> <span class="number">${top === undefined ? "none" : `feature ${top.feature}, ${figureOf(top.activation)}`}</span></li>`;
      })}</ol>`;
    },
  };
}
