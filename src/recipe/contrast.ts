import type { FeaturesResult } from "../contracts/index.js";
import { UserError } from "../contracts/index.js";
import type { Contrast } from "../contracts/recipe.js";
import { mean } from "../findings/numbers.js";
import { auroc } from "../findings/probe.js";

/** A feature's activations in two groups of texts, at one token per text. */
export interface Contrasted {
  feature: number;
  /** Mean activation, counting inactive as 0. */
  mean: { texts: number; against: number };
  /** Share of texts in which it is active. */
  active: { texts: number; against: number };
  /** Share of pairs with one text from each group in which the first has the larger activation; ties count half. */
  auroc: number;
}

/**
 * The activations of the feature that a step names or picks, from another step's reading.
 * @param top maximum number of features per token in the reading
 * @throws UserError if the reading does not contain the requested texts or tokens
 */
export function contrasted(
  asked: Omit<Contrast, "feature"> & { feature?: number | undefined },
  { texts }: Pick<FeaturesResult, "texts">,
  top: number,
): Contrasted {
  const groups = {
    texts: groupOf(texts, asked.texts, asked, top),
    against: groupOf(texts, asked.against, asked, top),
  };
  const feature = asked.feature ?? mostApart(groups.texts, groups.against);
  const values = (group: readonly Activations[]) => group.map((own) => own.get(feature) ?? 0);
  const [one, other] = [values(groups.texts), values(groups.against)];
  const active = (group: readonly number[]) => group.filter((value) => value > 0).length / group.length;
  return {
    feature,
    mean: { texts: mean(one), against: mean(other) },
    active: { texts: active(one), against: active(other) },
    auroc: auroc(one, other),
  };
}

type Activations = ReadonlyMap<number, number>;

function groupOf(
  texts: FeaturesResult["texts"],
  range: string,
  { step, token = -1 }: Pick<Contrast, "step" | "token">,
  top: number,
): Activations[] {
  const [from, to] = range.split(":").map((part) => (part === "" ? undefined : Number(part)));
  const group = texts.slice(from, to);
  if (group.length === 0)
    throw new UserError(`Step ${step} has ${texts.length} texts; the range ${range} selects none.`);
  return group.map(({ top: tokens }) => {
    const found = tokens.at(token);
    if (found === undefined) {
      throw new UserError(`A text of step ${step} has ${tokens.length} tokens; there is no token ${token}.`);
    }
    // Further active features may be missing from the list.
    if (found.length >= top) {
      throw new UserError(
        `Step ${step} lists ${top} features per token, and all are active: a contrast needs a larger top.`,
      );
    }
    return new Map(found.map(({ feature, activation }) => [feature, activation]));
  });
}

/** The feature whose mean in the first group exceeds that in the second by the most. */
function mostApart(texts: readonly Activations[], against: readonly Activations[]): number {
  const sums = new Map<number, number>();
  for (const [group, sign] of [
    [texts, 1 / texts.length],
    [against, -1 / against.length],
  ] as const) {
    for (const own of group) {
      for (const [feature, value] of own) sums.set(feature, (sums.get(feature) ?? 0) + sign * value);
    }
  }
  const [best] = [...sums].sort(([a, x], [b, y]) => y - x || a - b);
  if (best === undefined || best[1] <= 0) {
    throw new UserError("No feature is more active in the first group of texts than in the second.");
  }
  return best[0];
}
