import { Transform, type TransformCallback } from "node:stream";
import { StringDecoder } from "node:string_decoder";

const pasteStart = "\u001b[200~";
const pasteEnd = "\u001b[201~";
const interrupt = "\u0003";

/** Represents a line break in the edited line, so that pasted text stays one message. */
export const lineBreak = "⏎";

/** Turns a terminal's bracketed paste on or off. */
export const markPastes = { on: "\u001b[?2004h", off: "\u001b[?2004l" };

/**
 * Passes typed text to the line editor. Line breaks within a paste become {@link lineBreak}. While the gate is held,
 * everything except Ctrl-C is buffered.
 */
export class KeyGate extends Transform {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #pasting = false;
  #held: string[] | undefined;

  /** @param onInterrupt called for Ctrl-C while the gate is held; otherwise the line editor handles it */
  constructor(private readonly onInterrupt: () => void) {
    super();
  }

  hold(): void {
    this.#held ??= [];
  }

  /** Passes the buffered text on. */
  release(): void {
    const waiting = this.#held ?? [];
    this.#held = undefined;
    for (const text of waiting) this.push(text);
  }

  /** Discards the buffered text. */
  forget(): void {
    if (this.#held !== undefined) this.#held = [];
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    const text = this.#rest + this.#decoder.write(chunk);
    this.#rest = "";
    this.#pass(text);
    done();
  }

  #pass(text: string): void {
    const marker = this.#pasting ? pasteEnd : pasteStart;
    const at = text.indexOf(marker);
    if (at !== -1) {
      this.#emit(text.slice(0, at));
      this.#pasting = !this.#pasting;
      this.#pass(text.slice(at + marker.length));
      return;
    }
    // The chunk may end in the middle of a marker,
    let kept = 0;
    for (let length = Math.min(marker.length - 1, text.length); length > 0 && kept === 0; length--) {
      if (marker.startsWith(text.slice(text.length - length))) kept = length;
    }
    // or between \r and \n.
    if (this.#pasting && kept === 0 && text.endsWith("\r")) kept = 1;
    this.#rest = text.slice(text.length - kept);
    this.#emit(text.slice(0, text.length - kept));
  }

  #emit(text: string): void {
    const shown = this.#pasting ? onOneLine(text) : text;
    if (shown === "") return;
    if (this.#held === undefined) {
      this.push(shown);
    } else if (shown.includes(interrupt)) {
      this.#held = [];
      this.onInterrupt();
    } else {
      this.#held.push(shown);
    }
  }
}

function onOneLine(text: string): string {
  // Pasted control characters are not key presses.
  return text
    .replace(/\r\n|\r|\n/g, lineBreak)
    .replaceAll("\t", "    ")
    .replace(/\p{Cc}/gu, "");
}
