import { StringDecoder } from "node:string_decoder";
import { limits } from "../contracts/limits.js";
import type { ExecutionTrace } from "../executions/index.js";

/** Bytes of a stream that are buffered before they are parsed into the record. */
const pendingBytes = 65_536;
/** Longer non-streamed answers are not recorded. */
const wholeBytes = 4 * limits.execution_text_bytes;

/**
 * Records forwarded answers in an execution record. While a stream runs, it only keeps references to the chunks; they are
 * parsed in idle moments, or when the record is requested.
 */
export class AnswerTrace {
  #kind: "events" | "whole" | "none" = "none";
  #chunks: Buffer[] = [];
  #times: number[] = [];
  #bytes = 0;
  #decoder = new StringDecoder("utf8");
  #line = "";
  #scheduled = false;

  constructor(private readonly trace: ExecutionTrace) {
    trace.beforeReading(() => this.#fold());
  }

  /** An answer begins. */
  started(contentType: string): void {
    if (contentType.startsWith("text/event-stream")) this.#kind = "events";
    else if (/\bjson\b/.test(contentType)) this.#kind = "whole";
  }

  /** A chunk was forwarded. */
  passed(chunk: Buffer): void {
    if (this.trace.id === null || this.#kind === "none") return;
    this.#bytes += chunk.length;
    if (this.#kind === "whole" && this.#bytes > wholeBytes) {
      this.#kind = "none";
      this.#chunks = [];
      this.trace.lifecycle(`the answer has more than ${wholeBytes} bytes and is not recorded`);
      return;
    }
    this.#chunks.push(chunk);
    this.#times.push(Date.now());
    if (this.#kind === "events" && this.#bytes > pendingBytes && !this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#fold());
    }
  }

  /** A non-streamed answer is complete. */
  ended(): void {
    if (this.#kind !== "whole") return;
    const body = Buffer.concat(this.#chunks).toString();
    this.#chunks = [];
    this.#kind = "none";
    this.trace.answered(body);
  }

  #fold(): void {
    this.#scheduled = false;
    if (this.#kind !== "events") return;
    const chunks = this.#chunks;
    const times = this.#times;
    this.#chunks = [];
    this.#times = [];
    this.#bytes = 0;
    for (const [index, chunk] of chunks.entries()) {
      const text = this.#line + this.#decoder.write(chunk);
      const end = text.lastIndexOf("\n") + 1;
      this.#line = text.slice(end);
      if (end > 0) this.trace.sent(text.slice(0, end), undefined, (times[index] as number) / 1000);
    }
  }
}
