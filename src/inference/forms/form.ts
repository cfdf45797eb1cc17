import { addTold } from "../../contracts/told.js";
import type { HttpError } from "../../http/index.js";

/** What of a token's probabilities answers tell. */
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
  /** What a live request is told. */
  tapline?: { tokens?: unknown[] } & Record<string, unknown>;
}

/**
 * What a request with a `tapline` object is told: of each token beside the next delta of a stream, and all of it as one
 * object at the end.
 */
export class Told {
  #told: { tokens?: unknown[]; finish_reason?: string } | undefined;
  #fresh: unknown[] = [];

  add({ tapline, finish_reason }: ChatChoice): void {
    if (tapline === undefined) return;
    for (const token of tapline.tokens ?? []) this.#fresh.push(token);
    this.#told = addTold(this.#told, tapline);
    if (finish_reason === "monitor") this.#told.finish_reason = finish_reason;
  }

  /** To be spread into a delta: the tokens that no delta before it told of. */
  delta(): { tapline?: { tokens: unknown[] } } {
    if (this.#fresh.length === 0) return {};
    const tokens = this.#fresh;
    this.#fresh = [];
    return { tapline: { tokens } };
  }

  /** To be spread into an answer; empty where nothing was told. */
  get field(): { tapline?: object } {
    return this.#told === undefined ? {} : { tapline: this.#told };
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

/** Another form of what the engine answers: another API over the same generation. One object for one request. */
export interface AnswerForm {
  /** Whether it holds one answer only. */
  readonly single?: true;
  /** A whole answer. */
  whole(answer: ChatAnswer): object;
  /** What one event of the engine's stream becomes: server-sent events, none where it waits for more. */
  event(answer: ChatAnswer): string;
  /** What ends the stream. */
  end(): string;
  /** What a fault in the middle of a stream becomes. */
  fault(sentence: string): string;
}

/** OpenAI's own form with other contents of an answer. */
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

/** Server-sent events with a name each, as OpenAI's Responses and Anthropic's Messages have them. */
export function namedEvent(event: { type: string; [field: string]: unknown }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Writes a part of the engine's stream, whole events, in another form. */
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

/** How an error's body looks in Anthropic's API. */
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
