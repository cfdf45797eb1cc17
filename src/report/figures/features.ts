import type { FeaturesResult } from "../../contracts/index.js";
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
    parts: [strongest(result), ...result.texts.slice(0, textsShown).map(tokens)],
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
