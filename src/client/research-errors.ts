import { TaplineError } from "./errors.js";

export interface ResearchErrorDetails {
  status?: number;
  code?: string;
  field?: string;
  requestId?: string;
  retryAfter?: number;
  serviceSentence?: string;
  reason?: string;
  /** Only the error code, since Node's errors may quote the request. */
  cause?: unknown;
}

/**
 * A call that the studies service refused, or a response that cannot be trusted: truncated, altered, too large,
 * redirected, or not matching the contract. It never contains the token.
 */
export class ResearchError extends TaplineError {
  override name = "ResearchError";
  /** The service's stable code, such as `scope_missing`. */
  readonly code: string | undefined;
  /** JSON pointer into the body, or the invalid parameter or header. */
  readonly field: string | undefined;
  /** Identifies the request in the service's log. */
  readonly requestId: string | undefined;
  /** Seconds to wait before retrying, if the service sent them (429, 503). */
  readonly retryAfter: number | undefined;
  /** The service's own message, if any: untrusted text. */
  readonly serviceSentence: string | undefined;
  /** Why a study was withdrawn or removed (410), as given by its author or a moderator: untrusted text. */
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
 * A save with an unknown outcome: the request may have arrived, but there was no valid response. Check the website, or save
 * the same package with the same `idempotencyKey`: within 24 hours that returns the existing draft or creates it.
 */
export class DraftMayExistError extends ResearchError {
  override name = "DraftMayExistError";
  readonly idempotencyKey: string;

  constructor(reason: string, idempotencyKey: string, details: ResearchErrorDetails = {}) {
    super(
      `${reason} The draft may exist: check the website, or save the same package again with the same ` +
        "idempotency key, which creates no second draft within 24 hours.",
      details,
    );
    this.idempotencyKey = idempotencyKey;
  }
}
