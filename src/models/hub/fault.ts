import { UserError } from "../../contracts/user-error.js";
import type { HubSettings } from "./settings.js";

/** A failure of the hub or the connection to it. */
export class HubFault extends UserError {
  /** Whether a retry may help: a lost connection, a server error. */
  readonly passing: boolean;
  /** Milliseconds to wait before retrying, from the hub. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, passing = false, retryAfterMs?: number) {
    super(message);
    this.passing = passing;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Longest wait in seconds; longer Retry-After values are capped, and the next error is then reported. */
const longestWait = 60;

/** The server ignored a range request and sent the file from its start. */
export class RangeIgnored extends Error {}

/** The subject of a request, for error messages. */
export interface Subject {
  repository: string;
  revision?: string;
  file?: string;
}

/** The error for a refused request. */
export function answerFault(settings: HubSettings, subject: Subject, response: Response): HubFault {
  const { repository, revision = "main", file } = subject;
  const host = new URL(settings.endpoint).host;
  const code = response.headers.get("x-error-code");
  const { status } = response;
  const page = `${settings.endpoint}/${repository}`;
  if (code === "GatedRepo") {
    return new HubFault(
      settings.token === undefined
        ? `${repository} is gated: accept its terms at ${page} and set HF_TOKEN to a token of your account.`
        : `${repository} is gated, and the token's account has no access yet; request it at ${page}.`,
    );
  }
  if (code === "RevisionNotFound") return new HubFault(`${repository} has no revision "${revision}".`);
  if (code === "EntryNotFound") return new HubFault(`${repository} has no file ${file} at ${revision}.`);
  switch (status) {
    case 401:
      if (settings.token !== undefined && code !== "RepoNotFound") {
        return new HubFault(`${host} rejected the token (HF_TOKEN); it may have expired.`);
      }
      return missingRepository(host, subject, settings);
    case 403:
      return new HubFault(`${host} denied access to ${repository}; see ${page}.`);
    case 404:
      return missingRepository(host, subject, settings);
    default: {
      const seconds = Number(response.headers.get("retry-after"));
      const passing = status === 408 || status === 429 || status >= 500;
      return new HubFault(
        status === 429
          ? `Too many requests to ${host}; try again in a few minutes.`
          : `${host} answered ${status} for ${file ?? repository}; try again later.`,
        passing,
        seconds > 0 ? 1000 * Math.min(longestWait, seconds) : undefined,
      );
    }
  }
}

function missingRepository(host: string, { repository }: Subject, settings: HubSettings): HubFault {
  const token = settings.token === undefined ? " (private repositories require a token in HF_TOKEN)" : "";
  return new HubFault(`${repository} is neither a local file nor a repository on ${host}${token}.`);
}

/** The error for a failed connection. */
export function connectionFault(settings: HubSettings, subject: Subject, error: unknown): HubFault {
  const { host } = new URL(settings.endpoint);
  return new HubFault(
    `${subject.file ?? subject.repository} is not on this machine, and ${host} is unreachable (${reason(error)}).`,
    true,
  );
}

function reason(error: unknown): string {
  const { cause, code, name, message } = error as Error & { code?: string; cause?: unknown };
  if (name === "TimeoutError") return "timeout";
  if (cause !== undefined) return reason(cause);
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "its name does not resolve; is the network down?";
    case "ECONNREFUSED":
      return "connection refused";
    case "ECONNRESET":
    case "UND_ERR_SOCKET":
      return "connection reset";
    case "UND_ERR_CONNECT_TIMEOUT":
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
    case "ETIMEDOUT":
      return "timeout";
    default:
      return code ?? message;
  }
}
