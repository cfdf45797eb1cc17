/** The stable error codes of native code (native/base/error.h). */
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

/** An error from the addon; `message` is a sentence that says what to do. */
export class NativeError extends Error {
  readonly code: NativeErrorCode;

  constructor(code: NativeErrorCode, message: string) {
    super(message);
    this.name = "NativeError";
    this.code = code;
  }

  /** An error of the addon as a NativeError with a JavaScript stack; any other error unchanged. */
  static from(error: unknown): unknown {
    if (!(error instanceof Error) || error instanceof NativeError) return error;
    const code = (error as { code?: unknown }).code;
    const known = nativeErrorCodes.find((candidate) => candidate === code);
    return known === undefined ? error : new NativeError(known, error.message);
  }

  /** Calls the addon; its errors become NativeErrors. */
  static async translate<T>(call: () => T | Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      throw NativeError.from(error);
    }
  }
}
