import type { CompareResult } from "../contracts/index.js";
import { type Intervention, interventionOf, type Needs } from "../contracts/interventions.js";
import { visible } from "../text/visible.js";
import { listed } from "../text/words.js";
import { type Finding, points, sentence, share } from "./finding.js";
import { mean, meanOfKnown } from "./numbers.js";
import { bestSpan, threshold } from "./shapes.js";

export type Trial = CompareResult["trials"][number];

/** One prompt's trials, one per strength. */
export interface PromptTrials {
  prompt: string;
  trials: Trial[];
}

/** A point of a dose-response curve. */
export interface Dose {
  strength: number;
  probability: number;
}

/** The trials prompt by prompt, in the order of the request. */
export function byPrompt(trials: readonly Trial[]): PromptTrials[] {
  const groups = new Map<string, Trial[]>();
  for (const trial of trials) {
    const group = groups.get(trial.prompt);
    if (group === undefined) groups.set(trial.prompt, [trial]);
    else if (!group.some(({ strength }) => strength === trial.strength)) group.push(trial);
  }
  return [...groups].map(([prompt, own]) => ({ prompt, trials: own }));
}

/** The strengths, ascending. */
export function strengthsOf(prompts: readonly PromptTrials[]): number[] {
  const tried = prompts.flatMap(({ trials }) => trials.map(({ strength }) => strength));
  return [...new Set(tried)].sort((a, b) => a - b);
}

/** One prompt's trials as a curve. */
export function promptCurve({ trials }: PromptTrials): Trial[] {
  return trials.toSorted((a, b) => a.strength - b.strength);
}

/** The mean probability of the target tokens over the prompts. */
export function meanAt(prompts: readonly PromptTrials[], strength: number): number {
  return mean(trialsAt(prompts, strength).map(({ probability }) => probability));
}

/** The mean effect of a norm-matched random vector over the prompts; empty without this control. */
export function controlCurve(prompts: readonly PromptTrials[]): Dose[] {
  return strengthsOf(prompts).flatMap((strength) => {
    const probability = meanOfKnown(trialsAt(prompts, strength).map(({ control }) => control?.probability));
    return probability === undefined ? [] : [{ strength, probability }];
  });
}

/** The norm of the change relative to the activation norm. */
export function changeShare({ length, row_length }: NonNullable<Trial["change"]>): number {
  return row_length > 0 ? length / row_length : 0;
}

function trialsAt(prompts: readonly PromptTrials[], at: number): Trial[] {
  return prompts.flatMap(({ trials }) => trials.filter(({ strength }) => strength === at));
}

/** The smallest change of a probability that counts as an effect. */
export const leastEffect = 0.01;

type Compared = Pick<CompareResult, "intervention" | "trials" | "layers">;

/** From which strength an intervention changes the target's probability, and whether a random vector does the same. */
export function doseFinding({ intervention, trials, layers }: Compared): Finding {
  const [first] = trials;
  if (first === undefined) return { says: "There are no trials.", controls: "" };
  const { doing, neutral, needs, noun } = interventionOf(intervention);
  const prompts = byPrompt(trials);
  const targets = new Set(trials.map(({ target_token }) => target_token));
  const one = targets.size === 1 ? `“${visible(first.target_token)}”` : "the target tokens";
  const whose =
    prompts.length === 1
      ? `the probability of ${one}`
      : `the mean probability of ${one} over ${prompts.length} prompts`;
  const where =
    layers === undefined || layers.length === 1 ? `layer ${first.layer}` : `layers ${layers.join(", ")}`;
  const doses = strengthsOf(prompts);
  const baseline = mean(prompts.map(({ trials: [one] }) => one?.baseline_probability ?? Number.NaN));
  const change = (strength: number) => meanAt(prompts, strength) - baseline;
  const [below, above] = [
    doses.filter((one) => one < neutral).toReversed(),
    doses.filter((one) => one > neutral),
  ];
  const size = (side: readonly number[]) => Math.max(0, ...side.map((one) => Math.abs(change(one))));
  const [side, other] = size(below) > size(above) ? [below, above] : [above, below];
  const random = new Map(
    controlCurve(prompts).map(({ strength, probability }) => [strength, Math.abs(probability - baseline)]),
  );
  const what = `${doing} ${where}`;
  if (size(side) < leastEffect) {
    const changes = doses.flatMap((strength) => random.get(strength) ?? []);
    return {
      says: `${what} hardly changes ${whose}: at most ${points(size(side))} at the strengths tried, from ${share(baseline)}.`,
      controls:
        needs === undefined || changes.length === 0
          ? withoutRandom({ needs, noun })
          : `${randomly} at most ${points(Math.max(...changes))}.`,
    };
  }
  const most = side.reduce((a, b) => (Math.abs(change(b)) > Math.abs(change(a)) ? b : a));
  const effects = side.map((strength) => change(strength) * Math.sign(change(most)));
  const start = threshold(effects, leastEffect);
  const span = start === undefined ? bestSpan(effects) : { from: start, to: effects.length - 1 };
  const within = side.slice(span.from, span.to + 1);
  const [from, to] = [within[0] as number, within.at(-1) as number];
  const lost = start === undefined ? side.at(-1) : undefined;
  const at = (strength: number) => share(meanAt(prompts, strength));
  const reached =
    from === to
      ? `${at(from)} at strength ${from}`
      : at(from) === at(to)
        ? `${at(from)} ${lost === undefined ? `from strength ${from} on` : `at strengths ${from} to ${to}`}`
        : `${at(from)} at strength ${from} and ${at(to)} at ${to}`;
  return {
    says:
      `${what} ${change(most) > 0 ? "raises" : "lowers"} ${whose} from ${share(baseline)} to ${reached}` +
      (lost === undefined ? "" : `; at strength ${lost} it is ${at(lost)}`) +
      otherWay(other, baseline, (strength) => meanAt(prompts, strength)) +
      ".",
    controls:
      needs === undefined || within.every((strength) => !random.has(strength))
        ? withoutRandom({ needs, noun })
        : comparedWithRandom(within, needs, (strength) => Math.abs(change(strength)), random),
  };
}

const randomly = "A norm-matched random vector changes it by";

/** What strengths on the other side of the neutral one do, if they do anything. */
function otherWay(
  side: readonly number[],
  baseline: number,
  probability: (strength: number) => number,
): string {
  const [first, ...more] = side;
  if (first === undefined) return "";
  const moved = (strength: number) => Math.abs(probability(strength) - baseline);
  const most = more.reduce((a, b) => (moved(b) > moved(a) ? b : a), first);
  return moved(most) < leastEffect ? "" : `; at strength ${most} it is ${share(probability(most))}`;
}

/** Why no random vector was compared. */
function withoutRandom({ needs, noun }: Pick<Intervention, "needs" | "noun">): string {
  return needs === undefined
    ? `${sentence(noun)} has no random control: compare other layers before you conclude anything about this one.`
    : "No random vector was tried, so it is open whether any change of this size would do the same.";
}

/** What norm-matched random vectors do at the strengths that have the effect. */
function comparedWithRandom(
  strengths: readonly number[],
  needs: Needs,
  effect: (strength: number) => number,
  random: ReadonlyMap<number, number>,
): string {
  const same = (strength: number) => 2 * (random.get(strength) ?? 0) >= effect(strength);
  const changes = (some: readonly number[]) => points(...some.flatMap((one) => random.get(one) ?? []));
  const [own, shared] = [strengths.filter((one) => !same(one)), strengths.filter(same)];
  const at = (some: readonly number[]) =>
    `at ${some.length === 1 ? "strength" : "strengths"} ${listed(some.map(String))}`;
  if (shared.length === 0) {
    return `${randomly} ${changes(own)} there, so the effect comes from ${operands[needs]}, not from the size of the change.`;
  }
  if (own.length === 0) {
    return `${randomly} ${changes(shared)} there, so the effect may be that of any change of this size, not of ${operands[needs]}.`;
  }
  return (
    `${randomly} ${changes(own)} ${at(own)}, so the effect there comes from ${operands[needs]}; ` +
    `${at(shared)} it does as much (${changes(shared)}).`
  );
}

const operands = { donor: "the donor's activation", direction: "the direction", tokens: "these two tokens" };
