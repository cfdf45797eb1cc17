/** The way of one request through the backends: who is asked, what is sent, what is told of it. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { HttpError } from "../../src/http/index.js";
import { answers, backend, begin, end, fails, pass, router, type Script } from "./support/forwarding.js";

test.before.each(begin);
test.after.each(end);

const refusedWith = (error: HttpError | null) => [error?.status, error?.message];

test("a request answered by its first backend: headers, body and record", async () => {
  const one = backend("one", [answers(201, '{"choices":[]}', ["Content-Type", "application/json"], 40)]);
  const { service, told, sent, ask, notes } = router(one);
  const body = '{"model":"m","stream":true}';
  one.state = "starting";
  // Somebody has to be waited for first: the wait is the request's, and none of the backend's time.
  service.health.checkForRequest = async () => {
    pass(100);
    one.state = "healthy";
    return true;
  };
  assert.is(await ask(body, { "X-A": "b" }), null);
  assert.equal(sent, [
    {
      to: "one",
      fresh: false,
      path: "/v1/chat/completions?a=b",
      body,
      headers: [
        "Content-Type",
        "application/json",
        "X-A",
        "b",
        "Via",
        "1.1 me",
        "X-Tapline-Route",
        "1.1 me",
        "X-Tapline-Execution-ID",
        service.executions.list().executions[0]?.id,
      ],
    },
  ]);
  assert.equal(told, [
    ["answered", "one"],
    ["ended", "completed", 1000],
  ]);
  assert.equal([one.requests, one.lastPicked, one.attempts.size], [1, 1100, 0]);
  assert.equal([service.requests.total, service.requests.active, service.requests.retried], [1, 0, 0]);
  assert.equal(notes()?.slice(0, 2), ["lifecycle: received", "lifecycle: sent to http://one as m"]);
  assert.is(one.firstTokenMs(performance.now()), 0, "another status than 200 says nothing of first tokens");
});

test("the time to the first token: of streams that are answered with 200, the backend's and the request's own", async () => {
  const one = backend("one", [answers(200, "data: {}\n\n", ["Content-Type", "text/event-stream"], 40)]);
  const { service, told, ask } = router(one);
  await ask({ model: "m", stream: false });
  await ask({ model: "m", stream: "yes" });
  assert.equal(told, [
    ["answered", "one"],
    ["ended", "completed", 1000],
    ["answered", "one"],
    ["ended", "completed", 1040],
  ]);
  assert.is(one.firstTokenMs(performance.now()), 0);
  told.length = 0;
  one.state = "aside";
  service.health.checkForRequest = async () => {
    pass(100);
    one.state = "healthy";
    return true;
  };
  await ask({ model: "m", stream: true });
  assert.equal(told, [
    ["answered", "one"],
    ["first token", 0.14],
    ["ended", "completed", 1080],
  ]);
  assert.is(one.firstTokenMs(performance.now()), 40);
});

test("how a request ended is the answer's status", async () => {
  for (const [status, outcome, recorded] of [
    [200, "completed", "completed"],
    [399, "completed", "completed"],
    [400, "refused", "failed"],
    [499, "refused", "failed"],
    [500, "failed", "failed"],
  ] as const) {
    const { told, ask, record } = router(backend("one", [answers(status)]));
    assert.is(await ask({}), null);
    assert.equal(told.at(-1), ["ended", outcome, 1000], String(status));
    assert.is(record()?.status, recorded, String(status));
  }
});

test("a record has the whole answer, its client and the request", async () => {
  const whole = { choices: [{ message: { content: "Paris" }, finish_reason: "length" }] };
  const json = ["Content-Type", "application/json"];
  const { ask, record } = router(backend("one", [answers(200, JSON.stringify(whole), json)]));
  await ask({ model: "m" }, { "X-Tapline-Execution-ID": "p".repeat(256) });
  assert.equal([record()?.finish_reason, record()?.preview], ["length", "Paris"]);
  assert.equal([record()?.model, record()?.stream, record()?.thinking], ["m", false, null]);
  assert.is(record()?.parent_id, "p".repeat(256));
  assert.is(record()?.endpoint, "/v1/chat/completions");
  await ask({ model: "auto", stream: true }, { "X-Tapline-Execution-ID": "p".repeat(257) });
  assert.is(record()?.parent_id, "p".repeat(256), "a name longer than that is cut");
  assert.equal([record()?.model, record()?.stream], ["auto", true]);
  await ask({}, { "X-Tapline-Execution-ID": "" });
  assert.equal([record()?.parent_id, record()?.model], [null, "auto"]);
  for (const [template, thinking] of [
    [{ enable_thinking: true }, true],
    [{ enable_thinking: false }, false],
    [{ enable_thinking: "yes" }, null],
    [{}, null],
    [null, null],
  ] as const) {
    await ask({ chat_template_kwargs: template });
    assert.is(record()?.thinking, thinking);
  }
});

test("a model goes out under the name that the backend has for it", async () => {
  const models = [{ id: "a:latest", aliases: ["b"] }];
  const { sent, ask } = router(backend("one", [answers(200)], models));
  for (const model of ["a:latest", "a", "b", "auto"]) await ask(`{ "model": "${model}" }`);
  assert.equal(
    sent.map(({ body }) => body),
    Array(4).fill('{ "model": "a:latest" }'),
  );
});

test("an answer that breaks off suspends its backend and is recorded", async () => {
  const breaks: Script = (handler, controller) => {
    handler.onResponseStart(controller, 200, {}, "");
    handler.onResponseData(controller, Buffer.from("half"));
    fails("ECONNRESET")(handler, controller, undefined as never);
  };
  const one = backend("one", [breaks]);
  one.epoch = 3;
  const { told, client, ask, notes } = router(one, backend("two", [answers(200)]));
  assert.is(await ask({}), null);
  assert.equal(told, [
    ["answered", "one"],
    ["failed", "one", 3, "an answer was cut off: it ended (ECONNRESET)"],
    ["ended", "failed", 1000],
  ]);
  assert.ok(notes()?.includes("error: http://one cut off its answer: it ended (ECONNRESET)"));
  assert.ok(client.destroyed);
});

test("what cannot be sent on is the client's fault, and nobody else is asked", async () => {
  const { told, sent, ask } = router(
    backend("one", [fails("UND_ERR_INVALID_ARG")]),
    backend("two", [fails("UND_ERR_INVALID_ARG")]),
  );
  assert.equal(refusedWith(await ask({})), [400, "The request cannot be forwarded: it ended."]);
  assert.is(sent.length, 1);
  assert.equal(told, [["ended", "refused", 1000]]);
});

test("if every backend is busy, the last refusal is the answer, with its own headers", async () => {
  const raw = ["X-A", "retry-after", "content-length", "3", "X-B", "content-length"];
  const { service, told, sent, client, ask, notes } = router(
    backend("one", [answers(503, "one", ["Retry-After", "9"])]),
    backend("two", [answers(429, "two!", raw)]),
  );
  assert.is(await ask({ model: "m" }), null);
  assert.equal(
    sent.map(({ to }) => to),
    ["one", "two"],
  );
  const id = service.executions.list().executions[0]?.id;
  const own = ["X-Tapline-Execution-ID", id];
  assert.equal(client.head, [
    429,
    ["X-A", "retry-after", "X-B", "content-length", ...own, "Retry-After", "1", "Content-Length", "4"],
  ]);
  assert.equal(client.chunks, ["two!"]);
  assert.equal(
    told,
    [["checkForRequest"], ["ended", "failed", 1000]],
    "both have said no; their lists are not read anew",
  );
  assert.is(service.requests.retried, 1);
  assert.ok(notes()?.includes("lifecycle: http://one answered 503"));

  const again = router(backend("one", [answers(503, "", ["retry-AFTER", "9"])]));
  await again.ask({});
  assert.equal((again.client.head[1] as string[]).slice(0, 2), ["retry-AFTER", "9"]);
  assert.not((again.client.head[1] as string[]).includes("Retry-After"));
});

test("a connection that ends without a word is asked again on a new one; with a head it is the backend's failure", async () => {
  const one = backend("one", [fails("ECONNRESET"), answers(200)]);
  const quiet = router(one);
  assert.is(await quiet.ask({}), null);
  assert.equal(
    quiet.sent.map(({ fresh }) => fresh),
    [false, true],
  );
  assert.equal(quiet.told, [
    ["answered", "one"],
    ["ended", "completed", 1000],
  ]);
  assert.ok(
    quiet.notes()?.includes("lifecycle: http://one failed before the first byte: it ended (ECONNRESET)"),
  );

  const twice = router(backend("one", [fails("ECONNRESET")]), backend("two", [answers(200)]));
  assert.is(await twice.ask({}), null);
  assert.equal(
    twice.sent.map(({ to, fresh }) => `${to} ${fresh}`),
    ["one false", "one true", "two false"],
  );
  assert.equal(twice.told[0], ["failed", "one", 0, "it ended (ECONNRESET)"]);

  const head = router(backend("one", [fails("ECONNRESET", true)]), backend("two", [answers(200)]));
  await head.ask({});
  assert.equal(head.told[0], ["failed", "one", 0, "it ended (ECONNRESET)"]);
});

test("who was taken out of the configuration, or set aside, meanwhile is not asked again, and the former not blamed", async () => {
  for (const code of ["ECONNRESET", "ECONNREFUSED"]) {
    const one = backend("one", [
      (...words) => {
        one.retired = true;
        leaving.service.backends = [two];
        fails(code)(...words);
      },
    ]);
    const two = backend("two", [answers(200)]);
    const leaving = router(one, two);
    assert.is(await leaving.ask({}), null);
    assert.equal(
      leaving.sent.map(({ to, fresh }) => `${to} ${fresh}`),
      ["one false", "two false"],
    );
    assert.equal(leaving.told, [
      ["answered", "two"],
      ["ended", "completed", 1000],
    ]);
  }
  const one = backend("one", [
    (...words) => {
      one.state = "aside";
      fails("ECONNRESET")(...words);
    },
  ]);
  const aside = router(one, backend("two", [answers(200)]));
  assert.is(await aside.ask({}), null);
  assert.is(aside.sent[1]?.to, "two");
});

test("five connections that end under a request are enough; addresses where nobody is are tried 64 times", async () => {
  const dies = router(backend("one", [fails("ECONNRESET", true)]));
  dies.service.health.failed = () => 0;
  assert.equal(refusedWith(await dies.ask({})), [
    502,
    "5 backends in a row crashed during this request, so it is not retried.",
  ]);
  assert.equal([dies.sent.length, dies.service.requests.retried], [5, 4]);
  assert.equal(dies.told, [["ended", "failed", 1000]]);

  const absent = router(backend("one", [fails("ECONNREFUSED")]));
  absent.service.health.failed = () => 0;
  assert.equal(refusedWith(await absent.ask({})), [502, "No backend answered this request in 64 attempts."]);
  assert.is(absent.sent.length, 64);
});

test("five backends whose process ended under a request (502) are enough, busy ones (503) are not", async () => {
  const six = (status: number) =>
    ["a", "b", "c", "d", "e", "f"].map((name) => backend(name, [answers(status)]));
  const dying = router(...six(502));
  assert.equal(refusedWith(await dying.ask({})), [
    502,
    "5 backends in a row crashed during this request, so it is not retried.",
  ]);
  assert.is(dying.sent.length, 5);
  const busy = router(...six(503));
  assert.is(await busy.ask({}), null);
  assert.is(busy.sent.length, 6);
});

test("a backend abandoned before its first byte is recorded, and another answers", async () => {
  const one = backend("one", [() => [...one.attempts][0]?.abandon()]);
  const { told, sent, ask, notes } = router(one, backend("two", [answers(200)]));
  assert.is(await ask({}), null);
  assert.equal(
    sent.map(({ to }) => to),
    ["one", "two"],
  );
  assert.equal(told, [
    ["answered", "two"],
    ["ended", "completed", 1000],
  ]);
  assert.ok(notes()?.includes("lifecycle: http://one does not respond; abandoned before the first byte"));
});

test("a client that leaves has cancelled, while nobody is there and while somebody answers", async () => {
  const one = backend("one", [(_handler, _controller, client) => void client.emit("close")]);
  const { told, ask, record } = router(one);
  assert.is(await ask({}), null);
  assert.equal(told, [["ended", "cancelled", 1000]]);
  assert.is(record()?.status, "cancelled");

  const two = backend("two", [answers(200)]);
  const waiting = router(two);
  two.state = "aside";
  waiting.service.health.checkForRequest = async () => {
    two.state = "healthy";
    waiting.client.destroyed = true;
    return true;
  };
  assert.is(await waiting.ask({}), null);
  assert.equal([waiting.told, waiting.sent], [[["ended", "cancelled", 1000]], []]);
});

test("a write that meets a closed connection ends nothing", async () => {
  const one = backend("one", [
    (handler, controller, client) => {
      client.emit("error", new Error("write EPIPE"));
      answers(200)(handler, controller, client);
    },
  ]);
  const { told, ask } = router(one);
  assert.is(await ask({}), null);
  assert.equal(told.at(-1), ["ended", "completed", 1000]);
});

test("4096 requests are inside at most", async () => {
  const { service, told, ask } = router(backend("one", [answers(200)]));
  service.requests.active = 4096;
  const busy = await ask({});
  assert.equal(refusedWith(busy), [503, "The router is overloaded: 4096 requests are already active."]);
  assert.equal([busy?.code, busy?.headers["Retry-After"]], ["overloaded", "1"]);
  assert.equal([told, service.requests.total, service.requests.active], [[], 0, 4096], "nothing has begun");
  service.requests.active = 4095;
  assert.is(await ask({}), null);
});

test("a request that came by this router already is refused", async () => {
  const { told, ask } = router(backend("one", [answers(200)]));
  const sentence = "Routing loop: a backend of this router leads back to the router itself.";
  assert.equal(refusedWith(await ask({}, { Via: "1.1 other, 1.1 me" })), [508, sentence]);
  assert.is(await ask({}, { Via: "1.1 other" }), null);
  assert.is(told.length, 2);
});

test("with nobody to ask it is 503 or 404, in words that name what was asked for", async () => {
  const long = "n".repeat(300);
  const aside = (name: string, models?: Record<string, unknown>[]) => {
    const one = backend(name, [answers(200)], models);
    one.state = "aside";
    return one;
  };
  const unlisted = aside("unlisted", []);
  unlisted.listedAt = Number.NEGATIVE_INFINITY;
  const all = router(
    backend("one", [answers(200)]),
    aside("two", [{ id: "n" }]),
    unlisted,
    aside("four", [{ id: long }]),
  );
  const refused = async (model: string | undefined) => {
    all.told.length = 0;
    const error = await all.ask({ model });
    return [...refusedWith(error), error?.code, error?.headers["Retry-After"], ...all.told.slice(0, -1)];
  };
  assert.equal(await refused("n"), [
    503,
    "No backend that serves n is healthy; try again later.",
    "unavailable",
    "7",
    ["checkForRequest", "two", "unlisted"],
  ]);
  assert.equal(await refused(long), [
    503,
    `No backend that serves ${"n".repeat(200)} is healthy; try again later.`,
    "unavailable",
    "7",
    ["checkForRequest", "unlisted", "four"],
  ]);
  // Somebody may list it since: the lists are read anew.
  assert.equal(await refused(`x${long}`), [
    404,
    `No backend serves the model x${"n".repeat(199)}.`,
    "model_not_found",
    undefined,
    ["checkForRequest", "unlisted"],
    ["refresh"],
  ]);
  for (const [given, sentence] of [
    [[backend("empty", [answers(200)], [])], "No healthy backend lists a model; try again later."],
    [[aside("down")], "No backend is healthy; try again later."],
  ] as const) {
    assert.equal(refusedWith(await router(...given).ask({})), [503, sentence]);
  }
  // Before any list was read, nobody can say that a model is not served.
  assert.is((await router(unlisted).ask({ model: "z" }))?.status, 503);
});

test("a model that is new since the lists were read is found in them", async () => {
  const one = backend("one", [answers(200)]);
  const { service, sent, ask } = router(one);
  service.health.refresh = async () => void one.setModels([{ id: "new" }], 2);
  assert.is(await ask({ model: "new" }), null);
  assert.is(sent.length, 1);
  // And one who comes back is asked, although nobody promised it.
  one.state = "aside";
  service.health.checkForRequest = async () => {
    one.state = "healthy";
    return false;
  };
  assert.is(await ask({ model: "new" }), null);
  assert.is(sent.length, 2);
});

test.run();
