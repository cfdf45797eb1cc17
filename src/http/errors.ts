import { llamaServerPaths } from "../contracts/llama-server.js";
import { underPath } from "./under-path.js";

/** An error response; the message is the sentence that the client reads. */
export class HttpError extends Error {
  override name = "HttpError";
  /** The invalid parameter, for error formats that name it. */
  readonly param: string | null;
  /** Stable machine-readable code, for error formats with one. */
  readonly code: string | null;
  readonly headers: Record<string, string>;

  constructor(
    readonly status: number,
    message: string,
    details: { param?: string; code?: string; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.param = details.param ?? null;
    this.code = details.code ?? null;
    this.headers = details.headers ?? {};
  }
}

/** Formats an error's body. */
export type ErrorBody = (error: HttpError) => object;

/** The format of every local service: `{"error": "<sentence>"}`. */
export const plainErrorBody: ErrorBody = (error) => ({ error: error.message });

/** The format that OpenAI clients expect under /v1: `{"error": {message, type, param, code}}`. */
export const openAiErrorBody: ErrorBody = (error) => ({
  error: { message: error.message, type: openAiType(error.status), param: error.param, code: error.code },
});

/** The format of llama-server's own paths: OpenAI's, with the status as code. */
const llamaServerErrorBody: ErrorBody = (error) => ({
  error: { code: error.status, message: error.message, type: openAiType(error.status), param: error.param },
});

const openAi = underPath("/v1");
const llamaServers = underPath(...llamaServerPaths.asked, ...llamaServerPaths.told);

/** The error format that clients expect at a path: OpenAI's, llama-server's, or a local service's. */
export function errorBodyAt(path: string): ErrorBody {
  if (openAi(path)) return openAiErrorBody;
  return llamaServers(path) ? llamaServerErrorBody : plainErrorBody;
}

function openAiType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

/** Whether an error only means that the client disconnected, so that there is nothing to answer or log. */
export function isDisconnect(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return (
    code === "ERR_STREAM_PREMATURE_CLOSE" ||
    code === "ERR_STREAM_DESTROYED" ||
    code === "ECONNRESET" ||
    code === "EPIPE"
  );
}

/** Turns any thrown value into an HttpError; internal errors become a 500 without details. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  const { status, expose, message } = (error ?? {}) as {
    status?: number;
    expose?: boolean;
    message?: string;
  };
  if (expose === true && typeof status === "number" && status >= 400 && status < 500) {
    return new HttpError(status, message ?? "The request was refused.");
  }
  return new HttpError(500, "Internal error; see the service's log.");
}
