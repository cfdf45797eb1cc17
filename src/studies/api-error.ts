import { type ErrorCode, errorCodes } from "../contracts/studies/index.js";

/** A refused request: a stable code, the sentence that the client reads, and the invalid field. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly reason: string | undefined;
  readonly headers: Record<string, string>;

  constructor(
    code: ErrorCode,
    sentence: string,
    details: { field?: string; reason?: string; headers?: Record<string, string> } = {},
  ) {
    super(sentence);
    this.code = code;
    this.field = details.field;
    this.reason = details.reason;
    this.headers = details.headers ?? {};
  }

  get status(): number {
    return errorCodes[this.code];
  }
}
