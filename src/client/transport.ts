import { type IncomingMessage, request } from "node:http";
import { ports } from "../contracts/limits.js";
import { TaplineError, TimeoutError } from "./errors.js";

/** Options of every call. */
export interface CallOptions {
  /** Aborts the request; the call then rejects with the signal's reason. */
  signal?: AbortSignal;
}

interface Exchange extends CallOptions {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Bytes are sent unchanged; anything else as JSON. */
  body?: unknown;
}

/** Local services: the command that starts each, and its default port. */
const starters = {
  lab: ["tapline lab", ports.lab],
  serve: ["tapline serve", ports.inference],
} as const;
type Service = keyof typeof starters;

/**
 * Plain HTTP to one local service, with one connection per request. Not `fetch`, which always times out after 300 s of
 * silence and keeps connections open.
 */
export class Transport {
  readonly #origin: URL;
  readonly #headers: Record<string, string>;
  readonly #service: Service | undefined;

  /**
   * @param timeoutMs longest silence of the service within one request
   * @param options.headers sent with every request
   * @param options.service the expected service, for the error if nothing listens
   * @param options.apiKey the service's key; default for an inference server or a router: TAPLINE_API_KEY
   */
  constructor(
    baseUrl: string,
    private readonly timeoutMs: number,
    {
      headers = {},
      service,
      apiKey = service === "serve" ? process.env.TAPLINE_API_KEY : undefined,
    }: { headers?: Record<string, string>; service?: Service; apiKey?: string } = {},
  ) {
    const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
    if (url?.protocol !== "http:" || url.pathname !== "/" || url.search !== "" || url.username !== "") {
      throw new TaplineError(`A service's address must look like http://127.0.0.1:8980, got ${baseUrl}.`);
    }
    this.#origin = url;
    this.#headers = { ...(apiKey && { Authorization: `Bearer ${apiKey}` }), ...headers };
    this.#service = service;
  }

  /** Sends a request and reads its JSON answer. @throws TaplineError, TimeoutError, the signal's reason */
  async json<T>(path: string, exchange: Exchange = {}): Promise<T> {
    const response = await this.open(path, exchange);
    return parse(await this.#text(response, exchange.signal), path) as T;
  }

  /** Sends a request and reads its answer's bytes. @throws as json() */
  async bytes(path: string, exchange: Exchange = {}): Promise<Buffer> {
    return this.#whole(await this.open(path, exchange), exchange.signal);
  }

  /** Sends a request and returns its response as a stream. @throws as json() */
  async open(path: string, exchange: Exchange = {}): Promise<IncomingMessage> {
    const response = await this.#send(path, exchange);
    const status = response.statusCode as number;
    if (status >= 200 && status < 300) return response;
    const text = await this.#text(response, exchange.signal);
    const sentence = errorSentence(text) ?? `${path} returned status ${status}.`;
    const hint = status === 401 && this.#service === "serve" ? " Set TAPLINE_API_KEY to the key." : "";
    throw new TaplineError(sentence + hint, { status });
  }

  #send(path: string, { method = "GET", body, signal }: Exchange): Promise<IncomingMessage> {
    const raw = body instanceof Uint8Array;
    const payload =
      body === undefined ? undefined : raw ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const headers = {
        ...this.#headers,
        ...(payload === undefined
          ? {}
          : {
              "Content-Type": raw ? "application/octet-stream" : "application/json",
              "Content-Length": payload.length,
            }),
      };
      const outgoing = request(new URL(path, this.#origin), { method, headers, signal, agent: false });
      let reading: IncomingMessage | undefined;
      outgoing.setTimeout(this.timeoutMs, () => {
        const seconds = this.timeoutMs / 1000;
        // Pass the reason to the response's reader if there is a response, else to the request.
        (reading ?? outgoing).destroy(
          new TimeoutError(`No response from ${this.#origin.origin} for ${seconds} s.`),
        );
      });
      outgoing.on("error", (error) => reject(this.#explain(error, signal)));
      outgoing.on("response", (response) => {
        reading = response;
        resolve(response);
      });
      outgoing.end(payload);
    });
  }

  async #text(response: IncomingMessage, signal: AbortSignal | undefined): Promise<string> {
    return (await this.#whole(response, signal)).toString();
  }

  async #whole(response: IncomingMessage, signal: AbortSignal | undefined): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.chunks(response, signal)) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /** The bytes of a response. @throws TaplineError if it ends early, TimeoutError, the signal's reason */
  async *chunks(response: IncomingMessage, signal?: AbortSignal): AsyncGenerator<Buffer, void> {
    try {
      yield* response as AsyncIterable<Buffer>;
    } catch (error) {
      throw this.#explain(error, signal);
    }
  }

  #explain(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    if (error instanceof TimeoutError) return error;
    const code = (error as NodeJS.ErrnoException).code;
    const sentence =
      code === "ECONNREFUSED"
        ? `Nothing listens at ${this.#origin.origin}; ${this.#starting()}`
        : `The connection to ${this.#origin.origin} broke (${code ?? (error as Error).message}).`;
    return new TaplineError(sentence, { cause: error });
  }

  #starting(): string {
    const { hostname, port } = this.#origin;
    if (this.#service === undefined || !["127.0.0.1", "localhost", "[::1]"].includes(hostname)) {
      return "is the service running?";
    }
    const [command, usual] = starters[this.#service];
    return `start it with ${command}${Number(port) === usual ? "" : ` --port ${port}`}.`;
  }
}

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new TaplineError(`The response of ${path} is not JSON.`, { cause });
  }
}

/** The sentence in an error body: `{"error": "…"}`, or OpenAI's `{"error": {"message": "…"}}`. */
function errorSentence(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: string | { message?: string } };
    return typeof error === "string" ? error : error?.message;
  } catch {
    return undefined;
  }
}
