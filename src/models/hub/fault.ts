import { UserError } from "../../contracts/user-error.js";
import type { HubSettings } from "./settings.js";

/** Something that the hub, or the way to it, did not give. The message is one sentence. */
export class HubFault extends UserError {
  /** Trying again may help: a lost connection, a server in trouble. */
  readonly passing: boolean;
  /** Milliseconds after which the hub wants to be asked again. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, passing = false, retryAfterMs?: number) {
    super(message);
    this.passing = passing;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Seconds: whoever is told to come back tomorrow asks once more, and then says what the hub answers. */
const longestWait = 60;

/** The server sent the file from its start although a part was asked for. */
export class RangeIgnored extends Error {}

/** What a request is about, for sentences. */
export interface Subject {
  repository: string;
  revision?: string;
  file?: string;
}

/** What a refusing answer means, in one sentence. */
export function answerFault(settings: HubSettings, subject: Subject, response: Response): HubFault {
  const { repository, revision = "main", file } = subject;
  const host = new URL(settings.endpoint).host;
  const code = response.headers.get("x-error-code");
  const { status } = response;
  const page = `${settings.endpoint}/${repository}`;
  if (code === "GatedRepo") {
    return new HubFault(
      settings.token === undefined
        ? `${repository} is gated: accept its terms at ${page} and set HF_TOKEN to a token of that account.`
        : `${repository} is gated, and the account of the token has no access to it yet; ask for it at ${page}.`,
    );
  }
  if (code === "RevisionNotFound") return new HubFault(`${repository} has no revision "${revision}".`);
  if (code === "EntryNotFound") return new HubFault(`${repository} has no file ${file} at ${revision}.`);
  switch (status) {
    case 401:
      if (settings.token !== undefined && code !== "RepoNotFound") {
        return new HubFault(`${host} does not accept the token (HF_TOKEN); it may have expired.`);
      }
      return missingRepository(host, subject, settings);
    case 403:
      return new HubFault(`${host} refuses access to ${repository}; its page ${page} may say why.`);
    case 404:
      return missingRepository(host, subject, settings);
    default: {
      const seconds = Number(response.headers.get("retry-after"));
      const passing = status === 408 || status === 429 || status >= 500;
      return new HubFault(
        status === 429
          ? `${host} has had too many requests from here; try again in a few minutes.`
          : `${host} answered ${status} for ${file ?? repository}; try again later.`,
        passing,
        seconds > 0 ? 1000 * Math.min(longestWait, seconds) : undefined,
      );
    }
  }
}

function missingRepository(host: string, { repository }: Subject, settings: HubSettings): HubFault {
  const token = settings.token === undefined ? " (a private one needs a token in HF_TOKEN)" : "";
  return new HubFault(
    `There is no file ${repository} here and no repository of that name on ${host}${token}.`,
  );
}

/** Why no answer came at all. */
export function connectionFault(settings: HubSettings, subject: Subject, error: unknown): HubFault {
  const { host } = new URL(settings.endpoint);
  return new HubFault(
    `${subject.file ?? subject.repository} is not here, and ${host} cannot be reached (${reason(error)}).`,
    true,
  );
}

function reason(error: unknown): string {
  const { cause, code, name, message } = error as Error & { code?: string; cause?: unknown };
  if (name === "TimeoutError") return "it does not answer";
  if (cause !== undefined) return reason(cause);
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "its name is not known: is the network down?";
    case "ECONNREFUSED":
      return "it refuses the connection";
    case "ECONNRESET":
    case "UND_ERR_SOCKET":
      return "the connection was cut";
    case "UND_ERR_CONNECT_TIMEOUT":
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
    case "ETIMEDOUT":
      return "it does not answer";
    default:
      return code ?? message;
  }
}
