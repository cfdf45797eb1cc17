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

/** One event of a streamed answer. */
export interface ChatDelta {
  /** Index of the answer; 0 unless several answers or a pair were requested. */
  choice: number;
  content: string;
  reasoning: string;
  finishReason: string | null;
  /** Probabilities of each token, if `logprobs` requested them. */
  probabilities?: TokenProbability[];
  /** Readings and interventions, for requests with a `tapline` object. */
  tapline?: LiveReport;
}

/** A generated token's probability and its alternatives. */
export interface TokenProbability {
  token_id?: number;
  token: string;
  probability: number;
  candidates: Array<{ token_id?: number; token: string; probability: number }>;
}

/** The `tapline` object of an answer. */
export interface LiveReport {
  /** Generated tokens, each with the readings at the position that predicted it. */
  tokens?: TokenReport[];
  /** Watched tokens of the prompt. */
  prompt?: TokenReport[];
  interventions?: Array<Record<string, unknown> & { rows: number; note?: string }>;
  capture?: { id: string; rows: number; layers: number[]; note?: string };
  pair_of?: number;
}

export interface TokenReport {
  index: number;
  /** Both absent for a stream's final token without text (end of turn). */
  token_id?: number;
  token?: string;
  norms?: Record<string, number>;
  probes?: Record<string, number | null>;
  projections?: Record<string, number | null>;
  /** By layer, the most probable tokens of the logit lens. */
  lens?: Record<string, LensCandidate[]>;
  /** The same by saved lens. */
  lenses?: Record<string, Record<string, LensCandidate[]>>;
  /** By dictionary, the most active features; null if the layer did not compute this position. */
  features?: Record<string, Array<{ feature: number; activation: number }> | null>;
}

/** A token that a lens reads. */
export interface LensCandidate {
  token_id: number;
  token: string;
  probability: number;
}

/** A conversation for the chat template, or a raw text (or its tokens) to continue. */
export type Question = string | number[] | Static<typeof ChatMessage>[];

/** One complete answer. */
export interface Answer {
  /** 0 unless several answers or a pair were requested. */
  choice: number;
  text: string;
  reasoning: string;
  finishReason: string | null;
  tapline?: LiveReport;
}

/** Sends a request and yields the answer as it is generated. Leaving the loop cancels it. */
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
      const hasData = tapline !== undefined || probabilities.length > 0;
      if (content === "" && reasoning === "" && finish_reason == null && !hasData) continue;
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
    throw new TaplineError("An event of the stream is not JSON.", { cause });
  }
}

/** The complete answers of a stream, in order of their index. */
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
    tapline?: LiveReport;
    logprobs?: StreamLogprobs | null;
  }>;
}

/** The format of chats, or the older format of completions. */
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
