import { events } from "../../client/event-stream.js";
import type { Numbered } from "../wire.js";
import { open, Refusal } from "./session.js";
import { changed, known, readState, take } from "./store.js";

/**
 * One stream for all tabs, because browsers open at most six connections per host: the tab that holds the lock reads the
 * stream and forwards it to the others. When that tab closes, another gets the lock and resumes after its last event.
 */
const name = "tapline-workbench-events";
type Message = { event: Numbered } | { lost: string | undefined } | { missed: true };

/** The service sends a heartbeat every 15 s; after this long without one, the connection is dead. */
const silenceMs = 40_000;
const pausesMs = [250, 1000, 2000, 5000];
let reading = false;
/** Number of the last event received. */
let newest = 0;

/** Listens to the other tabs; `begin` starts the rest once the state is loaded. */
export function followEvents(): { begin: () => void } {
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }: MessageEvent<Message>) => receive(data);
  const send = (message: Message) => {
    channel.postMessage(message);
    receive(message);
  };
  return {
    begin() {
      if (isBehind()) readAgain();
      void navigator.locks.request(name, () => lead(send));
    },
  };
}

/** Whether events were received that are not in the loaded state. */
function isBehind(): boolean {
  return known.state !== undefined && known.lost === undefined && known.state.number < newest;
}

function receive(message: Message): void {
  if ("event" in message) {
    newest = Math.max(newest, message.event.number);
    if (!take(message.event)) readAgain();
  } else if ("missed" in message) readAgain();
  else if (known.lost !== message.lost) {
    known.lost = message.lost;
    changed("state");
  }
}

function readAgain(): void {
  if (reading) return;
  reading = true;
  void readState()
    .finally(() => {
      reading = false;
    })
    // Newer events may have arrived in the meantime.
    .then(
      () => isBehind() && readAgain(),
      () => {},
    );
}

/** Reads the stream for the lifetime of this tab. */
async function lead(send: (message: Message) => void): Promise<void> {
  for (let failures = 0; ; ) {
    try {
      const response = await open(`/api/events?after=${known.state?.number ?? 0}`);
      failures = 0;
      send({ lost: undefined });
      for await (const data of events(chunks(response))) {
        const event = JSON.parse(data) as Numbered | { missed: true };
        send("missed" in event ? event : { event });
      }
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return;
    }
    failures += 1;
    if (failures > 1) {
      send({ lost: "Can't reach the workbench. Is `tapline workbench` still running? Retrying…" });
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

/** Rejects after a long silence: after sleep, a connection may stay open without delivering anything. */
function unlessSilent<T>(arriving: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("No data for too long.")), silenceMs);
    arriving.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
