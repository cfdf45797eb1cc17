import { mergeStreamEvent } from "../../contracts/stream-event.js";
import type { HttpError } from "../../http/index.js";

/** A token's log-probability in an answer. */
export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes?: number[] | null;
  top_logprobs?: { token: string; logprob: number; bytes?: number[] | null }[];
}

export interface ToolCallDelta {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

export interface ChatChoice {
  index: number;
  finish_reason: string | null;
  /** The stop text that ended the answer. */
  stop_reason?: string;
  text?: string;
  logprobs?: { content?: TokenLogprob[] } | null;
  message?: {
    content?: string | null;
    reasoning_content?: string;
    tool_calls?: Omit<ToolCallDelta, "index">[];
  };
  delta?: {
    role?: string;
    content?: string | null;
    reasoning_content?: string;
    tool_calls?: ToolCallDelta[];
  };
  /** Results of the request's edits and readings. */
  tapline?: { tokens?: unknown[] } & Record<string, unknown>;
}

/** Collects the `tapline` results of a request: per token with the next delta of a stream, and in full at the end. */
export class LiveResults {
  #results: { tokens?: unknown[]; finish_reason?: string } | undefined;
  #fresh: unknown[] = [];

  add({ tapline, finish_reason }: ChatChoice): void {
    if (tapline === undefined) return;
    for (const token of tapline.tokens ?? []) this.#fresh.push(token);
    this.#results = mergeStreamEvent(this.#results, tapline);
    if (finish_reason === "monitor") this.#results.finish_reason = finish_reason;
  }

  /** To be spread into a delta: the tokens not yet sent. */
  delta(): { tapline?: { tokens: unknown[] } } {
    if (this.#fresh.length === 0) return {};
    const tokens = this.#fresh;
    this.#fresh = [];
    return { tapline: { tokens } };
  }

  /** To be spread into an answer; empty without results. */
  get field(): { tapline?: object } {
    return this.#results === undefined ? {} : { tapline: this.#results };
  }
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number };
}

/** The engine's answer, or one event of its stream. */
export interface ChatAnswer {
  id: string;
  created: number;
  model: string;
  choices: ChatChoice[];
  usage?: Usage;
  timings?: unknown;
  error?: { message: string };
}

/** Converts the engine's answers to the format of another API. One object per request. */
export interface AnswerForm {
  /** Whether it supports only one answer. */
  readonly single?: true;
  /** A whole answer. */
  whole(answer: ChatAnswer): object;
  /** Converts one event of the engine's stream to server-sent events, possibly none. */
  event(answer: ChatAnswer): string;
  /** The end of the stream. */
  end(): string;
  /** An error in the middle of a stream. */
  fault(sentence: string): string;
}

/** OpenAI's format with modified contents. */
export abstract class ChangedForm implements AnswerForm {
  abstract whole(answer: ChatAnswer): object;

  event(answer: ChatAnswer): string {
    return `data: ${JSON.stringify(this.whole(answer))}\n\n`;
  }

  end(): string {
    return "data: [DONE]\n\n";
  }

  fault(sentence: string): string {
    const error = { message: sentence, type: "server_error", param: null, code: null };
    return `data: ${JSON.stringify({ error })}\n\n`;
  }
}

/** A named server-sent event, as in OpenAI's Responses and Anthropic's Messages. */
export function namedEvent(event: { type: string; [field: string]: unknown }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Converts a part of the engine's stream, consisting of whole events, to another format. */
export function translate(form: AnswerForm, data: string): string {
  let text = "";
  for (const line of data.split("\n")) {
    if (!line.startsWith("data: ")) continue;
    if (line === "data: [DONE]") {
      text += form.end();
      continue;
    }
    const answer = JSON.parse(line.slice(6)) as ChatAnswer;
    text += answer.error ? form.fault(answer.error.message) : form.event(answer);
  }
  return text;
}

/** An error body in Anthropic's format. */
export function messagesErrorBody(error: HttpError): object {
  const types: Record<number, string> = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
  };
  const type = types[error.status] ?? (error.status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message: error.message } };
}
