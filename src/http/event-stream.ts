import { Readable } from "node:stream";
import type { Context } from "koa";

/** One server-sent event; objects are written as JSON. */
export function serverSentEvent(data: string | object): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${text.replace(/^/gm, "data: ")}\n\n`;
}

export interface EventStreamOptions {
  /** Last event to send when the source fails in the middle; without it the connection is reset. */
  onError?: (error: unknown) => string;
}

/**
 * Answers with a stream of server-sent events. `open` gets a signal that aborts when the client goes away, and
 * gives the events in their written form. The next one is asked for only when the client has taken the last:
 * a slow reader holds the source back instead of filling memory.
 */
export function sendEventStream(
  ctx: Context,
  open: (signal: AbortSignal) => AsyncIterable<string | Uint8Array>,
  options: EventStreamOptions = {},
): void {
  const gone = new AbortController();
  let finished = false;
  const events = async function* () {
    try {
      yield* open(gone.signal);
    } catch (error) {
      if (gone.signal.aborted) return;
      if (options.onError === undefined) throw error;
      yield options.onError(error);
    } finally {
      finished = true;
    }
  };
  const body = Readable.from(events(), { objectMode: true, highWaterMark: 1 });
  // The generator hears of a destroyed stream only at its next step; the signal reaches it while it waits.
  const onClose = () => {
    if (!finished) gone.abort();
  };
  body.once("close", onClose);
  ctx.res.once("close", onClose);
  ctx.status = 200;
  ctx.set("Content-Type", "text/event-stream; charset=utf-8");
  ctx.set("X-Accel-Buffering", "no");
  ctx.body = body;
  ctx.flushHeaders();
}
