import { cut } from "./text.js";

interface Output {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

/** One line at the bottom of a terminal that says what is being done; nothing in files, pipes and CI logs. */
export class ProgressLine {
  readonly #output: Output;
  #shown = false;

  constructor(output: Output) {
    this.#output = output;
  }

  show(text: string): void {
    if (!this.#output.isTTY) return;
    // The last column stays free: some terminals would wrap.
    this.#output.write(`\r\u001b[K${cut(text, (this.#output.columns || 80) - 1)}`);
    this.#shown = true;
  }

  clear(): void {
    if (this.#shown) this.#output.write("\r\u001b[K");
    this.#shown = false;
  }
}
