/** What native code reports, as stable codes (native/base/error.h). */
export const nativeErrorCodes = [
  "INVALID_ARGUMENT",
  "MODEL_LOAD",
  "UNSUPPORTED_ARCHITECTURE",
  "LAYER_OUT_OF_RANGE",
  "TOKEN_LIMIT",
  "CANCELLED",
  "CLOSED",
  "OUT_OF_MEMORY",
  "COMPUTE",
  "INTERNAL",
] as const;

export type NativeErrorCode = (typeof nativeErrorCodes)[number];

/** An error from the addon: `message` is one sentence a person can act on. */
export class NativeError extends Error {
  readonly code: NativeErrorCode;

  constructor(code: NativeErrorCode, message: string) {
    super(message);
    this.name = "NativeError";
    this.code = code;
  }

  /** The NativeError in `error`, with a JavaScript stack; anything else comes back as it is. */
  static from(error: unknown): unknown {
    if (!(error instanceof Error) || error instanceof NativeError) return error;
    const code = (error as { code?: unknown }).code;
    const known = nativeErrorCodes.find((candidate) => candidate === code);
    return known === undefined ? error : new NativeError(known, error.message);
  }
}
