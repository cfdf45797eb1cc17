import { cut } from "../findings/text.js";

interface Output {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

/** Longest silence in a log, in seconds: long work must not look dead. */
const logEvery = 30;

/** Says what is being done: on a terminal in one line at its bottom, in files, pipes and CI logs in lines now and then. */
export class ProgressLine {
  readonly #output: Output;
  #shown = false;
  #logged: { about: string; at: number } | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  show(text: string): void {
    if (!this.#output.isTTY) return;
    // The last column stays free: some terminals would wrap.
    this.#output.write(`\r\u001b[K${cut(text, (this.#output.columns || 80) - 1)}`);
    this.#shown = true;
  }

  /** Where there is no terminal: a line for whatever is new, and one now and then while it lasts. */
  log(about: string, text: string): void {
    if (this.#output.isTTY) return;
    const now = performance.now() / 1000;
    if (about === this.#logged?.about && now - this.#logged.at < logEvery) return;
    this.#logged = { about, at: now };
    this.#output.write(`${text}\n`);
  }

  clear(): void {
    if (this.#shown) this.#output.write("\r\u001b[K");
    this.#shown = false;
  }
}
