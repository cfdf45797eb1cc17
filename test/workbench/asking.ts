/** Questions to a workbench's service and their answers, for tests without a page. */
import * as assert from "uvu/assert";
import type { AskRequest } from "../../src/contracts/workbench.js";
import type { HttpError } from "../../src/http/index.js";
import type { AnswerToken, Turn } from "../../src/workbench/wire.js";
import { until } from "../support/until.js";
import { type Answers, openParts, type Parts } from "./parts.js";

const opened: Parts[] = [];

/** Ends what a test opened. */
export async function closeAll(): Promise<void> {
  for (const one of opened.splice(0)) await one.close();
}

export const chatPath = "POST /v1/chat/completions";
export const rawPath = "POST /v1/completions";

export async function open(answers: Answers = {}): Promise<Parts> {
  const parts = await openParts(answers);
  opened.push(parts);
  return parts;
}

export const ended = async (
  { conversations }: Parts,
  { conversation, turn }: { conversation: string; turn: number },
) => {
  const found = () => conversations.get(conversation).turns[turn] as Turn;
  await until(() => found().answers.every(({ state }) => state !== "running"));
  await conversations.settled();
  return found();
};

/** Asks, waits for the answer and gives its question as it was kept. */
export async function ask(parts: Parts, asked: Partial<AskRequest>, id?: string) {
  const place = await parts.asker.ask(id, { text: "Hi", ...asked });
  return { ...place, kept: await ended(parts, place) };
}

export const refusal = (work: Promise<unknown>): Promise<[number, string]> =>
  work.then(
    () => assert.unreachable("It should have been refused.") as never,
    (error: HttpError) => [error.status, error.message],
  );

export const token = (id: number, text: string, more: object = {}) => ({
  token_id: id,
  token: text,
  ...more,
});
/** An event of a chat's answer with these tokens. */
export const said = (content: string, tokens: object[], more: object = {}) => ({
  index: 0,
  delta: { content },
  tapline: { tokens },
  ...more,
});

export const thoughts = (tokens: AnswerToken[]) =>
  tokens.map(({ text, thinking }) => (thinking ? `(${text})` : text)).join(" ");
