/** A request that a service refused, an answer that makes no sense, or a job that did not complete. */
export class TaplineError extends Error {
  override name = "TaplineError";
  /** HTTP status, where there is one. */
  readonly status: number | undefined;

  constructor(message: string, options: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.status = options.status;
  }
}

/** A deadline passed, or a service stayed silent for too long. What it was asked to do may still go on. */
export class TimeoutError extends Error {
  override name = "TimeoutError";
}
