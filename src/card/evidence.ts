import type { Card } from "../contracts/card.js";
import { cardMeasures } from "../contracts/card.js";
import { profileId } from "../contracts/profile-name.js";
import { type Evidence, Gatherer } from "../study/index.js";
import { publicName } from "../text/words.js";
import { armName } from "./arm-name.js";
import { cardFinding, measureWords, targetWords } from "./words.js";

/** A card as entries of a study: the profile and settings, the finding and all figures, and card.json itself. */
export function cardEvidence(given: Card): Evidence {
  const gatherer = new Gatherer();
  const card = withoutFolder(given, gatherer);
  const { profile, model, settings } = card;
  const id = profileId(model.id, profile.name);
  const asked = gatherer.add({
    kind: "prompt",
    title: `card: ${id}`,
    ...(profile.description !== "" && { prompt: profile.description }),
    settings: {
      ...{ temperature: 0, seed: settings.seed, maxTokens: settings.answer_tokens, thinking: "off" },
    },
    note: [
      targetWords(card),
      `Strengths: ${settings.strengths.join(", ")} times the profile's; ${settings.random} random vectors of the same norm each.`,
      "The profile:",
      `\`\`\`json\n${JSON.stringify(profile)}\n\`\`\``,
    ].join("\n\n"),
  });
  const { says, controls } = cardFinding(card);
  const result = gatherer.add({
    parent: asked,
    kind: "result",
    title: `Effect and cost of ${id}`,
    answer: [says, controls, figuresTable(card), ...card.notes].join("\n\n"),
  });
  gatherer.addText(result, "card.json", JSON.stringify(card), `The card of ${id} as JSON`);
  const { entries, spare, omissions } = gatherer;
  return {
    model: { name: model.id, revision: model.fingerprint, runtime: `tapline ${card.tapline}` },
    method: `Effect and cost of the profile ${profile.name} (tapline card): without it, at strength zero, at each strength, and with random vectors of the same norm, on the same texts, questions and prompts.`,
    ...{ entries, spare, omissions },
  };
}

/** The path of a judged set is of the author's machine. */
function withoutFolder(card: Card, gatherer: Gatherer): Card {
  const { target } = card.settings;
  if (target === null || !("judged" in target) || publicName(target.judged) === target.judged) return card;
  gatherer.omissions.push(
    "The folder of the card's judged set on the author's machine. The card's hash is that of the full card.",
  );
  return { ...card, settings: { ...card.settings, target: { judged: publicName(target.judged) } } };
}

/** Every figure with its interval, as a Markdown table. */
function figuresTable({ arms }: Card): string {
  const names = cardMeasures.filter((name) => arms.some(({ measures }) => measures[name] !== undefined));
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(["Setting", ...names.map((name) => measureWords[name].name)]),
    line(["---", ...names.map(() => "---")]),
    ...arms.map((arm) =>
      line([
        armName(arm),
        ...names.map((name) => {
          const found = arm.measures[name];
          if (found === undefined) return "–";
          const { text } = measureWords[name];
          return `${text(found.value)} (${text(found.low)} to ${text(found.high)})`;
        }),
      ]),
    ),
  ].join("\n");
}
