import { type Card, type CardArm, type CardMeasureName, cardMeasures } from "../contracts/card.js";
import { profileId } from "../contracts/profile-name.js";
import type { Cell, Figure } from "../findings/figure.js";
import { drawFigure, drawingStyle, type Html, html, sheet } from "../report/index.js";
import { allFigures, type FigureCell } from "./all-figures.js";
import { armName } from "./arm-name.js";
import { cardFinding, measureWords, targetWords } from "./words.js";

const width = 900;

/** A card as one self-contained page without scripts. */
export function cardPage(card: Card): string {
  const { profile, model } = card;
  const { says, controls } = cardFinding(card);
  const title = profileId(model.id, profile.name);
  return sheet({
    title: `Card of ${title} · tapline`,
    heading: html`Effect and cost of <bdi>${title}</bdi>`,
    badge: "card",
    style: drawingStyle,
    content: html`<ul class="meta"><li>${model.architecture}, ${model.quantization}</li><li>${new Date(card.created * 1000).toISOString().slice(0, 10)}</li><li>${card.seconds.toFixed(0)} s</li></ul>
${profile.description !== "" && html`<p>${profile.description}</p>`}
<section class="lead"><p>${says}</p><p>${controls}</p></section>
${figuresOf(card).map(figureSection)}
${table(card)}
<section class="card"><h2>How it was measured</h2>
<p>${targetWords(card)} Intervals are 95 % bootstrap intervals over texts, questions, prompts or rounds; differences are paired with the unedited model on the same items. Random vectors have the norms of the profile's vectors, in random directions.</p>
${card.notes.map((note) => html`<p>${note}</p>`)}
<details><summary>Settings, hashes and the profile</summary><pre tabindex="0">${JSON.stringify({ model, profile, settings: card.settings, sha256: card.sha256 }, null, 2)}</pre></details></section>
`,
  });
}

function figureSection(figure: Figure): Html {
  return html`<figure id="${figure.id}"><figcaption><h2>${figure.title}</h2><p>${figure.description}</p></figcaption>
<div class="drawing">${drawFigure(figure, width)}</div></figure>
`;
}

/** Effect against cost first, then each measure by strength. */
export function figuresOf(card: Card): Figure[] {
  const figures = cardMeasures
    .filter(
      (name) =>
        name !== "tokens_per_second" && card.arms.some(({ measures }) => measures[name] !== undefined),
    )
    .map((name) => byStrength(card, name));
  const traded = effectAgainstCost(card);
  return traded === undefined ? figures : [traded, ...figures];
}

function effectAgainstCost({ arms }: Card): Figure | undefined {
  const rows = arms.flatMap((arm): Cell[][] => {
    const [effect, cost] = [arm.measures.target, arm.measures.cross_entropy];
    if (effect === undefined || cost === undefined || arm.kind === "zero") return [];
    return [[series(arm), cost.value, effect.value, effect.low, effect.high]];
  });
  const names = new Set(rows.map(([name]) => name));
  if (!names.has("profile")) return undefined;
  return {
    id: "effect-against-cost",
    title: "Effect against cost",
    description:
      "Each dot is one strength: the target effect, and the cross-entropy of held-out texts at that strength. Up and to the left is better.",
    chart: {
      ...{ kind: "lines", x: "cost", y: "effect", series: "series", dots: true, emphasis: "profile" },
      ...{ xAxis: "cross-entropy of held-out texts (nats per token)", yAxis: "target effect" },
      interval: { low: "low", high: "high" },
    },
    columns: columnsOf(["series", "cost", "effect", "low", "high"]),
    rows,
    details: rows.map(String),
    table: { head: [], rows: [] },
  };
}

function byStrength({ arms }: Card, name: CardMeasureName): Figure {
  const rows = arms.flatMap((arm): Cell[][] => {
    const found = arm.measures[name];
    if (found === undefined || arm.kind === "zero") return [];
    return [[series(arm), arm.factor, found.value, found.low, found.high]];
  });
  const { name: title, what } = measureWords[name];
  return {
    id: name.replaceAll("_", "-"),
    title,
    description: `${what.charAt(0).toUpperCase()}${what.slice(1)}, by strength as a multiple of the profile's.`,
    chart: {
      ...{ kind: "lines", x: "factor", y: "value", series: "series", dots: true, emphasis: "profile" },
      ...{ xAxis: "strength, × the profile's", yAxis: title },
      ...(rows.every(([, , value]) => value === 0) && { yDomain: [0, 1] as [number, number] }),
      interval: { low: "low", high: "high" },
    },
    columns: columnsOf(["series", "factor", "value", "low", "high"]),
    rows,
    details: rows.map(String),
    table: { head: [], rows: [] },
  };
}

const columnsOf = (names: string[]) => names.map((name) => ({ name, label: name }));

/** The unedited model is the profile's curve at strength 0. */
function series({ kind, seed }: CardArm): string {
  return kind === "random" ? `random vector ${seed}` : "profile";
}

function table({ arms }: Card): Html {
  const names = cardMeasures.filter((name) => arms.some(({ measures }) => measures[name] !== undefined));
  return allFigures({
    ...{ title: "All figures", corner: "Setting", columns: names.map((name) => measureWords[name].name) },
    rows: arms.map((arm) => ({ name: armName(arm), cells: names.map((name) => cell(arm, name)) })),
  });
}

function cell({ measures }: CardArm, name: CardMeasureName): FigureCell {
  const found = measures[name];
  if (found === undefined) return undefined;
  const { text, change } = measureWords[name];
  const below = [`${text(found.low)} to ${text(found.high)}`];
  if (found.change !== undefined) {
    const { value, low, high } = found.change;
    below.push(`${change(value)} (${change(low)} to ${change(high)})`);
  }
  return { value: text(found.value), below };
}
