import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { request } from "node:https";
import { researchEnvironment } from "../contracts/research.js";
import { ResearchError } from "./research-errors.js";

/** One request and its limits. */
export interface SecureExchange {
  url: URL;
  method: "GET" | "POST";
  /** Null for public resources. */
  token: string | null;
  body?: Uint8Array;
  headers?: Record<string, string>;
  /** PEM certificates to trust instead of Node's own. */
  ca?: string;
  /** Most bytes to read. */
  maxBytes: number;
  /** Aborts the exchange; the promise then rejects with its reason. */
  signal: AbortSignal;
}

export interface SecureAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** A broken connection, as opposed to a rejected response: a read may be retried. */
export class ConnectionBroke extends ResearchError {
  override name = "ResearchError";
  /** Whether an immediate retry could help; not if nothing listens or the certificate is wrong. */
  readonly transient: boolean;
  /** Whether the service was reached and may have received the request. */
  readonly reached: boolean;

  constructor(
    message: string,
    code: string,
    { transient, reached }: { transient: boolean; reached: boolean },
  ) {
    super(message, { cause: { code } });
    this.transient = transient;
    this.reached = reached;
  }
}

/**
 * One HTTPS request on a new connection, read completely. Certificates are always verified, whatever
 * NODE_TLS_REJECT_UNAUTHORIZED says. Redirects are errors, so the token cannot be sent elsewhere. A response is rejected if
 * it is too large, compressed or truncated, or if its checksum does not match.
 */
export function exchange(call: SecureExchange): Promise<SecureAnswer> {
  const { url, signal } = call;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const outgoing = request(url, {
      method: call.method,
      agent: false,
      ca: call.ca,
      rejectUnauthorized: true,
      minVersion: "TLSv1.2",
      headers: {
        Accept: "application/json",
        "Accept-Encoding": "identity",
        ...(call.token === null ? {} : { Authorization: `Bearer ${call.token}` }),
        ...(call.body === undefined
          ? {}
          : { "Content-Type": "application/json", "Content-Length": call.body.byteLength }),
        ...call.headers,
      },
    });
    const settle = (outcome: () => void) => {
      signal.removeEventListener("abort", onAbort);
      outgoing.destroy();
      outcome();
    };
    const fail = (error: unknown) => settle(() => reject(error));
    const onAbort = () => fail(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    let reached = false;
    outgoing.on("socket", (socket) => {
      socket.once("secureConnect", () => {
        reached = true;
      });
    });
    outgoing.on("error", (error) => fail(connectionError(url, error, reached)));
    outgoing.on("response", (response) => {
      response.on("error", (error) => fail(connectionError(url, error, reached)));
      const refusal = refuseHead(response, call.maxBytes);
      if (refusal !== undefined) return fail(refusal);
      const parts: Buffer[] = [];
      let bytes = 0;
      response.on("data", (part: Buffer) => {
        bytes += part.length;
        if (bytes > call.maxBytes) return fail(tooLarge(call.maxBytes));
        parts.push(part);
      });
      response.on("end", () => {
        const body = Buffer.concat(parts);
        const wrong = refuseBody(response, body);
        if (wrong !== undefined) return fail(wrong);
        const { statusCode, headers } = response;
        settle(() => resolve({ status: statusCode as number, headers, body }));
      });
    });
    outgoing.end(call.body);
  });
}

function refuseHead({ statusCode, headers }: IncomingMessage, maxBytes: number): Error | undefined {
  const status = statusCode as number;
  if (status >= 300 && status < 400) {
    return new ResearchError(
      `The service answered with a redirect (status ${status}); redirects are not followed.`,
      { status },
    );
  }
  if ((headers["content-encoding"] ?? "identity").toLowerCase() !== "identity") {
    return new ResearchError("The response has a content coding, which was not requested.", { status });
  }
  const length = headers["content-length"];
  return length !== undefined && Number(length) > maxBytes ? tooLarge(maxBytes) : undefined;
}

function refuseBody({ complete, headers, statusCode }: IncomingMessage, body: Buffer): Error | undefined {
  if (!complete)
    return new ConnectionBroke("The response ended before it was complete.", "ECONNRESET", {
      transient: true,
      reached: true,
    });
  const expected = headers["x-content-sha256"];
  if (expected === undefined || expected === createHash("sha256").update(body).digest("hex"))
    return undefined;
  return new ResearchError("The response does not match its checksum.", {
    status: statusCode,
  });
}

function tooLarge(maxBytes: number): ResearchError {
  return new ResearchError(`The response is larger than ${maxBytes} bytes.`);
}

/** Errors for which an immediate retry is useless. */
const absent: Record<string, string> = { ECONNREFUSED: "Nothing listens at", ENOTFOUND: "Unknown host" };

// Report only error codes: Node's messages and causes may quote the response or the request.
function connectionError({ host }: URL, error: Error, reached: boolean): Error {
  if (error instanceof ResearchError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? "no code";
  const broke = (sentence: string, transient: boolean) =>
    new ConnectionBroke(sentence, code, { transient, reached });
  if (absent[code] !== undefined) return broke(`${absent[code]} ${host}.`, false);
  if (/CERT|SIGNATURE|ISSUER|ALTNAME|ERR_SSL|ERR_TLS|CRL/.test(code)) {
    const advice = `set ${researchEnvironment.caFile} to trust your own certificate authority`;
    return broke(`The connection to ${host} is not secure (${code}); ${advice}.`, false);
  }
  return broke(`The connection to ${host} broke (${code}).`, true);
}
