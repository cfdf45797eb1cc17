import { useLayoutEffect, useRef } from "preact/hooks";
import type { AnswerToken, TurnAnswer } from "../../wire.js";
import { paint, type Shade } from "../shades.js";
import { listen } from "../store.js";
import { stripOf } from "../thought-strip.js";
import { thoughtWords } from "../thoughts.js";

interface AnswerTextProps {
  conversation: string;
  answer: TurnAnswer;
  shade: Shade;
  selected: number | undefined;
  /** Tokens that the other answer does not share. */
  differs: ReadonlySet<number> | undefined;
  label: string;
  /** Whether to render the complete answer as Markdown. */
  markdown: boolean;
  onOpen: (token: number) => void;
}

/** The Markdown renderer, once loaded. */
let markdownOf: MarkdownOf | undefined;

/**
 * An answer, token by token. It appends to the document directly, because rendering a streaming answer again for every
 * token takes longer as it grows. It uses layout effects, because later ones would leave another answer under this question
 * for a moment.
 */
export function AnswerText({
  conversation,
  answer,
  shade,
  selected,
  differs,
  label,
  markdown,
  onOpen,
}: AnswerTextProps) {
  const box = useRef<HTMLDivElement>(null);
  const writer = useRef<Writer>(undefined);
  const open = useRef(onOpen);
  open.current = onOpen;
  /** The focused token when the answer was rendered again. */
  const left = useRef(-1);
  const formatted = markdown && answer.state !== "running";
  useLayoutEffect(() => {
    const made = new Writer(box.current as HTMLDivElement);
    writer.current = made;
    made.sync(answer);
    made.refocus(left.current);
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
      left.current = made.focused();
      made.clear();
    };
  }, [answer, conversation]);
  // An answer marked as complete shows all its tokens.
  useLayoutEffect(() => {
    writer.current?.sync(answer);
    if (answer.state !== "running") writer.current?.openThoughtsAlone();
  }, [answer, answer.state]);
  useLayoutEffect(() => {
    if (!formatted) return writer.current?.unformat(answer);
    if (markdownOf !== undefined) return writer.current?.format(answer, markdownOf);
    let ended = false;
    void import("../markdown.js").then((read) => {
      markdownOf = read.markdownOf;
      if (!ended) writer.current?.format(answer, markdownOf);
    });
    return () => {
      ended = true;
    };
  }, [formatted, answer]);
  useLayoutEffect(() => writer.current?.shade(shade, answer), [shade, answer]);
  useLayoutEffect(() => writer.current?.drawStrip(answer), [shade, answer, answer.state]);
  useLayoutEffect(() => writer.current?.mark(selected, differs), [selected, differs, answer]);
  const move = (event: KeyboardEvent) => {
    const at = writer.current?.indexOf(event.target) ?? selected ?? -1;
    const last = answer.tokens.length - 1;
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      writer.current?.focus(Math.max(0, Math.min(last, next)), next < at ? -1 : 1);
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

/** Tokens per block; the browser lays out blocks separately. */
const blockSize = 64;

class Writer {
  /** The elements of each token: one while streaming, none or several in Markdown. */
  #spans: HTMLElement[][] = [];
  #thinking: HTMLElement | undefined;
  /** The summary of the folded thinking, and its colours as a strip. */
  #count: HTMLElement | undefined;
  #strip: HTMLElement | undefined;
  #thoughts = 0;
  #thoughtSeconds: number | undefined;
  #answer: HTMLElement | undefined;
  #block: HTMLElement | undefined;
  #inBlock = 0;
  #formatted = false;
  #shade: Shade = "none";
  #selected: number | undefined;
  #differs: ReadonlySet<number> | undefined;

  constructor(private readonly box: HTMLElement) {}

  get isEmpty(): boolean {
    return this.#spans.length === 0;
  }

  clear(): void {
    this.box.replaceChildren();
    this.#spans = [];
    this.#thinking = this.#count = this.#strip = this.#answer = this.#block = undefined;
    this.#thoughts = 0;
    this.#thoughtSeconds = undefined;
    this.#formatted = false;
  }

  /** Appends new tokens. */
  sync(answer: TurnAnswer): void {
    const { tokens } = answer;
    const before = this.#thoughts;
    for (let at = this.#spans.length; at < tokens.length; at += 1) {
      const token = tokens[at] as AnswerToken;
      const span = this.#span(token, at, token.text);
      this.#place(token.thinking === true).append(span);
      if (token.thinking === true) this.#thoughts += 1;
    }
    const timed = this.#thoughtSeconds !== answer.thoughtSeconds;
    this.#thoughtSeconds = answer.thoughtSeconds;
    if ((timed || this.#thoughts > before) && this.#count !== undefined) {
      this.#count.textContent = thoughtWords(this.#thoughts, answer.thoughtSeconds);
    }
  }

  /** Unfolds the thinking of an answer that has nothing else. */
  openThoughtsAlone(): void {
    const thoughts = this.#thinking?.closest("details");
    if (thoughts != null && this.#answer === undefined) thoughts.open = true;
  }

  /** Renders the answer as Markdown; plain text stays as it is. */
  format({ tokens }: TurnAnswer, markdownOf: MarkdownOf): void {
    const at = this.focused();
    const said = tokens.flatMap((token, at) =>
      token.thinking === true || token.special === true ? [] : [{ token, at, text: token.text }],
    );
    let end = 0;
    const ends = said.map(({ text }) => (end += text.length));
    const source = said.map(({ text }) => text).join("");
    const before = this.#spans;
    const after = before.map((spans, at) => (tokens[at]?.thinking === true ? spans : []));
    this.#spans = after;
    const box = markdownOf(source, (from, to) => {
      const nodes: Node[] = [];
      for (let index = firstOver(ends, from); index < said.length; index += 1) {
        const { token, at, text } = said[index] as (typeof said)[number];
        const begin = (ends[index] as number) - text.length;
        if (begin >= to) break;
        nodes.push(this.#span(token, at, text.slice(Math.max(0, from - begin), to - begin)));
      }
      return nodes;
    });
    if (box === undefined) {
      this.#spans = before;
      return;
    }
    for (const [at, token] of tokens.entries()) {
      if (token.special === true && token.thinking !== true) box.append(this.#span(token, at, token.text));
    }
    this.#answer?.replaceWith(box);
    this.#answer = box;
    this.#block = undefined;
    this.#formatted = true;
    this.#markAll();
    this.refocus(at);
  }

  /** Renders the tokens as plain text again. */
  unformat(answer: TurnAnswer): void {
    if (!this.#formatted) return;
    const at = this.focused();
    this.clear();
    this.sync(answer);
    this.drawStrip(answer);
    this.#markAll();
    this.refocus(at);
  }

  shade(shade: Shade, { tokens }: TurnAnswer): void {
    this.#shade = shade;
    for (const [at, spans] of this.#spans.entries()) {
      for (const span of spans) paint(span, tokens[at] as AnswerToken, shade);
    }
  }

  /** Shows the colours of the thinking once it has ended; before, each token would move the others. */
  drawStrip(answer: TurnAnswer): void {
    this.#strip?.remove();
    this.#strip = answer.state === "running" ? undefined : stripOf(answer, this.#shade);
    if (this.#strip !== undefined) this.#count?.after(this.#strip);
  }

  mark(selected: number | undefined, differs: ReadonlySet<number> | undefined): void {
    for (const span of this.#spans[this.#selected ?? -1] ?? []) span.classList.remove("selected");
    this.#selected = selected;
    const same = this.#differs === differs;
    this.#differs = differs;
    for (const span of this.#spans[selected ?? -1] ?? []) span.classList.add("selected");
    if (!same) this.#markAll();
  }

  /** The token of an element; -1 for other elements. */
  indexOf(target: EventTarget | null): number {
    const at = (target as HTMLElement | null)?.dataset?.at;
    return at === undefined ? -1 : Number(at);
  }

  /** The focused token; -1 for none. */
  focused(): number {
    return this.box.contains(document.activeElement) ? this.indexOf(document.activeElement) : -1;
  }

  /** Restores the focus of a token whose element was replaced, without scrolling. */
  refocus(at: number): void {
    if (at < 0) return;
    const options = { preventScroll: true };
    this.focus(at, 1, options);
    // All later tokens may be Markdown syntax without an element.
    if (!this.box.contains(document.activeElement)) this.box.focus(options);
  }

  /** Focuses the next token in a direction that has an element. */
  focus(at: number, step: 1 | -1, options?: FocusOptions): void {
    let next = at;
    while (this.#spans[next]?.length === 0) next += step;
    const [span] = this.#spans[next] ?? [];
    if (span === undefined) return;
    const closed = span.closest("details");
    if (closed !== null) closed.open = true;
    span.tabIndex = -1;
    span.focus(options);
  }

  #span(token: AnswerToken, at: number, text: string): HTMLElement {
    const span = document.createElement("span");
    span.className = token.special === true ? "t special" : "t";
    span.textContent = text;
    span.dataset.at = String(at);
    if (this.#shade !== "none") paint(span, token, this.#shade);
    if (this.#differs?.has(at)) span.classList.add("differs");
    const spans = this.#spans[at];
    if (spans === undefined) this.#spans[at] = [span];
    else spans.push(span);
    return span;
  }

  #markAll(): void {
    for (const [at, spans] of this.#spans.entries()) {
      for (const span of spans) {
        span.classList.toggle("differs", this.#differs?.has(at) === true);
        span.classList.toggle("selected", at === this.#selected);
      }
    }
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
    const summary = document.createElement("summary");
    this.#count = document.createElement("span");
    summary.append(this.#count);
    this.#thinking = document.createElement("p");
    details.append(summary, this.#thinking);
    this.box.prepend(details);
    return this.#thinking;
  }

  #answerPart(): HTMLElement {
    if (this.#answer === undefined) {
      this.#answer = document.createElement("p");
      this.box.append(this.#answer);
    }
    return this.#answer;
  }
}

type MarkdownOf = typeof import("../markdown.js").markdownOf;

/** The first of the ascending ends that is greater than a place. */
function firstOver(ends: readonly number[], place: number): number {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] as number) > place) high = middle;
    else low = middle + 1;
  }
  return low;
}
