import { HttpError } from "../http/index.js";
import type { Services } from "./services.js";
import type { AnswerToken, Turn } from "./wire.js";

/** The prompt tokens of a turn, as the server tokenized them: without tokens carried over from another answer. */
export async function promptIds(services: Services, { request, kept }: Turn): Promise<number[]> {
  const { path, body } = request;
  if (Array.isArray(body.prompt)) return (body.prompt as number[]).slice(0, body.prompt.length - kept);
  const { messages, chat_template_kwargs } = body;
  return path === "/v1/completions"
    ? tokensOf(services, body.prompt as string)
    : tokensOf(services, { messages, chat_template_kwargs });
}

/** The server's tokens of a text, or of a chat in the template. */
export async function tokensOf(
  services: Services,
  given: string | { messages: unknown; chat_template_kwargs?: unknown },
  signal?: AbortSignal,
): Promise<number[]> {
  const post = <T>(to: string, body: object) =>
    services.http.json<T>(to, { method: "POST", body, ...(signal && { signal }) });
  const content =
    typeof given === "string" ? given : (await post<{ prompt: string }>("/apply-template", given)).prompt;
  const asked = { content, add_special: true, parse_special: true };
  return (await post<{ tokens: number[] }>("/tokenize", asked)).tokens;
}

/** The ids of answer tokens. @throws HttpError if the server did not report one */
export function idsOf(tokens: readonly AnswerToken[], purpose: string): number[] {
  return tokens.map(({ id }) => {
    if (id !== undefined) return id;
    throw new HttpError(
      409,
      `Some earlier tokens have no recorded id, so this answer cannot be ${purpose} here.`,
    );
  });
}

/** Refuses turns of another model, whose ids would be other tokens. @throws HttpError */
export function checkTokenizer({ model }: Turn, served: string | null): void {
  if (model === undefined || model === served) return;
  throw new HttpError(409, `This conversation was made with ${model}; ${served} uses a different tokenizer.`);
}

/** A place in a conversation: a token of an answer. */
export interface TokenPlace {
  turn: number;
  answer: number;
  token: number;
}

/**
 * Everything that the model had read when it had generated a token, including that token: the prompt in the chat template,
 * thinking and control tokens as well.
 * @throws HttpError
 */
export async function contextOf(
  services: Services,
  turns: readonly Turn[],
  { turn: at, answer: which, token }: TokenPlace,
): Promise<{ tokens: number[]; text: string }> {
  const turn = turns[at];
  const answer = turn?.answers[which];
  if (turn === undefined || answer === undefined) throw new HttpError(404, "This answer does not exist.");
  checkTokenizer(turn, services.server.model);
  if (token >= answer.tokens.length) {
    throw new HttpError(400, `The answer has ${answer.tokens.length} tokens; got ${token}.`);
  }
  const own = idsOf(answer.tokens.slice(0, token + 1), "inspected");
  const tokens = [...(await promptIds(services, turn)), ...own];
  const { content } = await services.http.json<{ content: string }>("/detokenize", {
    method: "POST",
    body: { tokens },
  });
  return { tokens, text: content };
}
