import type { Colors } from "./canvas.js";
import { dim } from "./paint.js";
import { type ScoredToken, ScoreTrail, scored } from "./scores.js";

interface Output {
  write(text: string): unknown;
}

/** Control characters but tab and line break, and characters that reorder a line. */
const unsafe = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu;

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
 * thinking is not wanted, it is left out. Where a probe is watched, each token stands on the colour of its score.
 */
export class AnswerWriter {
  readonly #output: Output;
  readonly #colors: Colors;
  readonly #showThinking: boolean;
  #part: "nothing" | "thinking" | "answer" = "nothing";
  #lineStart = true;
  readonly #trail: ScoreTrail | undefined;

  constructor(output: Output, options: { colors: Colors; thinking: boolean; watch?: string | undefined }) {
    this.#output = output;
    this.#trail = options.watch === undefined ? undefined : new ScoreTrail(options.watch);
    this.#colors = options.colors;
    this.#showThinking = options.thinking;
  }

  /** @param tokens that have become known with this piece, where a probe is watched */
  thinking(text: string, tokens: readonly ScoredToken[] = []): void {
    this.#say("thinking", text, tokens);
  }

  answer(text: string, tokens: readonly ScoredToken[] = []): void {
    this.#say("answer", text, tokens);
  }

  /** What the colours of a watched probe mean, on a line of its own behind the answer. */
  summary(width: number): string {
    return this.#trail?.summary({ colors: this.#colors, width }) ?? "";
  }

  #say(part: "thinking" | "answer", text: string, tokens: readonly ScoredToken[]): void {
    const spans = this.#trail?.spans(text, tokens) ?? [{ text, score: null }];
    if (part === "thinking" && !this.#showThinking) return;
    for (const span of spans) {
      if (span.text === "") continue;
      this.#write(this.#begin(part, harmless(span.text)), part === "thinking", span.score);
    }
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

  #write(text: string, faint: boolean, score: number | null): void {
    if (text === "") return;
    for (const [index, line] of text.split("\n").entries()) {
      if (index > 0) {
        this.#output.write("\n");
        this.#lineStart = true;
      }
      if (line === "") continue;
      const bar = faint && this.#colors === "none" && this.#lineStart ? "| " : "";
      const shown = scored(line, score, { colors: this.#colors });
      this.#output.write(bar + (faint && shown === line ? dim(line, this.#colors) : shown));
      this.#lineStart = false;
    }
  }
}
