import { StringDecoder } from "node:string_decoder";
import { limits } from "../contracts/limits.js";
import type { ExecutionTrace } from "../executions/index.js";

/** So many bytes of a stream are kept before they are read into the record. */
const pendingBytes = 65_536;
/** A whole answer longer than this is not read: no text of the record's length has so much around it. */
const wholeBytes = 4 * limits.execution_text_bytes;

/**
 * Reads passed-on answers into an execution record. While a stream runs it only keeps a reference to each piece;
 * they are parsed between other work, or when somebody asks for the record.
 */
export class AnswerTrace {
  readonly #trace: ExecutionTrace;
  #kind: "events" | "whole" | "none" = "none";
  #chunks: Buffer[] = [];
  #times: number[] = [];
  #bytes = 0;
  #decoder = new StringDecoder("utf8");
  #line = "";
  #scheduled = false;

  constructor(trace: ExecutionTrace) {
    this.#trace = trace;
    trace.beforeReading(() => this.#fold());
  }

  /** An answer begins. */
  started(contentType: string): void {
    if (contentType.startsWith("text/event-stream")) this.#kind = "events";
    else if (/\bjson\b/.test(contentType)) this.#kind = "whole";
  }

  /** A piece of it was passed on. */
  passed(chunk: Buffer): void {
    if (this.#trace.id === null || this.#kind === "none") return;
    this.#bytes += chunk.length;
    if (this.#kind === "whole" && this.#bytes > wholeBytes) {
      this.#kind = "none";
      this.#chunks = [];
      this.#trace.lifecycle(`an answer of more than ${wholeBytes} bytes, which is not kept`);
      return;
    }
    this.#chunks.push(chunk);
    this.#times.push(Date.now());
    if (this.#kind === "events" && this.#bytes > pendingBytes && !this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#fold());
    }
  }

  /** A whole answer is all there. */
  ended(): void {
    if (this.#kind !== "whole") return;
    const body = Buffer.concat(this.#chunks).toString();
    this.#chunks = [];
    this.#kind = "none";
    this.#trace.answered(body);
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
      if (end > 0) this.#trace.sent(text.slice(0, end), undefined, (times[index] as number) / 1000);
    }
  }
}
