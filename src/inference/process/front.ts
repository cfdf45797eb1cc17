import { createServer as createHttp, type Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { corsHeaders, describeBindFailure, HttpError, isPreflight, urlHost } from "../../http/index.js";
import { forPages, servingErrorBody } from "../paths.js";
import type { WaitingRequest } from "./connection-states.js";

/** Milliseconds that a client has to read the last answer of a connection. */
const lingerMs = 5000;

/**
 * Holds the port for the server's lifetime and hands each connection to the current serving process. Without one, it
 * answers 503 with Retry-After itself.
 */
export class Front {
  readonly #listener: Server;
  readonly #away: HttpServer;
  readonly host: string;
  readonly #cors: readonly string[];
  #serve: ((socket: Socket) => void) | undefined;
  #sentence = "The model is loading; retry in a moment.";

  private constructor(host: string, cors: readonly string[]) {
    this.host = host;
    this.#cors = cors;
    this.#away = createHttp((request, response) => {
      const path = withoutQuery(request.url ?? "");
      const cors = this.#corsHeaders(path, request);
      // Browsers expose errors to a page only if the preflight succeeded.
      if (isPreflight(request) && cors["Access-Control-Allow-Origin"] !== undefined) {
        response.writeHead(204, { ...cors, "Cache-Control": "no-store", Connection: "close" });
        response.end();
        return;
      }
      const error = new HttpError(503, this.#sentence, { code: "unavailable" });
      const body = JSON.stringify(servingErrorBody(path)(error));
      response.writeHead(503, {
        ...cors,
        "Content-Type": "application/json; charset=utf-8",
        "Content-Length": Buffer.byteLength(body),
        "Retry-After": "1",
        "Cache-Control": "no-store",
        // The next request should reach the next serving process.
        Connection: "close",
      });
      response.end(body);
    });
    this.#away.emit("listening");
    this.#listener = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
      if (this.#serve !== undefined) this.#serve(socket);
      else this.refuse(socket);
    });
  }

  /**
   * Binds the port. Fails with one sentence if it is in use or not permitted.
   * @param cors origins whose pages may read answers
   */
  static async open(host: string, port: number, cors: readonly string[] = []): Promise<Front> {
    const front = new Front(host, cors);
    await new Promise<void>((resolve, reject) => {
      front.#listener.once("error", (error) => reject(describeBindFailure(error, host, port)));
      front.#listener.listen(port, host, resolve);
    });
    return front;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** Origin that reaches this server from this machine. */
  get url(): string {
    return `http://${urlHost(this.host)}:${this.port}`;
  }

  /** Hands further connections to `serve`. */
  handTo(serve: (socket: Socket) => void): void {
    this.#serve = serve;
  }

  /** Answers further connections with 503 and this sentence. */
  away(sentence: string): void {
    this.#serve = undefined;
    this.#sentence = sentence;
  }

  /** Answers one connection with 503. */
  refuse(socket: Socket): void {
    socket.on("error", () => socket.destroy());
    this.#away.emit("connection", socket);
    socket.resume();
  }

  /** Answers 502 to a request whose serving process died before the first byte of its answer. */
  giveUp(socket: Socket, asked: WaitingRequest): void {
    const path = withoutQuery(asked.path);
    const error = new HttpError(502, "The server crashed while processing this request; it is restarting.", {
      code: "server_crashed",
    });
    const body = JSON.stringify(servingErrorBody(path)(error));
    const cors = Object.entries(this.#corsHeaders(path, { headers: { origin: asked.origin } }));
    socket.on("error", () => socket.destroy());
    socket.setTimeout(lingerMs, () => socket.destroy());
    socket.end(
      "HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/json; charset=utf-8\r\n" +
        `Content-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\n` +
        `${cors.map(([name, value]) => `${name}: ${value}\r\n`).join("")}Connection: close\r\n\r\n${body}`,
    );
    // A connection closed with unread bytes is reset, and its client may lose the answer.
    socket.resume();
  }

  /** The same as the serving process sends. */
  #corsHeaders(path: string, request: Parameters<typeof corsHeaders>[0]): Record<string, string> {
    return corsHeaders(request, forPages(path) ? this.#cors : []);
  }

  close(): void {
    this.#listener.close();
    this.#away.closeAllConnections();
  }
}

function withoutQuery(url: string): string {
  return url.replace(/\?.*/s, "");
}
