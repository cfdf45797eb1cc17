import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { WaitingRequest } from "./connection-states.js";

/** Where a connection reports its state. */
export interface Reports {
  /** Which request waits for the first byte of its answer; undefined as soon as that byte comes next. */
  waits(request: WaitingRequest | undefined): void;
  closed(): void;
}

/**
 * Reports a connection's state: which request is waiting for the first byte of its answer, and when that byte is sent. If
 * this process dies, the parent answers the waiting request. The first byte is reported before it is sent, so that no request
 * is answered twice.
 */
export class Connection {
  readonly #reports: Reports;
  /** Unanswered requests; several if the client pipelines. */
  readonly #waiting: WaitingRequest[] = [];
  #silent = false;

  constructor(socket: Socket, reports: Reports) {
    this.#reports = reports;
    const write = socket.write;
    socket.write = ((...given: Parameters<Socket["write"]>) => {
      this.#writes(given[0]);
      return write.apply(socket, given);
    }) as Socket["write"];
    socket.once("close", () => reports.closed());
  }

  /** Handles a new request on this connection. */
  asked({ url = "", method, headers }: IncomingMessage, response: ServerResponse): void {
    // Answers to HEAD have no body for an error message.
    if (method === "HEAD") return;
    this.#waiting.push({ path: url, ...(headers.origin !== undefined && { origin: headers.origin }) });
    if (this.#waiting.length === 1) this.#next();
    // Before Node's own listener, which writes the next pipelined answer.
    response.prependOnceListener("finish", () => {
      this.#waiting.shift();
      this.#next();
    });
  }

  #next(): void {
    const [asked] = this.#waiting;
    this.#silent = asked !== undefined;
    if (asked !== undefined) this.#reports.waits(asked);
  }

  #writes(bytes: string | Uint8Array): void {
    if (!this.#silent || isContinue(bytes)) return;
    this.#silent = false;
    this.#reports.waits(undefined);
  }
}

/** `100 Continue` asks for the body and does not count as an answer. */
function isContinue(bytes: string | Uint8Array): boolean {
  return typeof bytes === "string" && bytes.startsWith("HTTP/1.1 100 ");
}
