import { EventEmitter } from "node:events";

/** The client's side of an answer, without a connection: writes down what it is given. */
export class Client extends EventEmitter {
  readonly req = { httpVersion: "1.1" };
  readonly chunks: string[] = [];
  head: unknown[] = [];
  /** Whether what it is given fills it. */
  slow = false;
  destroyed = false;
  writeHead(...words: unknown[]) {
    this.head = words;
    return this;
  }
  write(chunk: Buffer | string) {
    this.chunks.push(chunk.toString());
    return !this.slow;
  }
  end(chunk?: Buffer | string) {
    if (chunk !== undefined) this.chunks.push(chunk.toString());
  }
  destroy() {
    this.destroyed = true;
  }
}
