/** Streams at their clients' pace, and a fault in their middle. On stand-ins. */
import { EventEmitter } from "node:events";
import type { Context } from "koa";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { sendStream } from "../../src/inference/reply.js";
import { NativeError } from "../../src/native/index.js";
import { withTime } from "../support/with-time.js";

/** A response that takes what it is given, and fills up when it is told to. */
class Client extends EventEmitter {
  readonly written: string[] = [];
  readonly headers: Record<string, string> = {};
  full = false;
  destroyed = false;
  ended: string | undefined;
  setHeader(name: string, value: string) {
    this.headers[name] = value;
  }
  flushed = 0;
  flushHeaders() {
    this.flushed++;
  }
  write(text: string) {
    this.written.push(text);
    return !this.full;
  }
  end(text = "") {
    this.ended = text;
  }
}

/** A stream whose parts are given one by one, and how many were asked for. */
function source() {
  const waiting: ((part: IteratorResult<{ data: string; tokens: number[] }>) => void)[] = [];
  let asked = 0;
  const parts = {
    next: () => {
      asked++;
      return new Promise<IteratorResult<{ data: string; tokens: number[] }>>((resolve) =>
        waiting.push(resolve),
      );
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return {
    parts: parts as unknown as Parameters<typeof sendStream>[1],
    asked: () => asked,
    async give(data?: string) {
      waiting.shift()?.(
        data === undefined ? { done: true, value: undefined } : { done: false, value: { data, tokens: [1] } },
      );
      await turn();
    },
  };
}

test("a stream follows its client's pace, and a silent one sends keep-alives", async () => {
  const silences: { ms: number; say: () => void; refreshed: number; cleared: boolean }[] = [];
  const noted = {
    setInterval(say: () => void, ms: number) {
      const one = { ms, say, refreshed: 0, cleared: false, refresh: () => one.refreshed++ };
      silences.push(one);
      return one;
    },
    clearInterval(one: (typeof silences)[0]) {
      one.cleared = true;
    },
  };
  await withTime(noted, async () => {
    const res = new Client();
    const { parts, asked, give } = source();
    const sent: [string, number[]][] = [];
    const ctx = { res } as unknown as Context;
    const sending = sendStream(ctx, parts, undefined, (data, tokens) => sent.push([data, [...tokens]]));
    assert.equal(
      [ctx.respond, ctx.status, res.headers, res.flushed],
      [
        ...[false, 200],
        // No proxy shall keep what comes until there is more of it.
        { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" },
        1,
      ],
    );
    await give("a");
    assert.equal([asked(), res.written], [2, ["a"]]);
    res.full = true;
    await give("b");
    assert.equal([asked(), res.written, sent.length], [2, ["a", "b"], 1]);
    res.full = false;
    res.emit("drain");
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(
      [asked(), sent],
      [
        3,
        [
          ["a", [1]],
          ["b", [1]],
        ],
      ],
    );
    assert.equal([res.listenerCount("drain"), res.listenerCount("close")], [0, 0]);
    // Who has gone drains no more: nothing waits for it.
    res.full = true;
    res.destroyed = true;
    await give("c");
    assert.is(asked(), 4);
    const [silence] = silences as [(typeof silences)[0]];
    assert.equal([silences.length, silence.ms, silence.refreshed, silence.cleared], [1, 15_000, 3, false]);
    silence.say();
    assert.is(res.written.at(-1), ": still working\n\n");
    await give();
    await sending;
    assert.equal([res.ended, silence.cleared], ["", true]);
  });
});

test("a fault within a stream is its last event, in the API's form", async () => {
  const fails = async (error: unknown, form?: Parameters<typeof sendStream>[2]) => {
    const res = new Client();
    const parts = (async function* () {
      yield { data: "a", tokens: [1] };
      throw error;
    })();
    const ctx = { res } as unknown as Context;
    const thrown = await sendStream(ctx, parts, form, () => {}).catch((fault: unknown) => fault);
    assert.is(thrown, error);
    return res.ended;
  };
  const body = (message: string) =>
    `data: ${JSON.stringify({ error: { message, type: "server_error", param: null, code: null } })}\n\n`;
  assert.is(await fails(new NativeError("CLOSED", "x")), body("The server is shutting down."));
  assert.is(await fails(new Error("secret")), body("Internal error; see the service's log."));
  const form = {
    fault: (sentence: string) => `<${sentence}>`,
    event: () => "",
    end: () => "",
    whole: () => ({}),
  };
  assert.is(await fails(new NativeError("CLOSED", "x"), form), "<The server is shutting down.>");
});

test.run();
