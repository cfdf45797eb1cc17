import { randomUUID } from "node:crypto";
import {
  type AnswerForm,
  type ChatAnswer,
  type ChatChoice,
  LiveResults,
  namedEvent,
  type Usage,
} from "./form.js";

type Block =
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "text"; text: string; citations: null }
  | { type: "tool_use"; id: string; name: string; input: unknown };

/** Anthropic's Messages: blocks that are opened, filled and closed in sequence. */
export class MessagesForm implements AnswerForm {
  readonly single = true;
  readonly #blocks: Block[] = [];
  #open = false;
  /** Which of the chat's tool calls is open, and its arguments so far. */
  #tool = -1;
  #input = "";
  #started = false;
  #finish: Pick<ChatChoice, "finish_reason" | "stop_reason"> = { finish_reason: null };
  #usage: Usage | undefined;
  readonly #live = new LiveResults();

  /**
   * @param stops the request's stop sequences
   * @param promptTokens for the first event of a stream, before the engine has counted
   */
  constructor(
    private readonly model: string,
    private readonly stops: readonly string[],
    private readonly promptTokens = 0,
  ) {}

  whole(answer: ChatAnswer): object {
    this.#take(answer);
    this.#close();
    return { ...this.#message(), ...this.#ending(), usage: this.#counts(), ...this.#live.field };
  }

  event(answer: ChatAnswer): string {
    return this.#begin() + this.#take(answer);
  }

  end(): string {
    return (
      this.#begin() +
      this.#close() +
      namedEvent({
        type: "message_delta",
        ...{ delta: this.#ending(), usage: this.#counts(), ...this.#live.field },
      }) +
      namedEvent({ type: "message_stop" })
    );
  }

  fault(sentence: string): string {
    return namedEvent({ type: "error", error: { type: "api_error", message: sentence } });
  }

  #begin(): string {
    if (this.#started) return "";
    this.#started = true;
    const message = { ...this.#message(), stop_reason: null, stop_sequence: null, usage: this.#counts() };
    return namedEvent({ type: "message_start", message });
  }

  #take({ choices, usage }: ChatAnswer): string {
    if (usage !== undefined) this.#usage = usage;
    const choice = choices[0];
    if (choice === undefined) return "";
    if (choice.finish_reason) this.#finish = choice;
    this.#live.add(choice);
    const added = choice.delta ?? choice.message ?? {};
    let events = "";
    if (added.reasoning_content) {
      events += this.#fill(
        "thinking",
        () => ({ type: "thinking", thinking: "", signature: "" }),
        (block) => {
          block.thinking += added.reasoning_content;
        },
        { type: "thinking_delta", thinking: added.reasoning_content },
      );
    }
    if (added.content) {
      events += this.#fill(
        "text",
        () => ({ type: "text", text: "", citations: null }),
        (block) => {
          block.text += added.content;
        },
        { type: "text_delta", text: added.content },
      );
    }
    added.tool_calls?.forEach((call, place) => {
      const index = "index" in call ? (call.index as number) : place;
      const partial = call.function?.arguments ?? "";
      if (this.#tool !== index) events += this.#close();
      events += this.#fill(
        "tool_use",
        () => {
          this.#tool = index;
          this.#input = "";
          const id = call.id || `toolu_${randomUUID().replaceAll("-", "")}`;
          return { type: "tool_use", id, name: call.function?.name ?? "", input: {} };
        },
        () => {
          this.#input += partial;
        },
        { type: "input_json_delta", partial_json: partial },
      );
    });
    return events;
  }

  #fill<T extends Block["type"]>(
    type: T,
    make: () => Block & { type: T },
    fill: (block: Block & { type: T }) => void,
    delta: object,
  ): string {
    let events = "";
    if (!this.#open || this.#blocks.at(-1)?.type !== type) {
      events += this.#close();
      const block = make();
      this.#blocks.push(block);
      this.#open = true;
      events += this.#emit("content_block_start", { content_block: block });
    }
    fill(this.#blocks.at(-1) as Block & { type: T });
    return events + this.#emit("content_block_delta", { delta, ...this.#live.delta() });
  }

  #close(): string {
    const block = this.#blocks.at(-1);
    if (!this.#open || block === undefined) return "";
    this.#open = false;
    let events = "";
    if (block.type === "tool_use") block.input = parsed(this.#input);
    if (block.type === "thinking") {
      events += this.#emit("content_block_delta", { delta: { type: "signature_delta", signature: "" } });
    }
    return events + this.#emit("content_block_stop", {});
  }

  #emit(type: string, fields: object): string {
    return namedEvent({ type, index: this.#blocks.length - 1, ...fields });
  }

  #message(): object {
    this.#id ??= `msg_${randomUUID().replaceAll("-", "")}`;
    return { id: this.#id, type: "message", role: "assistant", model: this.model, content: this.#blocks };
  }
  #id: string | undefined;

  #ending(): { stop_reason: string; stop_sequence: string | null } {
    const { finish_reason: finish, stop_reason: text } = this.#finish;
    if (text !== undefined && this.stops.includes(text)) {
      return { stop_reason: "stop_sequence", stop_sequence: text };
    }
    const reasons: Record<string, string> = { length: "max_tokens", tool_calls: "tool_use" };
    return { stop_reason: reasons[finish ?? ""] ?? "end_turn", stop_sequence: null };
  }

  #counts(): object {
    const {
      prompt_tokens = this.promptTokens,
      completion_tokens = 0,
      prompt_tokens_details,
    } = this.#usage ?? {};
    const cached = prompt_tokens_details?.cached_tokens ?? 0;
    return {
      input_tokens: prompt_tokens - cached,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: cached,
      output_tokens: completion_tokens,
    };
  }
}

/** Truncated arguments are not valid JSON; Anthropic's answers then have an empty object. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    return {};
  }
}
