import { cut } from "../findings/text.js";
import type { Output } from "./canvas.js";

/** Maximum time between log lines in seconds, so that long work does not look stuck. */
const logEvery = 30;

/** Progress messages: one line at the bottom of a terminal, or occasional lines in files, pipes and CI logs. */
export class ProgressLine {
  #shown = false;
  #logged: { about: string; at: number } | undefined;

  constructor(private readonly output: Output) {}

  /** @param about the topic of the line without a terminal, where otherwise nothing is written */
  show(text: string, about?: string): void {
    if (!this.output.isTTY) {
      if (about !== undefined) this.log(about, text);
      return;
    }
    // The last column stays free: some terminals would wrap.
    this.output.write(`\r\u001b[K${cut(text, (this.output.columns || 80) - 1)}`);
    this.#shown = true;
  }

  /** Without a terminal: a line for each new topic, and occasional ones while it lasts. */
  log(about: string, text: string): void {
    if (this.output.isTTY) return;
    const now = performance.now() / 1000;
    if (about === this.#logged?.about && now - this.#logged.at < logEvery) return;
    this.#logged = { about, at: now };
    this.output.write(`${text}\n`);
  }

  clear(): void {
    if (this.#shown) this.output.write("\r\u001b[K");
    this.#shown = false;
  }
}
