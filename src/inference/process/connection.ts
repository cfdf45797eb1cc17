import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ToParent, WaitingRequest } from "./messages.js";

/**
 * Reports a connection's state to the parent: which request is waiting for the first byte of its answer, and when
 * that byte is sent. If this process dies, the parent answers the waiting request. The first byte is reported before
 * it is sent, so that no request is answered twice.
 */
export class Connection {
  readonly #id: number;
  readonly #send: (message: ToParent) => void;
  /** Unanswered requests; several if the client pipelines. */
  readonly #waiting: WaitingRequest[] = [];
  #silent = false;

  constructor(id: number, socket: Socket, send: (message: ToParent) => void) {
    this.#id = id;
    this.#send = send;
    const write = socket.write;
    socket.write = ((...given: Parameters<Socket["write"]>) => {
      this.#writes(given[0]);
      return write.apply(socket, given);
    }) as Socket["write"];
    socket.once("close", () => send({ type: "closed", id }));
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
    if (asked !== undefined) this.#send({ type: "asked", id: this.#id, ...asked });
  }

  #writes(bytes: string | Uint8Array): void {
    if (!this.#silent || isContinue(bytes)) return;
    this.#silent = false;
    this.#send({ type: "answering", id: this.#id });
  }
}

/** `100 Continue` asks for the body and does not count as an answer. */
function isContinue(bytes: string | Uint8Array): boolean {
  return typeof bytes === "string" && bytes.startsWith("HTTP/1.1 100 ");
}
