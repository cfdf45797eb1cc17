import type { LivePost } from "../contracts/recipe.js";
import { bodiesOf } from "./live.js";

/** A generated token in an answer. */
export interface AnswerToken {
  token?: string;
  probes?: Record<string, number | null>;
}

/** A question and a serving model's answer. */
export interface Exchange {
  asked: string;
  answer: string;
  finish: string;
  tokens: AnswerToken[];
  interventions: Record<string, unknown>[];
}

interface Choice {
  text?: string;
  message?: { content?: string | null };
  finish_reason?: string | null;
  tapline?: { tokens?: AnswerToken[]; interventions?: Record<string, unknown>[] };
}

/** Questions and answers of a step's requests, one per choice. */
export function exchangesOf(step: LivePost, responses: readonly unknown[]): Exchange[] {
  return bodiesOf(step).flatMap((body, index) => {
    const { choices = [] } = (responses[index] ?? {}) as { choices?: Choice[] };
    return choices.map(({ text, message, finish_reason: finish, tapline = {} }) => ({
      asked: promptOf(body),
      answer: text ?? message?.content ?? "",
      finish: finish ?? "",
      tokens: tapline.tokens ?? [],
      interventions: tapline.interventions ?? [],
    }));
  });
}

function promptOf({ prompt, messages }: Record<string, unknown>): string {
  if (!Array.isArray(messages)) return typeof prompt === "string" ? prompt : JSON.stringify(prompt);
  const said = messages.map(({ role, content }) => {
    const text = typeof content === "string" ? content : JSON.stringify(content);
    return messages.length === 1 ? text : `${role}: ${text}`;
  });
  return said.join("\n");
}
