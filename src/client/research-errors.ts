import { TaplineError } from "./errors.js";

export interface ResearchErrorDetails {
  status?: number;
  code?: string;
  field?: string;
  requestId?: string;
  retryAfter?: number;
  serviceSentence?: string;
  reason?: string;
  /** Only the code of a connection's fault: Node's own errors may quote what was sent. */
  cause?: unknown;
}

/**
 * A call that the studies service refused, or an answer that cannot be trusted: cut short, changed, too large,
 * redirected, not what the contract says. It never holds the token.
 */
export class ResearchError extends TaplineError {
  override name = "ResearchError";
  /** The service's stable code, such as `scope_missing`. */
  readonly code: string | undefined;
  /** JSON pointer into the body, or the parameter or header at fault. */
  readonly field: string | undefined;
  /** Names the answer in the service's log. */
  readonly requestId: string | undefined;
  /** Seconds after which the same call is admitted again, where the service told (429, 503). */
  readonly retryAfter: number | undefined;
  /** What the service itself said, where it said something: text from elsewhere. */
  readonly serviceSentence: string | undefined;
  /** Why a study was withdrawn or removed (410), in the words of who did it: text from elsewhere. */
  readonly reason: string | undefined;

  constructor(message: string, details: ResearchErrorDetails = {}) {
    super(message, { status: details.status, cause: details.cause });
    this.code = details.code;
    this.field = details.field;
    this.requestId = details.requestId;
    this.retryAfter = details.retryAfter;
    this.serviceSentence = details.serviceSentence;
    this.reason = details.reason;
  }
}

/**
 * A save whose outcome is not known: the request may have arrived, its answer did not. The draft may exist. Look
 * on the website, or save the same package with the same `idempotencyKey`: within 24 hours that gives the draft
 * that exists, or creates it.
 */
export class DraftMayExistError extends ResearchError {
  override name = "DraftMayExistError";
  readonly idempotencyKey: string;

  constructor(reason: string, idempotencyKey: string, details: ResearchErrorDetails = {}) {
    super(
      `${reason} The draft may exist: look on the website, or save the same package again with the same ` +
        "idempotency key, which never makes a second one within 24 hours.",
      details,
    );
    this.idempotencyKey = idempotencyKey;
  }
}
