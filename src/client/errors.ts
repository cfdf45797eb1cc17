/** A request that a service refused, an invalid answer, or a job that did not complete. */
export class TaplineError extends Error {
  override name = "TaplineError";
  /** HTTP status, if there is one. */
  readonly status: number | undefined;

  constructor(message: string, options: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.status = options.status;
  }
}

/** A deadline passed, or a service was silent for too long. The requested work may still be running. */
export class TimeoutError extends Error {
  override name = "TimeoutError";
}
