import { PassThrough } from "node:stream";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import type { Numbered, WorkbenchEvent } from "./wire.js";

/** Interval of the heartbeat comments, in milliseconds. */
const heartbeatMs = 15_000;
/** A reader that falls this many bytes behind is disconnected; it reconnects and catches up. */
const mostWaiting = 8 * 1024 ** 2;

/** Numbers events and sends them to every open stream; readers that reconnect catch up. */
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

  /** Called for every new reader. */
  set onReaders(listener: () => void) {
    this.#onReaders = listener;
  }

  publish(event: WorkbenchEvent): void {
    this.#number += 1;
    const numbered = { number: this.#number, event };
    this.#recent.push(numbered);
    if (this.#recent.length > workbenchLimits.events) this.#recent.shift();
    for (const send of this.#readers) send(numbered);
  }

  /**
   * The events after a number and all later ones, as server-sent events. If too many were missed, the first event says so,
   * and the page loads everything again.
   */
  stream(after: number): PassThrough {
    const out = new PassThrough();
    const send = (numbered: Numbered) => {
      out.write(`data: ${JSON.stringify(numbered)}\n\n`);
      if (out.writableLength > mostWaiting) out.destroy();
    };
    const first = this.#recent[0]?.number ?? this.#number + 1;
    out.write(": tapline\n\n");
    if (after > this.#number || after < first - 1) out.write('data: {"missed":true}\n\n');
    else for (const numbered of this.#recent.slice(Math.max(0, after - first + 1))) send(numbered);
    this.#readers.add(send);
    const beating = setInterval(() => out.write(": \n\n"), heartbeatMs);
    out.once("close", () => {
      clearInterval(beating);
      this.#readers.delete(send);
    });
    this.#onReaders();
    return out;
  }
}
