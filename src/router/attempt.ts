import type { ServerResponse } from "node:http";
import type { Dispatcher } from "undici";
import { framesItself } from "../http/index.js";
import type { Backend } from "./backend.js";
import { answerHeaders } from "./headers.js";

/** Statuses after which another backend may succeed. 508 means a routing loop. */
const notNow = new Set([429, 502, 503, 504, 508]);
/** Bytes of such an answer that are kept in case every backend refuses. */
const refusalBytes = 65_536;
/** Chunks up to this size are sent as one string: copying costs less than separate writes. */
const oneString = 16_384;

export interface Refusal {
  status: number;
  headers: string[];
  body: Buffer;
}

/** How an attempt ended. Only `answered` and `cut` have sent anything to the client. */
export type AttemptEnd =
  /** The whole answer was forwarded. */
  | { kind: "answered"; status: number }
  /** The connection broke after the first byte of the answer. */
  | { kind: "cut"; sentence: string }
  /** Connecting failed, so the backend did not get the request. */
  | { kind: "unreached"; sentence: string }
  /** The connection ended before the first byte of the answer's body; `head`: whether its headers had arrived. */
  | { kind: "broken"; sentence: string; head: boolean }
  /** Abandoned before the first byte, because the backend's health check failed. */
  | { kind: "abandoned" }
  | { kind: "refused"; refusal: Refusal }
  /** The request itself cannot be forwarded. */
  | { kind: "unsendable"; sentence: string }
  /** The client disconnected. */
  | { kind: "gone" };

export interface AttemptWatcher {
  /** The first byte of the answer is about to be forwarded. */
  started(status: number, contentType: string): void;
  /** A chunk of the answer was just forwarded. */
  passed(chunk: Buffer): void;
}

/**
 * One attempt to send a request to one backend. After the first byte of an answer, the response belongs to this attempt:
 * bytes are forwarded as they arrive, and the backend is read only as fast as the client reads.
 */
export class Attempt implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | undefined;
  #ended = false;
  #committed = false;
  #status = 0;
  #statusText = "";
  #refusal: Buffer[] | null = null;
  #refusalLength = 0;
  /** Whether it frames the chunked transfer coding itself. */
  #framed = false;

  private constructor(
    private readonly backend: Backend,
    private readonly response: ServerResponse,
    private readonly ownHeaders: readonly string[],
    private readonly watcher: AttemptWatcher,
    private readonly settle: (end: AttemptEnd) => void,
  ) {}

  /**
   * Sends a request to a backend and its answer to the client. Never rejects.
   * @param request `fresh` asks for a new connection
   */
  static run(
    backend: Backend,
    request: { path: string; headers: string[]; body: Uint8Array; fresh: boolean },
    response: ServerResponse,
    ownHeaders: readonly string[],
    watcher: AttemptWatcher,
  ): Promise<AttemptEnd> {
    return new Promise((resolve) => {
      const attempt = new Attempt(backend, response, ownHeaders, watcher, resolve);
      backend.attempts.add(attempt);
      response.on("close", attempt.#onClose).on("drain", attempt.#onDrain);
      (request.fresh ? backend.fresh : backend.pool).dispatch(
        { method: "POST", path: backend.prefix + request.path, headers: request.headers, body: request.body },
        attempt,
      );
    });
  }

  /** Abandons the backend if nothing of its answer was forwarded yet. */
  abandon(): void {
    if (!this.#committed) this.#end({ kind: "abandoned" });
  }

  /** Also abandons a partly forwarded answer, unless the client is the one not reading. */
  giveUp(): void {
    if (this.#committed && !this.response.writableNeedDrain) this.#cut("its backend stopped responding");
    else this.abandon();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) controller.abort(new Error("abandoned"));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    statusText = "",
  ): void {
    if (status < 200) return;
    this.backend.lastSeen = performance.now();
    this.#status = status;
    this.#statusText = statusText;
    if (notNow.has(status)) this.#refusal = [];
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // An empty chunk would end the transfer coding.
    if (this.#ended || chunk.length === 0) return;
    this.backend.lastSeen = performance.now();
    if (this.#refusal !== null) {
      this.#refusalLength += chunk.length;
      if (this.#refusalLength <= refusalBytes) this.#refusal.push(chunk);
      return;
    }
    if (!this.#committed) this.#commit(controller);
    if (!this.#pass(chunk)) controller.pause();
    this.watcher.passed(chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#ended) return;
    if (this.#refusal !== null) {
      const headers = answerHeaders(controller.rawHeaders, this.ownHeaders);
      const whole = this.#refusalLength <= refusalBytes;
      this.#end({
        kind: "refused",
        refusal: {
          status: this.#status,
          headers,
          body: whole ? Buffer.concat(this.#refusal) : Buffer.alloc(0),
        },
      });
      return;
    }
    if (!this.#committed) this.#commit(controller);
    this.response.end(this.#framed ? "0\r\n\r\n" : undefined, "latin1");
    this.#end({ kind: "answered", status: this.#status });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#ended) return;
    const { code = "", message } = error as NodeJS.ErrnoException;
    const sentence = `${message}${code === "" ? "" : ` (${code})`}`;
    if (this.#committed) this.#cut(sentence);
    else if (code === "UND_ERR_INVALID_ARG" || code === "UND_ERR_NOT_SUPPORTED") {
      this.#end({ kind: "unsendable", sentence: message });
    } else if (unreachedCodes.has(code)) this.#end({ kind: "unreached", sentence });
    else this.#end({ kind: "broken", sentence, head: this.#status !== 0 });
  }

  #commit(controller: Dispatcher.DispatchController): void {
    this.#committed = true;
    const headers = answerHeaders(controller.rawHeaders, this.ownHeaders);
    this.watcher.started(this.#status, headerOf(headers, "content-type") ?? "");
    const response = this.response;
    const known = headerOf(headers, "content-length") !== undefined;
    this.#framed =
      !known && response.req.httpVersion !== "1.0" && this.#status !== 204 && this.#status !== 304;
    if (this.#framed) headers.push("Transfer-Encoding", "chunked");
    // Raw pairs preserve names, order and repetitions.
    response.writeHead(this.#status, this.#statusText, headers);
    // Write each chunk as one string. Node would write four pieces per chunk, which costs twice as much.
    if (!this.#framed) return;
    response.chunkedEncoding = false;
    framesItself(response);
  }

  #pass(chunk: Buffer): boolean {
    const response = this.response;
    if (!this.#framed) return response.write(chunk);
    const length = chunk.length.toString(16);
    if (chunk.length <= oneString) {
      return response.write(`${length}\r\n${chunk.toString("latin1")}\r\n`, "latin1");
    }
    response.write(`${length}\r\n`, "latin1");
    response.write(chunk);
    return response.write("\r\n", "latin1");
  }

  /** The rest of the answer will not arrive: only a reset shows the client that it is incomplete. */
  #cut(sentence: string): void {
    this.#end({ kind: "cut", sentence });
    this.response.destroy();
  }

  #end(end: AttemptEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.backend.attempts.delete(this);
    this.response.off("close", this.#onClose).off("drain", this.#onDrain);
    if (end.kind !== "answered" && end.kind !== "refused") this.#controller?.abort(new Error("abandoned"));
    this.settle(end);
  }

  readonly #onClose = (): void => this.#end({ kind: "gone" });

  readonly #onDrain = (): void => this.#controller?.resume();
}

function headerOf(headers: readonly string[], wanted: string): string | undefined {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === wanted);
  return at === -1 ? undefined : headers[at + 1];
}

const unreachedCodes = new Set(
  (
    "ECONNREFUSED EHOSTUNREACH ENETUNREACH ENOTFOUND EAI_AGAIN ETIMEDOUT EMFILE " +
    "UND_ERR_CONNECT_TIMEOUT UND_ERR_CLOSED UND_ERR_DESTROYED"
  ).split(" "),
);
