import type { BudgetReading, CheckAlarm } from "../contracts/budget.js";
import { startsOf } from "./measure.js";

type Texts = (token: number) => Promise<string>;
type Tokens = readonly (readonly number[])[];

/** The first token that differs of each prompt that two models tokenize differently. */
export async function tokenAlarms(reference: Tokens, tokens: Tokens, textOf: Texts): Promise<CheckAlarm[]> {
  const alarms: CheckAlarm[] = [];
  for (const [prompt, expected] of reference.entries()) {
    const own = tokens[prompt] as readonly number[];
    const length = Math.max(expected.length, own.length);
    const token = Array.from({ length }, (_, at) => at).find((at) => expected[at] !== own[at]);
    if (token === undefined) continue;
    alarms.push({
      ...{ what: "tokens", profile: null, prompt, token },
      text: await textAt(expected, token, textOf),
      got: await textAt(own, token, textOf),
      tokens: length - token,
    });
  }
  return alarms;
}

/** Empty after the last token. */
async function textAt(tokens: readonly number[], at: number, textOf: Texts): Promise<string> {
  const token = tokens[at];
  return token === undefined ? "" : textOf(token);
}

/** A model under one profile, [tokens of all prompts, readings]. */
interface Compared {
  profile: string | null;
  deviations: Float64Array;
}

/**
 * For each prompt on which a reading exceeds its threshold: the first such token, the first block that exceeds there, and the
 * other reading that exceeds most.
 */
export async function readingAlarms(
  readings: readonly BudgetReading[],
  prompts: Tokens,
  compared: readonly Compared[],
  textOf: Texts,
): Promise<CheckAlarm[]> {
  const starts = startsOf(prompts.map((tokens) => ({ tokens: [...tokens] })));
  const alarms: CheckAlarm[] = [];
  for (const { profile, deviations } of compared) {
    for (const [prompt, tokens] of prompts.entries()) {
      const rows = tokens.map((_, at) => {
        const row = (starts[prompt] as number) + at;
        return excessOf(readings, deviations.subarray(row * readings.length, (row + 1) * readings.length));
      });
      const token = rows.findIndex(({ block, reading }) => block !== null || reading !== null);
      if (token < 0) continue;
      const begins = startOf(rows);
      const withReading = rows.findIndex(({ reading }) => reading !== null);
      const reading = rows[withReading]?.reading ?? null;
      alarms.push({
        ...{ what: "readings", profile, prompt, token, text: await textAt(tokens, token, textOf) },
        block: rows[token]?.block ?? null,
        reading: reading && { ...reading, token: withReading },
        ...(begins && { starts: begins }),
        tokens: rows.filter((row) => row.block !== null || row.reading !== null).length,
      });
    }
  }
  return alarms;
}

function startOf(rows: readonly { start: number | null }[]): CheckAlarm["starts"] {
  const token = rows.findIndex(({ start }) => start !== null);
  return token < 0 ? undefined : { token, block: rows[token]?.start as number };
}

/**
 * The first block above its threshold, the other reading that is furthest above its own, and the first block above noise.
 */
function excessOf(readings: readonly BudgetReading[], deviations: Float64Array) {
  let block: CheckAlarm["block"] = null;
  let reading: Omit<NonNullable<CheckAlarm["reading"]>, "token"> | null = null;
  let start: number | null = null;
  let most = 1;
  for (const [index, { kind, name, layer, noise, threshold }] of readings.entries()) {
    const value = deviations[index] as number;
    if (kind === "block" && value > noise) start ??= layer;
    if (value <= threshold) continue;
    const deviation = Number.isFinite(value) ? value : null;
    if (kind === "block") block ??= { layer: layer as number, deviation, threshold };
    else if (value / threshold > most) {
      most = value / threshold;
      reading = { kind, name, layer, deviation, threshold };
    }
  }
  return { block, reading, start };
}
