import type { ChatDelta, TokenReport } from "../../client/index.js";

export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

/** Asks a server: messages and further fields of the request in, the answer as it is generated out. */
export type Ask = (
  messages: ChatMessage[],
  request: Record<string, unknown>,
  signal: AbortSignal,
) => AsyncIterable<ChatDelta>;

export interface ChatSettings {
  system?: string;
  /** Whether answers think; the server's own default where it is not said. */
  thinking?: boolean;
  /** Fields of every request: model, max_tokens, temperature, … */
  request: Record<string, unknown>;
  /** A probe whose score is shown behind every token; the request asks for it. */
  watch?: string | undefined;
}

/** Where an answer goes while it arrives. */
export interface Sink {
  thinking(text: string, tokens: readonly TokenReport[]): void;
  answer(text: string, tokens: readonly TokenReport[]): void;
}

/** How a turn of the conversation ended. */
export type Turn =
  | { kind: "answered"; cutAtLimit: boolean }
  /** Stopped by the user; what had arrived is kept in the conversation, where anything had. */
  | { kind: "stopped"; kept: boolean };

const help = `/reset           forget the conversation
/system TEXT     set the system message; /system shows it, /system off removes it
/think on|off    let the model think or not, where its template can
/think auto      as the server likes
/help            this
/exit            end the chat; Ctrl-D does, too
Ctrl-C stops an answer. A line that ends with \\ goes on in the next.
// begins a message with a slash.`;

/** A conversation with a model: what was said, and the settings of what comes next. */
export class ChatSession {
  readonly #ask: Ask;
  readonly #request: Record<string, unknown>;
  readonly #messages: ChatMessage[] = [];
  #system: string | undefined;
  #thinking: boolean | undefined;
  readonly watch: string | undefined;

  constructor(ask: Ask, settings: ChatSettings) {
    this.#ask = ask;
    this.#request = settings.request;
    this.#system = settings.system;
    this.#thinking = settings.thinking;
    this.watch = settings.watch;
  }

  /**
   * Runs a line that is a command.
   * @returns what to tell, `exit`, or undefined when the line is a message
   */
  command(line: string): { tell: string } | "exit" | undefined {
    const [, name, rest = ""] = /^\/(?!\/)(\S*)\s*([\s\S]*)$/.exec(line) ?? [];
    switch (name) {
      case undefined:
        return undefined;
      case "reset":
        this.#messages.length = 0;
        return { tell: "The conversation is forgotten." };
      case "system":
        if (rest !== "") this.#system = rest === "off" ? undefined : rest;
        return {
          tell: this.#system === undefined ? "No system message." : `System message: ${this.#system}`,
        };
      case "think":
        return { tell: this.#think(rest) };
      case "help":
        return { tell: help };
      case "exit":
      case "quit":
        return "exit";
      default:
        return { tell: `There is no command /${name}; /help lists them. // begins a message with a slash.` };
    }
  }

  #think(word: string): string {
    const known: Record<string, boolean | undefined> = { on: true, off: false, auto: undefined };
    if (word !== "") {
      if (!Object.hasOwn(known, word)) return "It is /think on, /think off or /think auto.";
      this.#thinking = known[word];
    }
    if (this.#thinking === undefined) return "Thinking is as the server likes.";
    return `Thinking is ${this.#thinking ? "on" : "off"}, where the model's template can.`;
  }

  /**
   * Sends a message and passes the answer on. A turn that fails leaves the conversation as it was; of one that is
   * stopped, what has arrived stays.
   * @throws TaplineError, TimeoutError
   */
  async say(text: string, sink: Sink, signal: AbortSignal): Promise<Turn> {
    const asked: ChatMessage = { role: "user", content: text.startsWith("//") ? text.slice(1) : text };
    const system: ChatMessage[] =
      this.#system === undefined ? [] : [{ role: "system", content: this.#system }];
    const request =
      this.#thinking === undefined
        ? this.#request
        : { ...this.#request, chat_template_kwargs: { enable_thinking: this.#thinking } };
    let answer = "";
    let reason: string | null = null;
    try {
      for await (const delta of this.#ask([...system, ...this.#messages, asked], request, signal)) {
        if (delta.choice !== 0) continue;
        answer += delta.content;
        reason = delta.finishReason ?? reason;
        const tokens = delta.tapline?.tokens ?? [];
        // Tokens are told once; those of a chunk with both are the thinking's last and the answer's first.
        sink.thinking(delta.reasoning, tokens);
        sink.answer(delta.content, []);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      const kept = answer.trim() !== "";
      // Two questions in a row are more than many templates take: without an answer the question goes, too.
      if (kept) this.#messages.push(asked, { role: "assistant", content: answer });
      return { kind: "stopped", kept };
    }
    this.#messages.push(asked, { role: "assistant", content: answer });
    return { kind: "answered", cutAtLimit: reason === "length" };
  }
}
