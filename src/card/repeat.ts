import { type Card, type CardArm, type CardMeasureName, cardMeasures } from "../contracts/card.js";
import { armName } from "./arm-name.js";
import { measureWords } from "./words.js";

/** One figure of a card, measured again. */
export interface Repeated {
  what: string;
  low: number;
  high: number;
  /** Null if it was not measured again. */
  seen: number | null;
  held: boolean;
}

/** Speeds depend on the machine and its load. */
const compared = cardMeasures.filter((name) => name !== "tokens_per_second");

/** Every figure of a card beside the same one of another, which holds if it is within the first one's interval. */
export function compareCards(card: Pick<Card, "arms">, again: Pick<Card, "arms">): Repeated[] {
  return card.arms.flatMap((arm) => {
    const other = again.arms.find((one) => isSame(one, arm));
    return compared.flatMap((name) => repeated(arm, other, name));
  });
}

function isSame(a: CardArm, b: CardArm): boolean {
  return a.kind === b.kind && a.factor === b.factor && a.seed === b.seed;
}

function repeated(arm: CardArm, other: CardArm | undefined, name: CardMeasureName): Repeated[] {
  const found = arm.measures[name];
  if (found === undefined) return [];
  const { low, high } = found;
  const seen = other?.measures[name]?.value ?? null;
  // Rounding may move a figure whose interval is a point.
  const room = 1e-6 + 1e-4 * Math.abs(found.value);
  const held = seen !== null && seen >= low - room && seen <= high + room;
  return [{ what: `${measureWords[name].name}, ${armName(arm)}`, low, high, seen, held }];
}
