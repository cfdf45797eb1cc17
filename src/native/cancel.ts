import type { NativeCancelToken } from "./binding.js";
import { NativeError } from "./error.js";
import { binding } from "./load.js";

/**
 * Runs a native operation that `signal` can cancel: at its next check (between blocks, batches or optimiser steps) it
 * rejects with code CANCELLED.
 */
export async function cancellable<T>(
  signal: AbortSignal | undefined,
  run: (cancel: NativeCancelToken) => Promise<T>,
): Promise<T> {
  const token = new (binding().CancelToken)();
  const onAbort = () => token.cancel();
  if (signal?.aborted) throw new NativeError("CANCELLED", "The operation was cancelled.");
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return await NativeError.translate(() => run(token));
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
