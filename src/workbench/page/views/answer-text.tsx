import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { percent } from "../../../report/figure.js";
import type { AnswerToken, TurnAnswer } from "../../wire.js";
import { listen } from "../store.js";

/** What colours the tokens; one quantity at a time. */
export const shades = ["none", "probability", "entropy"] as const;
export type Shade = (typeof shades)[number] | `probe ${string}`;

interface AnswerTextProps {
  conversation: string;
  answer: TurnAnswer;
  shade: Shade;
  selected: number | undefined;
  /** Tokens from here on are other ones than the answer beside it has. */
  differsAt: number | undefined;
  label: string;
  onOpen: (token: number) => void;
}

/** So many tokens make a block that the browser lays out by itself. */
const blockSize = 64;

/**
 * An answer, token by token. Its words are put into the document by hand: a streaming answer adds to the end, and drawing
 * it anew for every token takes longer the longer it is.
 */
export function AnswerText({
  conversation,
  answer,
  shade,
  selected,
  differsAt,
  label,
  onOpen,
}: AnswerTextProps) {
  const box = useRef<HTMLDivElement>(null);
  const writer = useRef<Writer>(undefined);
  const open = useRef(onOpen);
  open.current = onOpen;
  useEffect(() => {
    const made = new Writer(box.current as HTMLDivElement);
    writer.current = made;
    made.sync(answer);
    let frame = 0;
    const ending = listen(`tokens ${conversation}`, () => {
      if (made.isEmpty) made.sync(answer);
      else if (frame === 0) {
        frame = requestAnimationFrame(() => {
          frame = 0;
          made.sync(answer);
        });
      }
    });
    return () => {
      ending();
      cancelAnimationFrame(frame);
      made.clear();
    };
  }, [answer, conversation]);
  // Where it says that the answer is complete, all of it stands there.
  useLayoutEffect(() => writer.current?.sync(answer), [answer, answer.state]);
  useEffect(() => writer.current?.shade(shade, answer), [shade, answer]);
  useEffect(() => writer.current?.mark(selected, differsAt), [selected, differsAt, answer]);
  const move = (event: KeyboardEvent) => {
    const at = writer.current?.indexOf(event.target) ?? selected ?? -1;
    const last = answer.tokens.length - 1;
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      writer.current?.focus(Math.max(0, Math.min(last, next)));
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      open.current(at);
    }
  };
  return (
    <div
      class="answer-text"
      ref={box}
      role="group"
      aria-label={label}
      tabIndex={0}
      onKeyDown={move}
      onClick={(event) => {
        const at = writer.current?.indexOf(event.target) ?? -1;
        if (at >= 0) open.current(at);
      }}
    />
  );
}

class Writer {
  readonly #box: HTMLElement;
  readonly #spans: HTMLElement[] = [];
  #thinking: HTMLElement | undefined;
  #count: HTMLElement | undefined;
  #answer: HTMLElement | undefined;
  #block: HTMLElement | undefined;
  #inBlock = 0;
  #shade: Shade = "none";
  #selected: number | undefined;
  #differsAt: number | undefined;

  constructor(box: HTMLElement) {
    this.#box = box;
  }

  get isEmpty(): boolean {
    return this.#spans.length === 0;
  }

  clear(): void {
    this.#box.replaceChildren();
  }

  /** Adds what has come since. */
  sync({ tokens }: TurnAnswer): void {
    let thought = false;
    for (let at = this.#spans.length; at < tokens.length; at += 1) {
      const token = tokens[at] as AnswerToken;
      const span = document.createElement("span");
      span.className = token.special === true ? "t special" : "t";
      span.textContent = token.text;
      span.dataset.at = String(at);
      paint(span, token, this.#shade);
      if (this.#differsAt !== undefined && at >= this.#differsAt) span.classList.add("differs");
      this.#place(token.thinking === true).append(span);
      thought ||= token.thinking === true;
      this.#spans.push(span);
    }
    if (thought && this.#count !== undefined) {
      const count = tokens.filter(({ thinking }) => thinking === true).length;
      this.#count.textContent = count === 1 ? "Thinking, 1 token" : `Thinking, ${count} tokens`;
    }
  }

  shade(shade: Shade, { tokens }: TurnAnswer): void {
    this.#shade = shade;
    for (const [at, span] of this.#spans.entries()) paint(span, tokens[at] as AnswerToken, shade);
  }

  mark(selected: number | undefined, differsAt: number | undefined): void {
    if (this.#selected !== undefined) this.#spans[this.#selected]?.classList.remove("selected");
    if (selected !== undefined) this.#spans[selected]?.classList.add("selected");
    this.#selected = selected;
    if (this.#differsAt === differsAt) return;
    this.#differsAt = differsAt;
    for (const [at, span] of this.#spans.entries()) {
      span.classList.toggle("differs", differsAt !== undefined && at >= differsAt);
    }
  }

  /** Which token an element is; -1 for anything else. */
  indexOf(target: EventTarget | null): number {
    const at = (target as HTMLElement | null)?.dataset?.at;
    return at === undefined ? -1 : Number(at);
  }

  focus(at: number): void {
    const span = this.#spans[at];
    if (span === undefined) return;
    const closed = span.closest("details");
    if (closed !== null) closed.open = true;
    span.tabIndex = -1;
    span.focus();
  }

  #place(thinking: boolean): HTMLElement {
    const part = thinking ? this.#thinkingPart() : this.#answerPart();
    if (this.#block?.parentElement !== part || this.#inBlock >= blockSize) {
      this.#block = document.createElement("span");
      this.#block.className = "block";
      this.#inBlock = 0;
      part.append(this.#block);
    }
    this.#inBlock += 1;
    return this.#block as HTMLElement;
  }

  #thinkingPart(): HTMLElement {
    if (this.#thinking !== undefined) return this.#thinking;
    const details = document.createElement("details");
    details.className = "thinking";
    this.#count = document.createElement("summary");
    this.#thinking = document.createElement("p");
    details.append(this.#count, this.#thinking);
    this.#box.prepend(details);
    return this.#thinking;
  }

  #answerPart(): HTMLElement {
    if (this.#answer === undefined) {
      this.#answer = document.createElement("p");
      this.#box.append(this.#answer);
    }
    return this.#answer;
  }
}

/** Colours a token by one quantity, from nothing to all. */
function paint(span: HTMLElement, token: AnswerToken, shade: Shade): void {
  const value = quantityOf(token, shade);
  span.classList.toggle("shaded", value !== undefined);
  if (value === undefined) {
    span.style.removeProperty("--share");
    span.removeAttribute("title");
  } else {
    span.style.setProperty("--share", value.share.toFixed(3));
    span.title = value.words;
  }
}

function quantityOf(token: AnswerToken, shade: Shade): { share: number; words: string } | undefined {
  if (shade === "none") return undefined;
  if (shade === "probability") {
    if (token.probability === undefined) return undefined;
    return { share: token.probability, words: `probability ${percent(token.probability)}` };
  }
  if (shade === "entropy") {
    const bits = entropyOf(token);
    return bits === undefined
      ? undefined
      : { share: Math.min(1, bits / 3), words: `${bits.toFixed(2)} bits or more` };
  }
  const name = shade.slice("probe ".length);
  const score = token.probes?.[name];
  return score == null ? undefined : { share: score, words: `${name} ${score.toFixed(2)}` };
}

/** Entropy of the candidates that are told, the rest taken as one: the true one is at least so large. */
export function entropyOf({ candidates }: AnswerToken): number | undefined {
  if (candidates === undefined || candidates.length === 0) return undefined;
  const parts = candidates.map(({ probability }) => probability);
  const rest = Math.max(0, 1 - parts.reduce((sum, part) => sum + part, 0));
  return [...parts, rest].reduce((sum, part) => (part > 0 ? sum - part * Math.log2(part) : sum), 0);
}
