import type { Card, CardArm, CardMeasure, CardMeasureName } from "../contracts/card.js";
import type { Finding } from "../findings/finding.js";

interface Measure {
  /** As a table's heading. */
  name: string;
  what: string;
  text(value: number): string;
  /** A difference, with its sign. */
  change(value: number): string;
}

const percent = (value: number) => `${(100 * value).toFixed(1)} %`;
const signed = (value: number, digits: number) =>
  `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
const points = (value: number) => `${signed(100 * value, 1)} points`;
const share = { text: percent, change: points };
const nats = {
  text: (value: number) => `${value.toFixed(3)} nats`,
  change: (value: number) => `${signed(value, 3)} nats`,
};

export const measureWords: Record<CardMeasureName, Measure> = {
  target: { name: "Target effect", what: "what the profile is for", ...share },
  cross_entropy: { name: "Cross-entropy", what: "per token of held-out texts; lower is better", ...nats },
  divergence: {
    name: "KL divergence",
    what: "from the unedited model, per token of held-out texts",
    ...nats,
  },
  changed_answers: {
    name: "Changed answers",
    what: "greedy answers that differ from the unedited model's",
    ...share,
  },
  choices: { name: "Multiple choice", what: "questions answered correctly", ...share },
  formats: { name: "Format", what: "instructions about the answer's form that are followed", ...share },
  refusals: { name: "Refusals", what: "of harmless prompts", ...share },
  tokens_per_second: {
    name: "Speed",
    what: "generated tokens per second of single requests",
    text: (value) => `${value.toFixed(1)} tokens/s`,
    change: (value) => `${signed(value, 1)} tokens/s`,
  },
};

/** What the target measures, in words. */
export function targetWords({ settings: { target } }: Pick<Card, "settings">): string {
  if (target === null) return "No target was given.";
  if ("probe" in target) return `Mean score of the probe ${target.probe} over the answers' tokens.`;
  if ("contains" in target) return `Share of answers that contain “${target.contains}”.`;
  if ("judged" in target) return `Share of answers that match their line of ${target.judged}.`;
  return `The unedited model's probability of yes to “${target.classify}” about each answer.`;
}

/** The target as a noun. */
function targetNoun({ settings: { target } }: Pick<Card, "settings">): string {
  if (target === null) return "the target";
  if ("probe" in target) return `the mean score of the probe ${target.probe}`;
  if ("contains" in target) return `the share of answers with “${target.contains}”`;
  if ("judged" in target) return "the share of answers that match the judged set";
  return `the probability of yes to “${target.classify}”`;
}

/** The arm of the profile as saved, or else its strongest one. */
export function mainArm({ arms }: Pick<Card, "arms">): CardArm | undefined {
  const own = arms.filter(({ kind }) => kind === "profile");
  return own.find(({ factor }) => factor === 1) ?? own.at(-1);
}

/** Whether a change's interval excludes zero. */
export function isChange({ change }: CardMeasure): boolean {
  return change !== undefined && (change.low > 0 || change.high < 0);
}

/** What the profile does and costs in one sentence, and what the controls allow in another. */
export function cardFinding(card: Pick<Card, "arms" | "profile" | "settings">): Finding {
  const arm = mainArm(card);
  const [base] = card.arms;
  if (arm === undefined || base === undefined) return { says: "Nothing was measured.", controls: "" };
  const { target, cross_entropy: entropy, choices } = arm.measures;
  const parts = [
    target === undefined ? "" : costText(targetNoun(card), target, measureWords.target),
    entropy === undefined ? "" : costText("cross-entropy", entropy, measureWords.cross_entropy),
    choices === undefined ? "" : costText("the share of correct choices", choices, measureWords.choices),
  ].filter((part) => part !== "");
  return { says: `With ${card.profile.name}, ${parts.join("; ")}.`, controls: controlText(card, arm) };
}

function costText(what: string, measure: CardMeasure, words: Measure): string {
  const { change, value } = measure;
  if (change === undefined) return `${what} is ${words.text(value)}`;
  const before = words.text(value - change.value);
  return isChange(measure)
    ? `${what} ${change.value > 0 ? "rises" : "falls"} from ${before} to ${words.text(value)}`
    : `${what} does not measurably change (${before})`;
}

function controlText(card: Pick<Card, "arms" | "settings">, { factor, measures }: CardArm): string {
  const random = card.arms.filter((one) => one.kind === "random" && one.factor === factor);
  if (random.length === 0) return "There is no random control, so any change of this size might do the same.";
  const how = random.length === 1 ? "A random vector" : `${random.length} random vectors`;
  const name = measures.target === undefined ? "cross_entropy" : "target";
  const own = measures[name];
  const changes = random.flatMap((one) => one.measures[name]?.change?.value ?? []);
  if (own?.change === undefined || changes.length === 0) return `${how} of the same norm were not measured.`;
  const what = name === "target" ? targetNoun(card) : "cross-entropy";
  const most = changes.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
  const done = `${how} of the same norm ${random.length === 1 ? "changes" : "change"} ${what} by at most ${measureWords[name].change(most)}`;
  if (!isChange(own)) return `${done}.`;
  return 2 * Math.abs(most) >= Math.abs(own.change.value)
    ? `${done}, so this may be the effect of any change of this size.`
    : `${done}, so the effect comes from the direction.`;
}
