/** A server whose model is changed: one after the other, at one address, and the old one again where the new one fails. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { OwnServer } from "../../src/cli/own-server.js";
import type { ServingEvent } from "../../src/inference/process/supervisor.js";

/** Servers that are words: what was started, at which port, and what was closed, in order. */
async function servers() {
  const said: string[] = [];
  const running = new Map<string, (error: Error) => void>();
  const events: string[] = [];
  const broken = new Set<string>();
  /** Models whose start waits until it is let go. */
  const held = new Map<string, Promise<void>>();
  const stop = new AbortController();
  const own = await OwnServer.start("a", {
    ...{ host: "127.0.0.1", port: 0, signal: stop.signal },
    onEvent: ({ event }) => void events.push(event),
    async serve({ model, port, onEvent }) {
      said.push(`start ${model} at ${port}`);
      onEvent?.({ event: "loading", stage: "weights", fraction: 0.5 } as ServingEvent);
      onEvent?.({ event: "warning", sentence: "Careful." } as ServingEvent);
      await held.get(model);
      if (broken.has(model)) throw new Error(`no ${model}`);
      const ended = new Promise<void>((_, reject) => running.set(model, reject));
      ended.catch(() => {});
      return {
        ...{ url: "http://127.0.0.1:4711", port: 4711, ended },
        async close() {
          if (running.delete(model)) said.push(`close ${model}`);
        },
      } as never;
    },
  });
  const told: [string, number][] = [];
  const serve = (model: string) => own.serve(model, (stage, fraction) => void told.push([stage, fraction]));
  return { own, said, running, events, broken, held, stop, told, serve };
}

test("a changed model is served at the same address, with progress", async () => {
  const { own, said, events, told, serve, running } = await servers();
  assert.is(own.url, "http://127.0.0.1:4711");
  assert.equal(events, ["loading", "warning"]);
  await serve("b");
  assert.equal(said, ["start a at 0", "close a", "start b at 4711"]);
  assert.equal([told, events], [[["weights", 0.5]], ["loading", "warning", "warning"]]);
  const fault = new Error("It crashed again and again.");
  running.get("b")?.(fault);
  assert.is(await own.ended.catch((error) => error), fault);
});

test("if the new model fails, the old one is served again without an exit", async () => {
  const { own, said, broken, serve, running } = await servers();
  const first = running.get("a");
  broken.add("b");
  assert.is(await serve("b").catch((error) => error.message), "no b");
  assert.equal(said, ["start a at 0", "close a", "start b at 4711", "start a at 4711"]);
  let over = false;
  own.ended.catch(() => {
    over = true;
  });
  first?.(new Error("the process that was closed"));
  await serve("c");
  assert.not(over);
  broken.add("d");
  await serve("d").catch(() => {});
  assert.equal(said.slice(-3), ["close c", "start d at 4711", "start c at 4711"], "the last that was served");
});

test("of two changes at once the second waits for the first", async () => {
  const { said, serve } = await servers();
  await Promise.all([serve("b"), serve("c")]);
  assert.equal(said.slice(1), ["close a", "start b at 4711", "close b", "start c at 4711"]);
});

test("what is being started when all ends is closed, and nothing is started behind it", async () => {
  for (const fails of [false, true]) {
    const { own, said, serve, held, broken, running } = await servers();
    let letGo = () => {};
    held.set(
      "b",
      new Promise((resolve) => {
        letGo = resolve;
      }),
    );
    if (fails) broken.add("b");
    const switching = serve("b").catch(() => {});
    const closed = own.close();
    letGo();
    await Promise.all([switching, closed]);
    const begun = ["start a at 0", "close a", "start b at 4711"];
    assert.equal([said, running.size], [fails ? begun : [...begun, "close b"], 0]);
  }
});

test.run();
