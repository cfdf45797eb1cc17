import { TestRandom } from "../../test/support/random.js";
import { isClear } from "../figures.js";

/** The measurements of one round. */
export interface Round {
  /** Tokens a second of all streams together. */
  speed: number;
  /** Milliseconds from sending a plain request to its first token, the mean of them; absent where nobody looks. */
  first?: number;
  /** Processor time of a token, in milliseconds; absent where nobody looks. */
  processor?: number;
}

export interface Variant {
  run: () => Promise<Round>;
  /** The goal for the median of its speed over the base's. */
  least?: number;
  /** Rounds where it has no goal; those with one go on until their median is clear of it. */
  rounds?: number;
}

/** A variant's rounds, each over the mean of the two base rounds around it. */
export interface Beside {
  speed: number[];
  /** Milliseconds later, and as a ratio. */
  later: number[];
  first: number[];
  processor: number[];
}

const leastRounds = 5;

/**
 * Measures variants against a base. Every round of a variant stands between two of the base, and is compared with their
 * mean, so that a machine that slows down or wakes up meanwhile favours neither; the order of variants is drawn again each
 * time. Those with a goal continue until twice the standard error of their median is less than its distance from the goal,
 * or until the time is over.
 */
export async function besideBase(
  base: () => Promise<Round>,
  variants: Readonly<Record<string, Variant>>,
  { seconds, quick }: { seconds: number; quick: boolean },
): Promise<Map<string, Beside>> {
  const found = new Map(
    Object.keys(variants).map((name) => [name, { speed: [], later: [], first: [], processor: [] } as Beside]),
  );
  const random = new TestRandom(1);
  const end = performance.now() + 1000 * seconds;
  const wants = ([name, { least, rounds = leastRounds }]: [string, Variant]) => {
    const { speed } = found.get(name) as Beside;
    if (quick) return speed.length < 1;
    if (least === undefined) return speed.length < rounds;
    if (speed.length < leastRounds) return true;
    return performance.now() < end && !isClear(speed, least);
  };
  let before = await base();
  for (;;) {
    const next = Object.entries(variants).filter(wants);
    if (next.length === 0) return found;
    for (let last = next.length - 1; last > 0; last--) {
      const other = random.below(last + 1);
      [next[last], next[other]] = [next[other] as (typeof next)[0], next[last] as (typeof next)[0]];
    }
    for (const [name, { run }] of next) {
      const round = await run();
      const after = await base();
      const kept = found.get(name) as Beside;
      kept.speed.push((2 * round.speed) / (before.speed + after.speed));
      if (round.first !== undefined && before.first !== undefined && after.first !== undefined) {
        const usual = (before.first + after.first) / 2;
        kept.later.push(round.first - usual);
        kept.first.push(round.first / usual);
      }
      if (round.processor !== undefined && before.processor !== undefined && after.processor !== undefined) {
        kept.processor.push((2 * round.processor) / (before.processor + after.processor));
      }
      before = after;
    }
  }
}
