import { PassThrough } from "node:stream";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import type { Numbered, WorkbenchEvent } from "./wire.js";

/** So long a stream may lie still before a comment shows that it is alive, in milliseconds. */
const heartbeatMs = 15_000;
/** A reader that is so many bytes behind is cut off; it comes back and catches up. */
const mostWaiting = 8 * 1024 ** 2;

/** Numbers what happens and tells it to every open stream; who lost a stream catches up on what it missed. */
export class Events {
  #number = 0;
  readonly #recent: Numbered[] = [];
  readonly #readers = new Set<(event: Numbered) => void>();
  #onReaders: () => void = () => {};

  get number(): number {
    return this.#number;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Hears when the first reader comes. */
  set onReaders(heard: () => void) {
    this.#onReaders = heard;
  }

  publish(event: WorkbenchEvent): void {
    this.#number += 1;
    const numbered = { number: this.#number, event };
    this.#recent.push(numbered);
    if (this.#recent.length > workbenchLimits.events) this.#recent.shift();
    for (const tell of this.#readers) tell(numbered);
  }

  /**
   * What happened behind a number, and from then on what happens, as server-sent events. Where too much was missed the
   * first event says so: the page reads everything anew.
   */
  stream(after: number): PassThrough {
    const out = new PassThrough();
    const tell = (numbered: Numbered) => {
      out.write(`data: ${JSON.stringify(numbered)}\n\n`);
      if (out.writableLength > mostWaiting) out.destroy();
    };
    const first = this.#recent[0]?.number ?? this.#number + 1;
    out.write(": tapline\n\n");
    if (after > this.#number || after < first - 1) out.write('data: {"missed":true}\n\n');
    else for (const numbered of this.#recent.slice(Math.max(0, after - first + 1))) tell(numbered);
    this.#readers.add(tell);
    const beating = setInterval(() => out.write(": \n\n"), heartbeatMs);
    out.once("close", () => {
      clearInterval(beating);
      this.#readers.delete(tell);
    });
    this.#onReaders();
    return out;
  }
}
