/**
 * Below this size of the weights, waiting threads cost more than they gain: on the embedded model (3 MB) one thread takes
 * 0.6 ms for a short prompt and two take 2.5 ms, and on a busy machine a thousand times that, because each of the many tiny
 * steps waits until the system has run both.
 */
const singleThreadedBytes = 40_000_000;

/** The number of threads for a model of this size; undefined: all cores. */
export function threadsFor(weightBytes: number): number | undefined {
  return weightBytes < singleThreadedBytes ? 1 : undefined;
}
