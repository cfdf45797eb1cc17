import type { Colors } from "./canvas.js";
import { dim } from "./paint.js";

interface Output {
  write(text: string): unknown;
}

/** Control characters but tab and line break, and characters that reorder a line. */
const unsafe =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text as it came, but for what would move the cursor, start an escape sequence or turn a line around. */
export function harmless(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(
      unsafe,
      (character) => `<${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`,
    );
}

/**
 * Writes a model's answer as it arrives. Thinking is dimmed; without colours its lines begin with a bar. Where
 * thinking is not wanted, it is left out.
 */
export class AnswerWriter {
  readonly #output: Output;
  readonly #colors: Colors;
  readonly #showThinking: boolean;
  #part: "nothing" | "thinking" | "answer" = "nothing";
  #lineStart = true;

  constructor(output: Output, options: { colors: Colors; thinking: boolean }) {
    this.#output = output;
    this.#colors = options.colors;
    this.#showThinking = options.thinking;
  }

  thinking(text: string): void {
    if (text === "" || !this.#showThinking) return;
    this.#write(this.#begin("thinking", harmless(text)), true);
  }

  answer(text: string): void {
    if (text !== "") this.#write(this.#begin("answer", harmless(text)), false);
  }

  /** Ends the answer's last line. */
  end(): void {
    if (!this.#lineStart || this.#part === "nothing") this.#output.write("\n");
    this.#part = "nothing";
    this.#lineStart = true;
  }

  /** The text without the empty lines that a new part begins with; they stand before it until it has a word. */
  #begin(part: "thinking" | "answer", text: string): string {
    if (this.#part === part) return text;
    const rest = text.trimStart();
    if (rest === "") return "";
    if (!this.#lineStart) this.#output.write("\n");
    this.#lineStart = true;
    this.#part = part;
    return rest;
  }

  #write(text: string, faint: boolean): void {
    if (text === "") return;
    for (const [index, line] of text.split("\n").entries()) {
      if (index > 0) {
        this.#output.write("\n");
        this.#lineStart = true;
      }
      if (line === "") continue;
      const bar = faint && this.#colors === "none" && this.#lineStart ? "| " : "";
      this.#output.write(bar + (faint ? dim(line, this.#colors) : line));
      this.#lineStart = false;
    }
  }
}
