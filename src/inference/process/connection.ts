import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Asked, ToParent } from "./messages.js";

/**
 * Reports one connection to the parent: which request waits for the first byte of its answer, and when that byte comes. If
 * this process dies, the parent answers the request that waits. The report of the first byte is sent before the byte, so
 * that no request is answered twice.
 */
export class Connection {
  readonly #id: number;
  readonly #send: (message: ToParent) => void;
  /** The requests that are not answered yet; more than one where a client sends several at once. */
  readonly #waiting: Asked[] = [];
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

  /** A request has come on this connection. */
  asked({ url = "", method, headers }: IncomingMessage, response: ServerResponse): void {
    // An answer to HEAD has no body that could say what happened.
    if (method === "HEAD") return;
    this.#waiting.push({ path: url, ...(headers.origin !== undefined && { origin: headers.origin }) });
    if (this.#waiting.length === 1) this.#next();
    // Before Node's own listener, which writes what the next answer holds already.
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
