import { visible } from "../text/visible.js";
import type { Canvas } from "./canvas.js";
import { legend } from "./legend.js";
import { dim, onScale, probabilityScale } from "./paint.js";

/** A generated token and its probe scores; null if a probe's layer was not computed there. */
export interface ScoredToken {
  /** Absent for tokens without text. */
  token?: string;
  probes?: Record<string, number | null>;
}

/** A part of a text with the score of its token. */
export interface Span {
  text: string;
  score: number | null;
}

/** Scores in tenths after each word, if there are no colours. */
const tenths = "₀₁₂₃₄₅₆₇₈₉";

/**
 * Tracks one probe over an answer: the score of each part of the text, and a summary. Tokens without text (end of turn) are
 * skipped; text may arrive later than its tokens, and in pieces.
 */
export class ScoreTrail {
  #waiting: ScoredToken[] = [];
  #count = 0;
  #sum = 0;
  #highest: { token: string; score: number } | undefined;

  constructor(private readonly probe: string) {}

  /** @param tokens tokens that arrived with this piece of text */
  spans(text: string, tokens: readonly ScoredToken[]): Span[] {
    for (const token of tokens) this.#add(token);
    const known = [...this.#waiting, ...tokens];
    const spans: Span[] = [];
    let at = 0;
    let used = 0;
    for (const [index, token] of known.entries()) {
      const { token: whole = "" } = token;
      const piece = at === 0 && !text.startsWith(whole) ? whole.trimStart() : whole;
      if (piece === "" || !text.startsWith(piece, at)) continue;
      spans.push({ text: piece, score: this.#scoreOf(token) });
      at += piece.length;
      used = index + 1;
    }
    if (at < text.length) {
      // Incomplete characters, or a text without its tags.
      const last = known.at(-1);
      spans.push({ text: text.slice(at), score: last === undefined ? null : this.#scoreOf(last) });
      used = known.length;
    }
    this.#waiting = known.slice(used);
    return spans;
  }

  /** The legend, and the answer's mean and highest score; empty without scores. */
  summary(canvas: Canvas): string {
    if (this.#highest === undefined) return "";
    const { token, score } = this.#highest;
    const scale =
      canvas.colors === "none"
        ? `digits are tenths of ${this.probe}'s score`
        : `${this.probe} ${legend(probabilityScale, "0", "1", canvas)}`;
    const mean = (this.#sum / this.#count).toFixed(2);
    const at = token === "" ? "the end" : visible(token);
    const figures = `mean ${mean}, highest ${score.toFixed(2)} at ${at}`;
    return `${scale}${dim(`; ${figures}`, canvas.colors)}`;
  }

  #add(token: ScoredToken): void {
    const score = this.#scoreOf(token);
    if (score === null) return;
    this.#count++;
    this.#sum += score;
    if (this.#highest === undefined || score > this.#highest.score) {
      this.#highest = { token: token.token ?? "", score };
    }
  }

  #scoreOf({ probes }: ScoredToken): number | null {
    return probes?.[this.probe] ?? null;
  }
}

/** A piece of one line on the colour of its score, or followed by its tenths. */
export function scored(text: string, score: number | null, { colors }: Pick<Canvas, "colors">): string {
  if (score === null || text.trim() === "") return text;
  if (colors !== "none") return onScale(text, score, probabilityScale, colors);
  return text + tenths[Math.min(9, Math.floor(score * 10))];
}
