import type { Colors, Output } from "./canvas.js";
import { dim } from "./paint.js";
import { type ScoredToken, ScoreTrail, scored } from "./scores.js";

/** Control characters except tab and line break, and characters that reorder a line. */
const unsafe = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu;

/** A text with cursor movements, escape sequences and bidirectional controls made visible. */
export function harmless(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(
      unsafe,
      (character) => `<${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`,
    );
}

/**
 * Writes a model's answer as it arrives. Thinking is dimmed, or its lines start with a bar if there are no colours; it can be
 * left out. With a probe, each token has the colour of its score.
 */
export class AnswerWriter {
  readonly #colors: Colors;
  readonly #showThinking: boolean;
  #part: "nothing" | "thinking" | "answer" = "nothing";
  #lineStart = true;
  readonly #trail: ScoreTrail | undefined;

  constructor(
    private readonly output: Pick<Output, "write">,
    options: { colors: Colors; thinking: boolean; watch?: string | undefined },
  ) {
    this.#trail = options.watch === undefined ? undefined : new ScoreTrail(options.watch);
    this.#colors = options.colors;
    this.#showThinking = options.thinking;
  }

  /** @param tokens tokens that arrived with this text, if a probe is watched */
  thinking(text: string, tokens: readonly ScoredToken[] = []): void {
    this.#say("thinking", text, tokens);
  }

  answer(text: string, tokens: readonly ScoredToken[] = []): void {
    this.#say("answer", text, tokens);
  }

  /** The legend of a watched probe, for a separate line after the answer. */
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
    if (!this.#lineStart || this.#part === "nothing") this.output.write("\n");
    this.#part = "nothing";
    this.#lineStart = true;
  }

  /** The text without the leading whitespace of a new part. */
  #begin(part: "thinking" | "answer", text: string): string {
    if (this.#part === part) return text;
    const rest = text.trimStart();
    if (rest === "") return "";
    if (!this.#lineStart) this.output.write("\n");
    this.#lineStart = true;
    this.#part = part;
    return rest;
  }

  #write(text: string, faint: boolean, score: number | null): void {
    if (text === "") return;
    for (const [index, line] of text.split("\n").entries()) {
      if (index > 0) {
        this.output.write("\n");
        this.#lineStart = true;
      }
      if (line === "") continue;
      const bar = faint && this.#colors === "none" && this.#lineStart ? "| " : "";
      const shown = scored(line, score, { colors: this.#colors });
      this.output.write(bar + (faint && shown === line ? dim(line, this.#colors) : shown));
      this.#lineStart = false;
    }
  }
}
