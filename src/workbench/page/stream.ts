import { events } from "../../client/event-stream.js";
import type { Numbered } from "../wire.js";
import { open, Refusal } from "./session.js";
import { changed, known, readState, take } from "./store.js";

/**
 * One stream for all tabs of this browser, which opens at most six connections to one place: the tab that holds the lock
 * reads it and tells the others. When that tab closes, another gets the lock and goes on where its own events ended.
 */
const name = "tapline-workbench-events";
type Told = { event: Numbered } | { lost: string | undefined } | { missed: true };

/** The service says every 15 s that it is there; after so long a silence the connection is dead, closed or not. */
const silenceMs = 40_000;
const pausesMs = [250, 1000, 2000, 5000];
let reading = false;
/** Number of the last event that was heard of. */
let newest = 0;

/** Hears what other tabs tell from now on; the rest begins once the state was read. */
export function followEvents(): { begin: () => void } {
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }: MessageEvent<Told>) => hear(data);
  const tell = (told: Told) => {
    channel.postMessage(told);
    hear(told);
  };
  return {
    begin() {
      if (isBehind()) readAgain();
      void navigator.locks.request(name, () => lead(tell));
    },
  };
}

/** Whether something was heard of that is not in what was read. */
function isBehind(): boolean {
  return known.state !== undefined && known.lost === undefined && known.state.number < newest;
}

function hear(told: Told): void {
  if ("event" in told) {
    newest = Math.max(newest, told.event.number);
    if (!take(told.event)) readAgain();
  } else if ("missed" in told) readAgain();
  else if (known.lost !== told.lost) {
    known.lost = told.lost;
    changed("state");
  }
}

function readAgain(): void {
  if (reading) return;
  reading = true;
  void readState().then(
    () => {
      reading = false;
      // What came meanwhile may be newer than what was read.
      if (isBehind()) readAgain();
    },
    () => {
      reading = false;
    },
  );
}

/** Reads the stream for as long as this tab lives. */
async function lead(tell: (told: Told) => void): Promise<void> {
  for (let failures = 0; ; ) {
    try {
      const response = await open(`/api/events?after=${known.state?.number ?? 0}`);
      failures = 0;
      tell({ lost: undefined });
      for await (const data of events(chunks(response))) {
        const told = JSON.parse(data) as Numbered | { missed: true };
        tell("missed" in told ? told : { event: told });
      }
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return;
    }
    failures += 1;
    if (failures > 1) {
      tell({
        lost: "The workbench's service does not answer. Is `tapline workbench` still running? This page goes on trying.",
      });
    }
    await new Promise((resolve) => setTimeout(resolve, pausesMs[Math.min(failures, pausesMs.length) - 1]));
  }
}

async function* chunks({ body }: Response): AsyncGenerator<Uint8Array, void> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  try {
    for (;;) {
      const { done, value } = await unlessSilent(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** What arrives in time. A connection through which a laptop slept may never be closed, and brings nothing either. */
function unlessSilent<T>(arriving: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("Nothing arrived for too long.")), silenceMs);
    arriving.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
