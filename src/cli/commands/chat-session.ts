import type { ChatDelta, TokenReport } from "../../client/index.js";

export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

/** Sends messages and further request fields to a server, and streams the answer. */
export type Ask = (
  messages: ChatMessage[],
  request: Record<string, unknown>,
  signal: AbortSignal,
) => AsyncIterable<ChatDelta>;

export interface ChatSettings {
  system?: string;
  /** Whether answers think; undefined for the server's default. */
  thinking?: boolean;
  /** Fields of every request: model, max_tokens, temperature, … */
  request: Record<string, unknown>;
  /** A probe whose score colors every token; also part of the request. */
  watch?: string | undefined;
}

/** Receives an answer as it arrives. */
export interface Sink {
  thinking(text: string, tokens: readonly TokenReport[]): void;
  answer(text: string, tokens: readonly TokenReport[]): void;
}

/** How a turn of the conversation ended. */
export type Turn =
  | { kind: "answered"; cutAtLimit: boolean }
  /** Stopped by the user. `kept`: whether a partial answer stays in the conversation. */
  | { kind: "stopped"; kept: boolean };

const help = `/reset           clear the conversation
/system TEXT     set the system message; /system shows it, /system off removes it
/think on|off    turn thinking on or off, if the model's template supports it
/think auto      use the server's default
/help            show this help
/exit            end the chat (also Ctrl-D)
Ctrl-C stops an answer. End a line with \\ to continue it on the next.
Start a message with // to send a leading slash.`;

/** A conversation with a model: its messages, and the settings for the next answer. */
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
   * Runs a line if it is a command.
   * @returns the reply to show, `exit`, or undefined if the line is a message
   */
  command(line: string): { text: string } | "exit" | undefined {
    const [, name, rest = ""] = /^\/(?!\/)(\S*)\s*([\s\S]*)$/.exec(line) ?? [];
    switch (name) {
      case undefined:
        return undefined;
      case "reset":
        this.#messages.length = 0;
        return { text: "Conversation cleared." };
      case "system":
        if (rest !== "") this.#system = rest === "off" ? undefined : rest;
        return {
          text: this.#system === undefined ? "No system message." : `System message: ${this.#system}`,
        };
      case "think":
        return { text: this.#think(rest) };
      case "help":
        return { text: help };
      case "exit":
      case "quit":
        return "exit";
      default:
        return {
          text: `Unknown command /${name}; see /help. Start a message with // to send a leading slash.`,
        };
    }
  }

  #think(word: string): string {
    const known: Record<string, boolean | undefined> = { on: true, off: false, auto: undefined };
    if (word !== "") {
      if (!Object.hasOwn(known, word)) return "Use /think on, /think off or /think auto.";
      this.#thinking = known[word];
    }
    if (this.#thinking === undefined) return "Thinking: server default.";
    return `Thinking: ${this.#thinking ? "on" : "off"} (if the model's template supports it).`;
  }

  /**
   * Sends a message and streams the answer. A turn that fails leaves the conversation unchanged; a stopped turn keeps the
   * partial answer.
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
        // A chunk's tokens are passed once; a chunk with both has the last of the thinking and the first of the answer.
        sink.thinking(delta.reasoning, tokens);
        sink.answer(delta.content, []);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      const kept = answer.trim() !== "";
      // Many templates reject two questions in a row, so a question without an answer is dropped.
      if (kept) this.#messages.push(asked, { role: "assistant", content: answer });
      return { kind: "stopped", kept };
    }
    this.#messages.push(asked, { role: "assistant", content: answer });
    return { kind: "answered", cutAtLimit: reason === "length" };
  }
}
