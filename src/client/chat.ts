import type { Static } from "typebox";
import type { ChatMessage } from "../contracts/chat.js";
import { mergeStreamEvent } from "../contracts/stream-event.js";
import { TaplineError } from "./errors.js";
import { events } from "./event-stream.js";
import type { CallOptions, Transport } from "./transport.js";

export interface ChatOptions extends CallOptions {
  /** Any further field of the request: max_tokens, temperature, chat_template_kwargs, … */
  request?: Record<string, unknown>;
}

/** What arrived with one event of a streamed answer. */
export interface ChatDelta {
  /** Which answer it belongs to: 0 unless several were asked for, or a pair. */
  choice: number;
  content: string;
  reasoning: string;
  finishReason: string | null;
  /** Of each token, where `logprobs` asked for them. */
  probabilities?: TokenProbability[];
  /** What a request with a `tapline` object is told of its tokens and interventions. */
  tapline?: LiveTold;
}

/** How probable a generated token was, and what else could have stood there. */
export interface TokenProbability {
  token_id?: number;
  token: string;
  probability: number;
  candidates: Array<{ token_id?: number; token: string; probability: number }>;
}

/** What the answer to a `tapline` object holds. */
export interface LiveTold {
  /** Generated tokens, each with what was watched in the row that chose it. */
  tokens?: ToldToken[];
  /** Watched tokens of the prompt. */
  prompt?: ToldToken[];
  interventions?: Array<Record<string, unknown> & { rows: number; note?: string }>;
  capture?: { id: string; rows: number; layers: number[]; note?: string };
  pair_of?: number;
}

export interface ToldToken {
  index: number;
  /** Both absent of a stream's last token where it is no text: the end of the turn. */
  token_id?: number;
  token?: string;
  norms?: Record<string, number>;
  probes?: Record<string, number | null>;
  projections?: Record<string, number | null>;
  lens?: Record<string, Array<{ token_id: number; token: string; probability: number }>>;
}

/** What is asked: a conversation in the model's chat template, or a raw text, or its tokens, that it goes on with. */
export type Question = string | number[] | Static<typeof ChatMessage>[];

/** One answer, whole. */
export interface Answer {
  /** 0 unless several were asked for, or a pair. */
  choice: number;
  text: string;
  reasoning: string;
  finishReason: string | null;
  tapline?: LiveTold;
}

/** Asks a server and gives the answer as it is generated. Leaving the loop ends it. */
export async function* streamAnswer(
  http: Transport,
  question: Question,
  { signal, request = {} }: ChatOptions = {},
): AsyncGenerator<ChatDelta, void> {
  const raw = typeof question === "string" || typeof question[0] === "number";
  const response = await http.open(raw ? "/v1/completions" : "/v1/chat/completions", {
    signal,
    method: "POST",
    body: { ...request, ...(raw ? { prompt: question } : { messages: question }), stream: true },
  });
  for await (const data of events(http.chunks(response, signal))) {
    if (data === "[DONE]") return;
    const event = parse(data);
    if (event.error !== undefined) throw new TaplineError(event.error.message);
    for (const { index = 0, delta, text, finish_reason, tapline, logprobs } of event.choices ?? []) {
      const [content, reasoning] = [delta?.content ?? text ?? "", delta?.reasoning_content ?? ""];
      const probabilities = probabilitiesOf(logprobs);
      const told = tapline !== undefined || probabilities.length > 0;
      if (content === "" && reasoning === "" && finish_reason == null && !told) continue;
      yield {
        choice: index,
        content,
        reasoning,
        finishReason: finish_reason ?? null,
        ...(probabilities.length > 0 && { probabilities }),
        ...(tapline !== undefined && { tapline }),
      };
    }
  }
  throw new TaplineError("The answer ended before it was complete.");
}

function parse(data: string): StreamEvent {
  try {
    return JSON.parse(data) as StreamEvent;
  } catch (cause) {
    throw new TaplineError("An event of the answer is not JSON.", { cause });
  }
}

/** The answers of a stream, each whole, in the order of their choices. */
export async function wholeAnswers(deltas: AsyncIterable<ChatDelta>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for await (const { choice, content, reasoning, finishReason, tapline } of deltas) {
    answers[choice] ??= { choice, text: "", reasoning: "", finishReason: null };
    const answer = answers[choice] as Answer;
    answer.text += content;
    answer.reasoning += reasoning;
    answer.finishReason = finishReason ?? answer.finishReason;
    if (tapline !== undefined) answer.tapline = mergeStreamEvent(answer.tapline, tapline);
  }
  return answers.filter((answer) => answer !== undefined);
}

interface StreamEvent {
  error?: { message: string };
  choices?: Array<{
    delta?: { content?: string | null; reasoning_content?: string | null };
    text?: string;
    finish_reason?: string | null;
    index?: number;
    tapline?: LiveTold;
    logprobs?: StreamLogprobs | null;
  }>;
}

/** As chats have it, or as completions had it first. */
interface StreamLogprobs {
  content?: Array<{ id?: number; token: string; logprob: number; top_logprobs?: StreamCandidate[] }> | null;
  tokens?: string[];
  token_logprobs?: Array<number | null>;
  top_logprobs?: Array<Record<string, number> | null>;
}

interface StreamCandidate {
  id?: number;
  token: string;
  logprob: number;
}

function probabilitiesOf(logprobs: StreamLogprobs | null | undefined): TokenProbability[] {
  const one = ({ id, token, logprob }: StreamCandidate) => ({
    ...(id !== undefined && { token_id: id }),
    token,
    probability: Math.exp(logprob),
  });
  if (logprobs?.content != null) {
    return logprobs.content.map((entry) => ({
      ...one(entry),
      candidates: (entry.top_logprobs ?? []).map(one),
    }));
  }
  return (logprobs?.tokens ?? []).map((token, index) => ({
    token,
    probability: Math.exp(logprobs?.token_logprobs?.[index] ?? Number.NaN),
    candidates: Object.entries(logprobs?.top_logprobs?.[index] ?? {}).map(([token, logprob]) =>
      one({ token, logprob }),
    ),
  }));
}
