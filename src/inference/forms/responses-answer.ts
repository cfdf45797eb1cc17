import { randomUUID } from "node:crypto";
import type { ResponsesRequest } from "../../contracts/responses.js";
import {
  type AnswerForm,
  type ChatAnswer,
  LiveResults,
  namedEvent,
  type TokenLogprob,
  type Usage,
} from "./form.js";

const newId = (prefix: string) => `${prefix}_${randomUUID().replaceAll("-", "")}`;

type Item =
  | {
      type: "reasoning";
      id: string;
      status: string;
      summary: never[];
      content: { type: "reasoning_text"; text: string }[];
    }
  | {
      type: "message";
      id: string;
      status: string;
      role: "assistant";
      content: { type: "output_text"; annotations: never[]; logprobs: TokenLogprob[]; text: string }[];
    }
  | { type: "function_call"; id: string; status: string; call_id: string; name: string; arguments: string };

/** OpenAI's Responses: items that are opened, filled and closed in sequence, with numbered events. */
export class ResponsesForm implements AnswerForm {
  readonly single = true;
  readonly #id = newId("resp");
  readonly #createdAt = Math.floor(Date.now() / 1000);
  readonly #output: Item[] = [];
  #sequence = 0;
  #open: Item | undefined;
  /** Which of the chat's tool calls is open. */
  #tool = -1;
  #started = false;
  #finish: string | null = null;
  #usage: Usage | undefined;
  readonly #live = new LiveResults();

  constructor(
    private readonly request: ResponsesRequest,
    private readonly model: string,
  ) {}

  whole(answer: ChatAnswer): object {
    this.#take(answer);
    this.#close(this.#status());
    return this.#response(this.#status());
  }

  event(answer: ChatAnswer): string {
    return `${this.#begin()}${this.#take(answer)}`;
  }

  end(): string {
    const status = this.#status();
    const closing = `${this.#begin()}${this.#close(status)}`;
    return closing + this.#emit(`response.${status}`, { response: this.#response(status) });
  }

  fault(sentence: string): string {
    const error = { code: "server_error", message: sentence };
    return (
      this.#begin() + this.#emit("response.failed", { response: { ...this.#response("failed"), error } })
    );
  }

  #begin(): string {
    if (this.#started) return "";
    this.#started = true;
    const response = this.#response("in_progress");
    return this.#emit("response.created", { response }) + this.#emit("response.in_progress", { response });
  }

  #status(): "completed" | "incomplete" {
    return this.#finish === "length" ? "incomplete" : "completed";
  }

  /** Adds an answer or a part of one. @returns the resulting events */
  #take({ choices, usage }: ChatAnswer): string {
    if (usage !== undefined) this.#usage = usage;
    const choice = choices[0];
    if (choice === undefined) return "";
    if (choice.finish_reason) this.#finish = choice.finish_reason;
    this.#live.add(choice);
    const added = choice.delta ?? choice.message ?? {};
    let events = "";
    if (added.reasoning_content) events += this.#reason(added.reasoning_content);
    const logprobs = choice.logprobs?.content ?? [];
    if (added.content) events += this.#say(added.content, logprobs);
    added.tool_calls?.forEach((call, place) => {
      const index = "index" in call ? (call.index as number) : place;
      events += this.#call(index, call.id, call.function?.name, call.function?.arguments ?? "");
    });
    return events;
  }

  #reason(delta: string): string {
    let events = "";
    if (this.#open?.type !== "reasoning") {
      events += this.#add({
        type: "reasoning",
        id: newId("rs"),
        status: "in_progress",
        summary: [],
        content: [],
      });
      events += this.#addPart({ type: "reasoning_text", text: "" });
    }
    const item = this.#open as Item & { type: "reasoning" };
    (item.content[0] as { text: string }).text += delta;
    return (
      events +
      this.#emit("response.reasoning_text.delta", { ...this.#place(0), delta, ...this.#live.delta() })
    );
  }

  #say(delta: string, logprobs: TokenLogprob[]): string {
    let events = "";
    if (this.#open?.type !== "message") {
      const message = {
        type: "message",
        id: newId("msg"),
        status: "in_progress",
        role: "assistant",
      } as const;
      events += this.#add({ ...message, content: [] });
      events += this.#addPart({ type: "output_text", annotations: [], logprobs: [], text: "" });
    }
    const part = (this.#open as Item & { type: "message" }).content[0];
    if (part !== undefined) {
      part.text += delta;
      part.logprobs.push(...logprobs);
    }
    return (
      events +
      this.#emit("response.output_text.delta", { ...this.#place(0), delta, logprobs, ...this.#live.delta() })
    );
  }

  #call(index: number, id: string | undefined, name: string | undefined, delta: string): string {
    let events = "";
    if (this.#open?.type !== "function_call" || this.#tool !== index) {
      const call = { type: "function_call", id: newId("fc"), status: "in_progress" } as const;
      events += this.#add({ ...call, call_id: id || newId("call"), name: name ?? "", arguments: "" });
      this.#tool = index;
    }
    const item = this.#open as Item & { type: "function_call" };
    item.arguments += delta;
    if (delta === "") return events;
    return (
      events +
      this.#emit("response.function_call_arguments.delta", { ...this.#place(), delta, ...this.#live.delta() })
    );
  }

  #add(item: Item): string {
    const events = this.#close();
    this.#open = item;
    this.#output.push(item);
    return events + this.#emit("response.output_item.added", { output_index: this.#output.length - 1, item });
  }

  #addPart(part: (Item & { type: "message" | "reasoning" })["content"][number]): string {
    (this.#open as { content: unknown[] }).content.push(part);
    // Sent in its current state: empty.
    return this.#emit("response.content_part.added", { ...this.#place(0), part });
  }

  /** @param status how it ended; only the last item of an answer may be incomplete */
  #close(status: "completed" | "incomplete" = "completed"): string {
    const item = this.#open;
    if (item === undefined) return "";
    item.status = status;
    let events = "";
    if (item.type === "function_call") {
      const { name, arguments: text } = item;
      events += this.#emit("response.function_call_arguments.done", {
        ...this.#place(),
        name,
        arguments: text,
      });
    } else {
      const part = item.content[0];
      const { text } = part as { text: string };
      events +=
        part?.type === "output_text"
          ? this.#emit("response.output_text.done", { ...this.#place(0), text, logprobs: part.logprobs })
          : this.#emit("response.reasoning_text.done", { ...this.#place(0), text });
      events += this.#emit("response.content_part.done", { ...this.#place(0), part });
    }
    events += this.#emit("response.output_item.done", { output_index: this.#output.length - 1, item });
    this.#open = undefined;
    return events;
  }

  #place(content?: number): object {
    const place = { item_id: this.#open?.id, output_index: this.#output.length - 1 };
    return content === undefined ? place : { ...place, content_index: content };
  }

  #emit(type: string, fields: object): string {
    return namedEvent({ type, sequence_number: this.#sequence++, ...fields });
  }

  #response(status: "in_progress" | "completed" | "incomplete" | "failed"): object {
    const request = this.request;
    const usage = this.#usage;
    return {
      id: this.#id,
      object: "response",
      created_at: this.#createdAt,
      status,
      completed_at: status === "completed" ? Math.floor(Date.now() / 1000) : null,
      error: null,
      incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
      instructions: request.instructions ?? null,
      max_output_tokens: request.max_output_tokens ?? null,
      metadata: request.metadata ?? {},
      model: this.model,
      output: this.#output,
      parallel_tool_calls: request.parallel_tool_calls ?? true,
      previous_response_id: null,
      reasoning: { effort: request.reasoning?.effort ?? null, summary: null },
      store: false,
      temperature: request.temperature ?? null,
      text: { format: request.text?.format ?? { type: "text" } },
      tool_choice: request.tool_choice ?? "auto",
      tools: request.tools ?? [],
      top_p: request.top_p ?? null,
      truncation: "disabled",
      ...this.#live.field,
      usage:
        usage === undefined
          ? null
          : {
              input_tokens: usage.prompt_tokens,
              input_tokens_details: { cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0 },
              output_tokens: usage.completion_tokens,
              // The number of reasoning tokens is known only if there was no reasoning.
              ...(!this.#output.some(({ type }) => type === "reasoning") && {
                output_tokens_details: { reasoning_tokens: 0 },
              }),
              total_tokens: usage.total_tokens,
            },
    };
  }
}
