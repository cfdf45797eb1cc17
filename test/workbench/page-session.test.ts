/** What the page says to the service and hears from it, in a browser's place: its address, its storage, its tabs. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Numbered, State } from "../../src/workbench/wire.js";
import { until } from "../support/until.js";
import { pageModule } from "./page-modules.js";

interface Call {
  method?: string;
  signal?: AbortSignal;
}
const { call, forget, hasLinkToken, open, Refusal, signIn, whenSignedOut } = await pageModule<{
  call(path: string, options?: Call): Promise<unknown>;
  forget(): void;
  hasLinkToken(): boolean;
  open(path: string, options?: Call): Promise<unknown>;
  Refusal: new () => Error & { status: number };
  signIn(): Promise<string | undefined>;
  whenSignedOut(heard: (sentence: string) => void): void;
}>("session");
const { known, listen } = await pageModule<{
  known: { state: State | undefined; lost: string | undefined };
  listen(topic: string, heard: () => void): () => void;
}>("store");
const { followEvents } = await pageModule<{ followEvents(): { begin(): void } }>("stream");

const token = "t".repeat(43);
const link = { hash: `#${token}`, pathname: "/chat", search: "?a=1" };
/** Requests in order, each with what was in the address then. */
const asked: { path: string; method: string; secret: string; type: string; body: unknown; hash: string }[] =
  [];
const stored = new Map<string, string>();
let location = { ...link };
let answer: (path: string, signal?: AbortSignal) => Response | Promise<Response> = () => Response.json({});

/** What the modules find in a browser. */
const browser = {
  localStorage: {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, value: string) => void stored.set(name, value),
    removeItem: (name: string) => void stored.delete(name),
  },
  history: {
    replaceState: (_: unknown, __: string, path: string) => {
      location = { ...location, hash: "" };
      assert.is(path, location.pathname + location.search);
    },
  },
  fetch: async (path: string, init: RequestInit) => {
    const headers = new Headers(init.headers);
    asked.push({
      path,
      method: init.method ?? "",
      secret: headers.get("X-Tapline-Workbench") ?? "none",
      type: headers.get("Content-Type") ?? "none",
      body: init.body === undefined ? undefined : JSON.parse(init.body as string),
      hash: location.hash,
    });
    return answer(path, init.signal ?? undefined);
  },
};
const saved = new Map<string, PropertyDescriptor | undefined>();
function define(name: string, descriptor: PropertyDescriptor): void {
  if (!saved.has(name)) saved.set(name, Object.getOwnPropertyDescriptor(globalThis, name));
  Object.defineProperty(globalThis, name, { configurable: true, ...descriptor });
}
for (const [name, value] of Object.entries(browser)) define(name, { value, writable: true });
define("location", { get: () => location });
test.after(() => {
  for (const [name, descriptor] of saved) {
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  }
});
test.before.each(() => {
  asked.length = 0;
  stored.clear();
  location = { ...link };
  answer = () => Response.json({ secret: "s" });
  whenSignedOut(() => {});
});

const refusal = (work: Promise<unknown>): Promise<[number, string]> =>
  work.then(
    () => assert.unreachable("It should have been refused.") as never,
    ({ status, message }: Error & { status: number }) => [status, message],
  );

test("a link's token leaves the address before it is shown, and the secret for it is kept", async () => {
  assert.ok(hasLinkToken());
  assert.is(await signIn(), undefined);
  assert.equal(asked, [
    {
      ...{ path: "/api/session", method: "POST", secret: "", type: "application/json" },
      ...{ body: { token }, hash: "" },
    },
  ]);
  assert.not(hasLinkToken());
  assert.equal([...stored], [["tapline-workbench", "s"]]);
  // From now on every request says it; a reading one has no body.
  await call("/api/state");
  assert.equal(asked[1], {
    ...{ path: "/api/state", method: "GET", secret: "s", type: "none", body: undefined, hash: "" },
  });
  await call("/api/jobs/1", { method: "DELETE" });
  assert.equal([asked[2]?.method, asked[2]?.type, asked[2]?.body], ["DELETE", "application/json", {}]);
  forget();
  assert.is(stored.size, 0);
});

test("invalid tokens are refused, and a browser learns where to get one", async () => {
  for (const hash of ["", "#", `#${"t".repeat(42)}`, `#${token}x`, "#ü".padEnd(44, "t")]) {
    location = { ...link, hash };
    assert.not(hasLinkToken(), hash);
    assert.match((await signIn()) ?? "", /^You're not signed in\. Open the link/);
  }
  assert.equal(asked, []);
});

test("an old link is refused, and does no harm to a browser that is signed in", async () => {
  answer = () => Response.json({ error: "That link was used." }, { status: 401 });
  let heard = 0;
  whenSignedOut(() => heard++);
  assert.is(await signIn(), "That link was used.");
  stored.set("tapline-workbench", "kept");
  location = { ...link };
  assert.is(await signIn(), undefined);
  assert.equal([stored.get("tapline-workbench"), heard], ["kept", 0]);
});

test("a refusal has the service's sentence; one of who is not known any more forgets, and is heard", async () => {
  const heard: string[] = [];
  whenSignedOut((sentence) => heard.push(sentence));
  stored.set("tapline-workbench", "s");
  answer = () => Response.json({ error: "The queue is full." }, { status: 503 });
  assert.equal(await refusal(call("/api/jobs", { method: "POST" })), [503, "The queue is full."]);
  answer = () => new Response("<html>", { status: 502 });
  assert.equal(await refusal(call("/api/jobs")), [502, "/api/jobs returned status 502."]);
  assert.equal([heard, stored.size], [[], 1]);
  answer = () => Response.json({ error: "Who are you?" }, { status: 401 });
  assert.equal(await refusal(call("/api/state")), [401, "Who are you?"]);
  assert.equal([heard, stored.size], [["Who are you?"], 0]);
});

test("a service that ended is reported, except for requests that the page cancelled", async () => {
  answer = () => Promise.reject(new TypeError("fetch failed"));
  const [status, sentence] = await refusal(open("/api/state"));
  assert.is(status, 0);
  assert.match(sentence, /^Can't reach the workbench\./);
  const ending = new AbortController();
  const { signal } = ending;
  answer = () => {
    ending.abort();
    return Promise.reject(new Error("ended"));
  };
  const error = await open("/api/state", { signal }).catch((error: Error) => error);
  assert.is((error as Error).message, "ended");
  assert.not.instance(error, Refusal);
});

/** A stream of events that the test writes. */
function stream() {
  let end = () => {};
  let send = (_: object) => {};
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      send = (told) => controller.enqueue(Buffer.from(`data: ${JSON.stringify(told)}\n\n`));
      end = () => controller.close();
    },
  });
  return { response: new Response(body), send: (told: object) => send(told), end: () => end() };
}
const state = (number: number, mark: string) =>
  ({ number, jobs: [mark], conversations: [], models: [], server: {}, lab: {} }) as never;
const jobs = (number: number, mark: string) =>
  ({ number, event: { type: "jobs", jobs: [mark] } }) as unknown as Numbered;
const marks = () => known.state?.jobs as unknown as string[];

test("events are taken in order; where some are missed everything is read again; a stream that ends is opened again", async () => {
  const timers = globalThis.setTimeout;
  const pauses: number[] = [];
  const locks: string[] = [];
  const tabs = new BroadcastChannel("tapline-workbench-events");
  const told: unknown[] = [];
  tabs.onmessage = (event) => told.push((event as MessageEvent).data);
  const locked = {
    request: (name: string, run: () => Promise<void>) => {
      locks.push(name);
      return run();
    },
  };
  define("navigator", { value: { locks: locked } });
  // Its own pauses are over at once; silence is never.
  define("setTimeout", {
    value: (run: () => void, ms = 0) => {
      if (ms >= 250 && ms < 40_000) pauses.push(ms);
      return ms === 40_000 ? timers(() => {}, 0) : timers(run, ms >= 250 ? 0 : ms);
    },
  });
  const channels: { close(): void }[] = [];
  const Channel = globalThis.BroadcastChannel;
  define("BroadcastChannel", {
    value: class extends Channel {
      constructor(name: string) {
        super(name);
        channels.push(this);
      }
    },
  });
  const streams = [stream(), stream(), stream()];
  const lost: (string | undefined)[] = [];
  const stop = listen("state", () => lost.push(known.lost));
  let refusals = 0;
  let states = 0;
  answer = (path) => {
    if (path === "/api/state") return Response.json(state(9, `read ${++states}`));
    const next = streams.shift();
    if (next !== undefined) return next.response;
    // Nobody answers for a while, and then somebody who does not know this browser.
    return refusals++ < 5
      ? Promise.reject(new TypeError("gone"))
      : Response.json({ error: "Who?" }, { status: 401 });
  };
  const [first, second, third] = streams as [
    ReturnType<typeof stream>,
    ReturnType<typeof stream>,
    (typeof streams)[0],
  ];
  try {
    known.state = state(4, "begin");
    followEvents().begin();
    const opened = () => asked.filter(({ path }) => path.startsWith("/api/events")).map(({ path }) => path);
    await until(() => opened().length === 1);
    first.send(jobs(5, "five"));
    first.send(jobs(6, "six"));
    first.send(jobs(5, "again"));
    await until(() => known.state?.number === 6);
    assert.equal(
      [marks(), opened(), locks, states],
      [["six"], ["/api/events?after=4"], ["tapline-workbench-events"], 0],
    );
    // One is missing before it.
    first.send(jobs(8, "eight"));
    await until(() => states === 1);
    await until(() => known.state?.number === 9);
    // The newest that is heard of is in what is read: nothing is read once more for it.
    first.send(jobs(9, "nine"));
    first.send({ missed: true });
    await until(() => marks()[0] === "read 2");
    first.end();
    await until(() => opened().length === 2);
    assert.equal([opened()[1], pauses], ["/api/events?after=9", [250]]);
    assert.is(known.lost, undefined, "one that ends is no loss");
    assert.equal(
      lost.filter((sentence) => sentence !== undefined),
      [],
    );
    assert.is(states, 2);
    second.send(jobs(10, "ten"));
    await until(() => known.state?.number === 10);
    second.end();
    await until(() => opened().length === 3);
    third?.end();
    await until(() => refusals === 6);
    await until(() => asked.at(-1)?.path.startsWith("/api/events"));
    // Each that came about began anew; then five in a row did not.
    assert.equal(pauses, [250, 250, 250, 1000, 2000, 5000, 5000, 5000]);
    assert.match(known.lost ?? "", /reach the workbench\. Is `tapline workbench` still running\? Retrying…$/);
    // Other tabs were told the same.
    await until(() =>
      told.some((one) => "lost" in (one as object) && (one as { lost?: string }).lost !== undefined),
    );
    assert.equal(
      told
        .filter((one) => "event" in (one as object))
        .map((one) => (one as { event: Numbered }).event.number),
      [5, 6, 5, 8, 9, 10],
    );
    assert.ok(told.some((one) => "missed" in (one as object)));
  } finally {
    stop();
    for (const channel of [tabs, ...channels]) channel.close();
  }
});

test.run();
