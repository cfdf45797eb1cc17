import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ToParent } from "./messages.js";

/**
 * Tells the parent of one connection which request waits for its first byte, and when that byte comes: what has got none
 * when this process dies, the parent answers. It hears of the first byte before that is written, so that nothing is ever
 * answered twice.
 */
export class Connection {
  readonly #id: number;
  readonly #tell: (message: ToParent) => void;
  /** Paths of the requests that are not answered yet; more than one where a client sends several at once. */
  readonly #waiting: string[] = [];
  #silent = false;

  constructor(id: number, socket: Socket, tell: (message: ToParent) => void) {
    this.#id = id;
    this.#tell = tell;
    const write = socket.write;
    socket.write = ((...given: Parameters<Socket["write"]>) => {
      this.#writes(given[0]);
      return write.apply(socket, given);
    }) as Socket["write"];
    socket.once("close", () => tell({ type: "closed", id }));
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
    if (path !== undefined) this.#tell({ type: "asked", id: this.#id, path });
  }

  #writes(bytes: string | Uint8Array): void {
    if (!this.#silent || isContinue(bytes)) return;
    this.#silent = false;
    this.#tell({ type: "answering", id: this.#id });
  }
}

/** `100 Continue` asks for the body, and is no answer. */
function isContinue(bytes: string | Uint8Array): boolean {
  return typeof bytes === "string" && bytes.startsWith("HTTP/1.1 100 ");
}
