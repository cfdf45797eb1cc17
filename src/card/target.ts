import { type Answer, type ServingModel, TaplineError } from "../client/index.js";
import type { CardTarget } from "../contracts/card.js";
import type { LiveWatch } from "../contracts/live.js";
import { UserError } from "../contracts/user-error.js";

/** A line of a judged set: a prompt, and a regular expression or a text that a good answer matches. */
export interface Judged {
  prompt: string;
  holds(answer: string): boolean;
}

/** How the effect that a profile is made for is measured. */
export interface Target {
  /** Readings that answers need. */
  watch?: LiveWatch;
  /** Prompts instead of the open ones. */
  prompts?: readonly string[];
  /** The effect in one answer. */
  score(answer: Answer, index: number, signal: AbortSignal | undefined): Promise<number>;
}

/** @param judged the lines of the judged set */
export function targetOf(serving: ServingModel, target: CardTarget, judged: readonly Judged[]): Target {
  if ("probe" in target) {
    return { watch: { probes: [target.probe] }, score: async (answer) => probeMean(answer, target.probe) };
  }
  if ("contains" in target) {
    const wanted = target.contains.toLowerCase();
    return { score: async ({ text }) => Number(text.toLowerCase().includes(wanted)) };
  }
  if ("judged" in target) {
    return {
      prompts: judged.map(({ prompt }) => prompt),
      score: async ({ text }, index) => Number((judged[index] as Judged).holds(text)),
    };
  }
  return { score: ({ text }, _, signal) => yes(serving, target.classify, text, signal) };
}

function probeMean({ tapline }: Answer, probe: string): number {
  const scores = (tapline?.tokens ?? []).flatMap(({ probes }) => probes?.[probe] ?? []);
  if (scores.length === 0) throw new TaplineError(`An answer has no scores of the probe ${probe}.`);
  return scores.reduce((sum, score) => sum + score, 0) / scores.length;
}

/** The unedited model's probability of yes against no to a question on an answer. */
async function yes(
  serving: ServingModel,
  question: string,
  answer: string,
  signal: AbortSignal | undefined,
): Promise<number> {
  const context = `Text: ${JSON.stringify(answer)}\nQuestion: ${question} Answer yes or no.\nAnswer:`;
  const logits = async (text: string) => {
    const { tensors } = await serving.forward({ sequences: [text], logits: "all" }, { signal });
    return {
      tokens: tensors.get("tokens")?.data as Float32Array,
      logits: tensors.get("logits")?.data as Float32Array,
    };
  };
  const [one, other] = [await logits(`${context} yes`), await logits(`${context} no`)];
  const place = one.tokens.findIndex((token, index) => token !== other.tokens[index]);
  if (place < 1) throw new TaplineError("The model's tokenizer gives yes and no the same tokens.");
  const width = one.logits.length / one.tokens.length;
  const row = one.logits.subarray((place - 1) * width, place * width);
  const difference =
    (row[one.tokens[place] as number] as number) - (row[other.tokens[place] as number] as number);
  return 1 / (1 + Math.exp(-difference));
}

/** Reads a judged set: JSON lines with `prompt` and `contains` or `matches`. @throws UserError */
export function judgedLines(text: string, file: string): Judged[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new UserError(`${file} has no lines.`);
  return lines.map((line, index) => {
    const where = `${file}, line ${index + 1}`;
    let found: { prompt?: unknown; contains?: unknown; matches?: unknown } | null;
    try {
      found = JSON.parse(line);
    } catch {
      throw new UserError(`${where} is not JSON.`);
    }
    const { prompt, contains, matches } = found ?? {};
    if (typeof prompt !== "string" || prompt.trim() === "")
      throw new UserError(`${where}: prompt must be a text.`);
    if (typeof contains === "string" && matches === undefined) {
      return { prompt, holds: (answer) => answer.toLowerCase().includes(contains.toLowerCase()) };
    }
    if (typeof matches !== "string" || contains !== undefined) {
      throw new UserError(`${where}: exactly one of contains and matches is required, a text.`);
    }
    let pattern: RegExp;
    try {
      pattern = new RegExp(matches, "iu");
    } catch (error) {
      throw new UserError(`${where}: matches is not a regular expression: ${(error as Error).message}.`);
    }
    return { prompt, holds: (answer) => pattern.test(answer) };
  });
}
