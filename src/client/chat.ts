import type { Static } from "typebox";
import type { ChatMessage } from "../contracts/chat.js";
import { TaplineError } from "./errors.js";
import { events } from "./event-stream.js";
import type { CallOptions, Transport } from "./transport.js";

export interface ChatOptions extends CallOptions {
  /** Any further field of the request: max_tokens, temperature, chat_template_kwargs, … */
  request?: Record<string, unknown>;
}

/** What arrived with one event of a streamed answer. */
export interface ChatDelta {
  content: string;
  reasoning: string;
  finishReason: string | null;
}

/** Asks a server in its model's chat template and gives the answer as it is generated. Leaving the loop ends it. */
export async function* streamChat(
  http: Transport,
  messages: Static<typeof ChatMessage>[],
  { signal, request = {} }: ChatOptions = {},
): AsyncGenerator<ChatDelta, void> {
  const response = await http.open("/v1/chat/completions", {
    signal,
    method: "POST",
    body: { ...request, messages, stream: true },
  });
  try {
    for await (const data of events(http.chunks(response, signal))) {
      if (data === "[DONE]") return;
      const event = JSON.parse(data) as StreamEvent;
      if (event.error !== undefined) throw new TaplineError(event.error.message);
      for (const { delta, finish_reason } of event.choices ?? []) {
        const [content, reasoning] = [delta?.content ?? "", delta?.reasoning_content ?? ""];
        if (content !== "" || reasoning !== "" || finish_reason != null) {
          yield { content, reasoning, finishReason: finish_reason ?? null };
        }
      }
    }
    throw new TaplineError("The answer ended before it was complete.");
  } finally {
    response.destroy();
  }
}

interface StreamEvent {
  error?: { message: string };
  choices?: Array<{
    delta?: { content?: string | null; reasoning_content?: string | null };
    finish_reason?: string | null;
  }>;
}
