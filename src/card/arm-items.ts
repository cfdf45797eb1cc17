import type { Answer, ServingModel } from "../client/index.js";
import type { Arm } from "./arms.js";
import { type FormatCheck, refuses } from "./data/prompts.js";
import type { ChoiceQuestion } from "./data/questions.js";
import type { ArmItems } from "./measure.js";
import type { Target } from "./target.js";

/** The data that every arm is measured on. */
export interface CardData {
  texts: readonly string[];
  questions: readonly ChoiceQuestion[];
  prompts: readonly string[];
  formats: readonly FormatCheck[];
}

export interface Measuring {
  serving: ServingModel;
  data: CardData;
  target: Target | undefined;
  answerTokens: number;
  seed: number;
  signal?: AbortSignal | undefined;
}

/** What an arm is compared with. */
export interface BaseAnswers {
  answers: readonly string[];
}

const atOnce = 4;
const speedTokens = 48;

/** Measures the answers of one arm. @param base the unedited model's answers, for every other arm */
export async function itemsOf(
  measuring: Measuring,
  arm: Arm,
  base: BaseAnswers | undefined,
): Promise<{ items: ArmItems; answers: string[] }> {
  const { data, target, signal } = measuring;
  const answers = await answersTo(measuring, arm, data.prompts);
  const formats = await answersTo(
    measuring,
    arm,
    data.formats.map(({ prompt }) => prompt),
  );
  const own = answers.map(({ text }) => text);
  const judged = target?.prompts === undefined ? answers : await answersTo(measuring, arm, target.prompts);
  const effect: number[] = [];
  for (const [index, answer] of judged.entries()) {
    if (target !== undefined) effect.push(await target.score(answer, index, signal));
  }
  return {
    answers: own,
    items: {
      ...(target !== undefined && { target: { values: effect } }),
      ...(base !== undefined && {
        changed_answers: { values: own.map((text, index) => Number(text !== base.answers[index])) },
      }),
      formats: {
        values: data.formats.map(({ holds }, index) => Number(holds((formats[index] as Answer).text))),
      },
      refusals: { values: own.map((text) => Number(refuses(text))) },
    },
  };
}

/** Greedy answers to prompts, several at once. */
async function answersTo(
  { serving, target, answerTokens, seed, signal }: Measuring,
  arm: Arm,
  prompts: readonly string[],
): Promise<Answer[]> {
  const tapline = { ...arm.tapline, ...(target?.watch && { watch: target.watch }) };
  const request = {
    ...{ temperature: 0, seed, max_tokens: answerTokens },
    chat_template_kwargs: { enable_thinking: false },
    ...(Object.keys(tapline).length > 0 && { tapline }),
  };
  const found = new Array<Answer>(prompts.length);
  let next = 0;
  const work = async () => {
    while (next < prompts.length) {
      const index = next++;
      const messages = [{ role: "user", content: prompts[index] as string }];
      const [answer] = await serving.answers(messages, { request, signal });
      found[index] = answer as Answer;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, prompts.length) }, work));
  return found;
}

/** Generated tokens per second of single requests, base and profile in turns. */
export async function speeds(
  { serving, seed, signal }: Measuring,
  arm: Arm,
): Promise<{ base: number[]; own: number[] }> {
  const once = async (tapline: Arm["tapline"]) => {
    const began = performance.now();
    const request = {
      ...{ temperature: 0, seed, max_tokens: speedTokens, ignore_eos: true, cache_prompt: true },
      ...(tapline && { tapline }),
    };
    await serving.answers("Once upon a time", { request, signal });
    return (speedTokens * 1000) / (performance.now() - began);
  };
  const [base, own] = [[] as number[], [] as number[]];
  await once(undefined);
  await once(arm.tapline);
  for (let round = 0; round < 7; round++) {
    base.push(await once(undefined));
    own.push(await once(arm.tapline));
  }
  return { base, own };
}
