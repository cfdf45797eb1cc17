import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ToParent } from "./messages.js";

/**
 * Reports one connection to the parent: which request waits for the first byte of its answer, and when that byte comes. If
 * this process dies, the parent answers the request that waits. The report of the first byte is sent before the byte, so
 * that no request is answered twice.
 */
export class Connection {
  readonly #id: number;
  readonly #send: (message: ToParent) => void;
  /** Paths of the requests that are not answered yet; more than one where a client sends several at once. */
  readonly #waiting: string[] = [];
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
  asked({ url = "", method }: IncomingMessage, response: ServerResponse): void {
    // An answer to HEAD has no body that could say what happened.
    if (method === "HEAD") return;
    this.#waiting.push(url);
    if (this.#waiting.length === 1) this.#next();
    // Before Node's own listener, which writes what the next answer holds already.
    response.prependOnceListener("finish", () => {
      this.#waiting.shift();
      this.#next();
    });
  }

  #next(): void {
    const [path] = this.#waiting;
    this.#silent = path !== undefined;
    if (path !== undefined) this.#send({ type: "asked", id: this.#id, path });
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
