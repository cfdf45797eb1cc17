import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Card, type CardArm, type CardMeasureName, cardMeasures } from "../contracts/card.js";
import { UserError } from "../contracts/user-error.js";
import { writeDurably } from "../files/durable.js";
import { FormatError } from "../formats/format-error.js";
import {
  checkAlike,
  interleaved,
  isPartFile,
  itemsOf,
  type PartHead,
  parsePart,
  partFile,
  partFiles,
  partText,
} from "../formats/parts.js";
import type { CardData } from "./arm-items.js";
import type { Arm } from "./arms.js";
import { type ArmItems, type Items, measured } from "./measure.js";
import { signed } from "./signed.js";
import type { Target } from "./target.js";

const format = "tapline card part 1";

/** What a card has besides its measures. */
export type CardFrame = Omit<Card, "sha256" | "arms" | "created" | "seconds">;

/** A card's values per item: of every n-th text, question, prompt and answer format. */
export interface CardItems {
  frame: CardFrame;
  arms: (Pick<Arm, "kind" | "factor" | "seed"> & { items: ArmItems })[];
  /** Tokens per second, measured with the first part: of the unedited model and of the arm of this index. */
  speeds?: { arm: number; base: number[]; own: number[] };
  created: number;
  seconds: number;
}

type CardPart = PartHead & CardItems;

/** The data of a part, and its target, whose own prompts are divided like the others. */
export function dataOf<T extends CardData>(
  data: T,
  target: Target | undefined,
  part: readonly [number, number],
): { data: T; target: Target | undefined } {
  const own = <E>(list: readonly E[]) => itemsOf(list.length, part).map((item) => list[item] as E);
  const { texts, questions, prompts, formats } = data;
  const divided = {
    texts: own(texts),
    questions: own(questions),
    prompts: own(prompts),
    formats: own(formats),
  };
  if (target?.prompts === undefined) return { data: { ...data, ...divided }, target };
  const numbers = itemsOf(target.prompts.length, part);
  return {
    data: { ...data, ...divided },
    target: {
      ...target,
      prompts: own(target.prompts),
      score: (answer, index, signal) => target.score(answer, numbers[index] as number, signal),
    },
  };
}

/** Writes a part's file into the folder of all parts. @returns its name @throws UserError */
export async function writeCardPart(
  folder: string,
  part: readonly [number, number],
  { frame, ...items }: CardItems,
): Promise<string> {
  try {
    await mkdir(folder, { recursive: true });
    await writeDurably(
      join(folder, partFile(part)),
      partText(format, part, { ...frame }, { frame, ...items }),
    );
    return partFile(part);
  } catch (error) {
    throw new UserError(`Cannot write to ${folder} (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Whether the parts in a folder are those of a card. */
export async function hasCardParts(folder: string): Promise<boolean> {
  const name = (await readdir(folder).catch((): string[] => [])).find(isPartFile);
  if (name === undefined) return false;
  return (await readFile(join(folder, name), "utf8")).startsWith(`{"format":${JSON.stringify(format)}`);
}

/**
 * The card of all parts: intervals are computed from the values of all items, so they are those of one server.
 * @throws UserError if a part is missing, or belongs to another card
 */
export async function mergeCard(folder: string): Promise<{ card: Card; parts: number }> {
  const names = await readdir(folder);
  try {
    const files = partFiles(folder, names);
    const parts: CardPart[] = [];
    for (const name of files) {
      const text = await readFile(join(folder, name), "utf8");
      try {
        parts.push(parsePart<CardPart>(text, format));
      } catch (error) {
        throw error instanceof FormatError
          ? new FormatError(`${join(folder, name)} is not a part of a card: ${error.message}.`)
          : error;
      }
    }
    checkAlike(parts, "card");
    return { card: cardOf(parts), parts: parts.length };
  } catch (error) {
    throw error instanceof FormatError ? new UserError(error.message) : error;
  }
}

/** The card of all parts in order; of one that has everything, too. */
export function cardOf(parts: readonly CardItems[]): Card {
  const [{ frame, arms: plan, speeds }] = parts as [CardItems];
  const { seed } = frame.settings;
  const all = plan.map((_, arm) => together(parts.map(({ arms }) => arms[arm]?.items ?? {})));
  const arms = plan.map(({ items: _, ...arm }, index): CardArm => {
    const base = index === 0 ? undefined : all[0];
    return { ...arm, measures: measuresOf(all[index] as ArmItems, base, seed) };
  });
  if (speeds !== undefined) {
    const base = { values: speeds.base };
    (arms[0] as CardArm).measures.tokens_per_second = measured(base, undefined, seed);
    (arms[speeds.arm] as CardArm).measures.tokens_per_second = measured({ values: speeds.own }, base, seed);
  }
  return signed({
    ...frame,
    arms,
    created: Math.max(...parts.map(({ created }) => created)),
    seconds: parts.reduce((sum, { seconds }) => sum + seconds, 0),
  });
}

function measuresOf(items: ArmItems, base: ArmItems | undefined, seed: number): CardArm["measures"] {
  const measures: CardArm["measures"] = {};
  for (const name of cardMeasures) {
    const found = items[name];
    if (found !== undefined) measures[name] = measured(found, compared(name, base), seed);
  }
  return measures;
}

/** Divergence and changed answers are already comparisons. */
function compared(name: CardMeasureName, base: ArmItems | undefined) {
  return name === "divergence" || name === "changed_answers" ? undefined : base?.[name];
}

/** An arm's values of all parts, in the order of the data. */
function together(parts: readonly ArmItems[]): ArmItems {
  const items: ArmItems = {};
  for (const name of cardMeasures) {
    const own = parts.map((part) => part[name]);
    if (own.every((each) => each === undefined)) continue;
    const each = (of: (one: Items) => readonly number[] | undefined) =>
      interleaved(own.map((one) => (one === undefined ? [] : (of(one) ?? []))));
    const weighted = own.some((one) => one?.weights !== undefined);
    items[name] = {
      values: each(({ values }) => values),
      ...(weighted && { weights: each((one) => one.weights) }),
    };
  }
  return items;
}
