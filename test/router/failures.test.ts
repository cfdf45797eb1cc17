import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { request } from "node:http";
import { createServer, type Socket } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Execution } from "../../src/contracts/execution.js";
import { validate } from "../../src/contracts/validate.js";
import { freePort } from "../support/free-port.js";
import { until } from "../support/until.js";
import { withTime } from "../support/with-time.js";
import { cast } from "./support/cast.js";
import { event, type FakeOptions, json, startFake, stream } from "./support/fake.js";
import { messages } from "./support/routing.js";

const { fake, routing, atEnd, endAll } = cast();
test.after.each(endAll);

type Post = NonNullable<FakeOptions["post"]>;
const dies: Post = (_got, response) => void response.destroy();
const busy: Post = (_got, response) => {
  response.writeHead(503, { "Content-Type": "application/json", "Retry-After": "7" });
  response.end('{"error":{"message":"full"}}');
};
const silent: Post = () => {};
const quickly = { silent: 50, answer: 500, idle: 100, firstBackOff: 20, urgent: 10 };

test("a backend that dies under a request before its first byte is replaced", async () => {
  const one = await fake({ post: dies });
  const two = await fake();
  const router = await routing([one.url, two.url]);
  for (let count = 0; count < 3; count++) {
    const answer = await router.chat({ messages, stream: true });
    assert.is(answer.status, 200);
    assert.is(answer.bytes.toString(), `${event("a")}${event("b")}data: [DONE]\n\n`);
  }
  assert.ok(one.got.length >= 1);
  const { body } = await router.get("/stats");
  assert.equal([body.requests.completed, body.requests.failed], [3, 0]);
  assert.ok(body.requests.retried >= 1);
});

test("headers without a body byte are not an answer yet", async () => {
  const one = await fake({
    post: (_got, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.flushHeaders();
      setTimeout(() => response.destroy(), 50);
    },
  });
  const two = await fake();
  const router = await routing([one.url, two.url]);
  const answer = await router.chat({ messages, stream: true });
  assert.is(answer.bytes.toString(), `${event("a")}${event("b")}data: [DONE]\n\n`);
  assert.is(one.got.length, 1);
});

test("a kept connection that closes during a request does not count against health", async () => {
  // As llama-server does when it is busy: the connection ends after an answer that said it would be kept.
  const fickle = await fake({
    post: (got, response) => {
      const { socket } = response;
      if (seen.has(socket)) return void response.destroy();
      seen.add(socket);
      stream(["a"])(got, response);
    },
  });
  const seen = new Set<unknown>();
  const router = await routing([fickle.url]);
  for (let count = 0; count < 6; count++)
    assert.is((await router.chat({ messages, stream: true })).status, 200);
  const { body } = await router.get("/stats");
  assert.equal([body.backends[0].failures, body.requests.failed], [0, 0]);
  assert.ok(body.requests.retried > 0);
});

test("an answer that breaks off after its first byte is cut, never continued", async () => {
  const breaks: Post = (_got, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(event("half"), () => setTimeout(() => response.destroy(), 20));
  };
  const one = await fake({ post: breaks });
  const two = await fake({ post: breaks });
  const router = await routing([one.url, two.url]);
  const outcome = await router.chat({ messages, stream: true }).then(
    () => "whole",
    (error) => error.code,
  );
  assert.is(outcome, "ECONNRESET");
  assert.is(one.got.length + two.got.length, 1);
  const { body } = await router.get("/executions");
  assert.is(body.executions[0].status, "failed");
  assert.is(body.executions[0].preview, "half");
  // Whoever broke off was set aside, and says why; it may be healthy again by now.
  const { backends } = (await router.get("/stats")).body;
  const broken = backends.filter(({ requests }: { requests: number }) => requests === 1);
  assert.match(broken[0].last_error, /^an answer was cut off: /);
  assert.is(broken.length, 1);
  assert.ok(router.events.includes(`${broken[0].url}: ${broken[0].last_error}`), "nobody was told");
});

test("a refusal is asked elsewhere; when all refuse, the last one's words are the answer", async () => {
  const one = await fake({ post: busy });
  const two = await fake();
  const router = await routing([one.url, two.url]);
  for (let count = 0; count < 3; count++) assert.is((await router.chat({ messages })).status, 200);
  // Each that came to the first was tried once more.
  assert.is((await router.get("/stats")).body.requests.retried, one.got.length);
  two.options.post = busy;
  const refused = await router.chat({ messages });
  assert.is(refused.status, 503);
  assert.is(refused.headers["retry-after"], "7");
  assert.is(refused.body.error.message, "full");
  // Where the backend says no time, the router does.
  for (const backend of [one, two])
    backend.options.post = (_got, response) => response.writeHead(503).end("{}");
  assert.is((await router.chat({ messages })).headers["retry-after"], "1");
  // Refusing is not failing.
  assert.equal(
    router.service.backends.map(({ state }) => state),
    ["healthy", "healthy"],
  );
});

test("who failed before its last recovery, or stands aside already, is not set aside for it", async () => {
  const one = await fake();
  const router = await routing([one.url]);
  const [backend] = router.service.backends;
  const { health } = router.service;
  const state = () => [backend?.state, backend?.timesAside];
  assert.ok(backend !== undefined);
  health.failed(backend, backend.epoch - 1, "long ago");
  assert.equal(state(), ["healthy", 0]);
  health.failed(backend, backend.epoch, "now");
  assert.equal(state(), ["aside", 1]);
  health.failed(backend, backend.epoch, "once more");
  assert.equal(state(), ["aside", 1]);
});

test("other errors are the answer", async () => {
  const one = await fake({ post: (_got, response) => json({ error: { message: "no" } }, 400)(response) });
  const router = await routing([one.url]);
  const { status, body } = await router.chat({ messages });
  assert.equal([status, body], [400, { error: { message: "no" } }]);
  assert.is(one.got.length, 1);
  assert.is((await router.get("/stats")).body.requests.retried, 0);
});

test("with nobody healthy it is 503 with Retry-After, until somebody is", async () => {
  const router = await routing(["http://127.0.0.1:9"]);
  const { status, headers, body } = await router.chat({ messages });
  assert.is(status, 503);
  assert.match(String(headers["retry-after"]), /^[1-9]\d*$/);
  assert.is(body.error.type, "overloaded_error");
  assert.is((await router.get("/health")).status, 503);

  const gone = await startFake({}, await freePort());
  const second = await routing([gone.url]);
  await gone.close();
  assert.is((await second.chat({ messages })).status, 503);
  const back = await fake({}, gone.port);
  // However long the back-off is by now: a request that has nobody else asks at once.
  assert.is((await second.chat({ messages })).status, 200);
  assert.is(back.got.length, 1);
});

test("who comes back while a frozen one is still waited for gets the request", async () => {
  const frozen = await fake({ pages: { "/health": json({}, 503) } });
  const gone = await startFake({}, await freePort());
  await gone.close();
  const router = await routing([frozen.url, gone.url], { timing: { answer: 600_000 } });
  frozen.options.pages = { "/health": () => {} };
  const asked = frozen.asked.length;
  const chat = router.chat({ messages });
  await until(() => frozen.asked.length > asked);
  const absent = router.service.backends[1];
  const failedAt = absent?.lastCheckEnded ?? 0;
  await until(() => (absent?.lastCheckEnded ?? 0) > failedAt);
  const back = await fake({}, gone.port);
  assert.is((await chat).status, 200);
  assert.is(back.got.length, 1);
});

test("once a request has somebody, nobody is asked for it any more", async () => {
  const down = { "/health": json({}, 503) };
  const one = await fake({ pages: down });
  const two = await fake({ pages: down });
  const timing = { urgent: 10, firstBackOff: 60_000, longestBackOff: 60_000 };
  const router = await routing([one.url, two.url], { timing });
  await until(() => router.service.backends.every(({ nextCheck }) => nextCheck > performance.now()));
  one.options.pages = { "/health": json({ status: "ok" }) };
  assert.is((await router.chat({ messages })).status, 200);
  const asked = two.asked.length;
  await new Promise((resolve) => setTimeout(resolve, 400));
  assert.ok(two.asked.length <= asked + 2, `${two.asked.length - asked} times more`);
});

test("a client that goes away while nobody is healthy leaves nothing to be sent", async () => {
  let answer = () => {};
  const pages: FakeOptions["pages"] = { "/health": json({}, 503) };
  const one = await fake({ pages });
  const router = await routing([one.url], { timing: { firstBackOff: 60_000, longestBackOff: 60_000 } });
  await until(() => router.service.backends.every(({ nextCheck }) => nextCheck > performance.now()));
  const sockets: Socket[] = [];
  const opened = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    if (socket.localPort === router.port) sockets.push(socket);
  };
  subscribe("net.server.socket", opened);
  pages["/health"] = (response) => {
    answer = () => json({ status: "ok" })(response);
  };
  const before = one.asked.length;
  const asking = request(`${router.url}/v1/chat/completions`, { method: "POST", agent: false });
  asking.on("error", () => {});
  asking.end(JSON.stringify({ messages, stream: true }));
  await until(() => one.asked.length > before);
  asking.destroy();
  // The router hears of that before it hears from the backend.
  await until(() => sockets.length === 1 && sockets[0]?.destroyed);
  unsubscribe("net.server.socket", opened);
  answer();
  await until(() => router.service.requests.cancelled === 1);
  assert.is(one.got.length, 0);
  assert.is(router.service.backends[0]?.state, "healthy");
});

test("a server that still loads is asked again until it serves", async () => {
  const loading = await fake({ pages: { "/health": json({ error: { message: "Loading model" } }, 503) } });
  const router = await routing([loading.url], { timing: quickly });
  assert.is((await router.chat({ messages })).status, 503);
  assert.is(loading.got.length, 0);
  loading.options.pages = { "/health": json({ status: "ok" }) };
  await until(() => router.service.backends[0]?.state === "healthy");
  assert.is((await router.chat({ messages })).status, 200);
});

test("a configuration that is read again asks at once who was set aside", async () => {
  const locked = await fake();
  locked.options.pages = { "/health": json({}, 401), "/v1/models": json({}, 401) };
  const timing = { firstBackOff: 60_000, longestBackOff: 60_000 };
  const router = await routing([locked.url], { timing });
  const [backend] = router.service.backends;
  await until(() => (backend?.nextCheck ?? 0) > performance.now());
  assert.is(backend?.lastError, "it requires an API key");
  locked.options.pages = { "/health": json({ status: "ok" }) };
  await router.configure([{ url: locked.url, api_key: "k" }]);
  await until(() => backend?.state === "healthy");
});

test("back-off doubles while a backend is down, up to its longest", async () => {
  let ms = 1_000_000;
  await withTime({ "performance.now": () => ms }, async () => {
    const router = await routing(["http://127.0.0.1:9"], {
      timing: { firstBackOff: 2000, longestBackOff: 10_000 },
    });
    const [backend] = router.service.backends;
    // The first failure may be a connection that ended by itself: asked again at once.
    for (const wait of [2000, 4000, 8000, 10_000, 10_000]) {
      await until(() => backend?.nextCheck === ms + wait && backend.checking === undefined);
      const { body } = await router.get("/stats");
      assert.is(body.backends[0].next_check_seconds, wait / 1000);
      assert.is(body.backends[0].last_error, "nothing listens at this address");
      assert.is(body.backends[0].failures, 1);
      ms += wait;
    }
  });
});

test("back-off restarts after ten healthy seconds, and early requests don't extend it", async () => {
  let ms = 1_000_000;
  await withTime({ "performance.now": () => ms }, async () => {
    const one = await fake();
    const router = await routing([one.url, "http://127.0.0.1:9"]);
    const { backends, health } = router.service;
    const [well, gone] = backends as [(typeof backends)[0], (typeof backends)[0]];
    well.failures = 3;
    ms += 10_000;
    assert.ok(await health.check(well));
    assert.is(well.failures, 3);
    ms += 1;
    assert.ok(await health.check(well));
    assert.is(well.failures, 0);

    await until(() => gone.nextCheck > ms && gone.checking === undefined);
    const { failures, nextCheck } = gone;
    assert.not(await health.check(gone));
    assert.equal([gone.failures, gone.nextCheck], [failures, nextCheck]);
  });
});

test("a frozen backend loses the requests that it has not begun to answer", async () => {
  const frozen = await fake({ post: silent, models: [{ id: "m" }, { id: "only" }] });
  const router = await routing([frozen.url], { timing: quickly });
  const chat = router.chat({ messages, stream: true });
  await until(() => frozen.got.length === 1);
  const two = await fake();
  await router.configure([{ url: frozen.url }, { url: two.url }]);
  // From now on it accepts connections and says nothing, as a stopped process does.
  frozen.options.pages = { "/health": () => {} };
  const answer = await chat;
  assert.is(answer.bytes.toString(), `${event("a")}${event("b")}data: [DONE]\n\n`);
  assert.is(router.service.backends[0]?.lastError, "timeout");
  await until(async () => (await frozen.connections()) <= 1); // a check at most: the request was taken back
});

test("a slow answer from a backend that lives is waited for", async () => {
  const slow = await fake({
    post: (got, response) => void setTimeout(() => stream(["late"])(got, response), 1500),
  });
  const two = await fake({ models: [{ id: "other" }] });
  const router = await routing([slow.url, two.url], { timing: quickly });
  const answer = await router.chat({ model: "m", messages, stream: true });
  assert.is(answer.status, 200);
  assert.is(slow.got.length, 1);
});

test("a stream of a backend that never comes back is given up in the end", async () => {
  const one = await fake({
    post: (_got, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(event("begun"));
    },
  });
  const router = await routing([one.url], { timing: { ...quickly, lost: 300 } });
  const chat = router.chat({ messages, stream: true }).then(
    () => "whole",
    (error) => error.code,
  );
  await until(() => one.got.length === 1);
  one.options.pages = { "/health": () => {} };
  assert.is(await chat, "ECONNRESET");
});

test("a request that kills every backend is given up", async () => {
  const router = await routing([(await fake({ post: dies })).url, (await fake({ post: dies })).url], {
    timing: quickly,
  });
  const { status, body } = await router.chat({ messages });
  assert.is(status, 502);
  assert.match(body.error.message, "5 backends in a row crashed during this request");
  const { body: list } = await router.get("/executions");
  const { body: record } = await router.get(`/executions/${list.executions[0].id}`);
  validate(Execution, record);
  assert.is(record.status, "failed");
  const told = record.events.map(({ text }: { text: string }) => text).join("\n");
  assert.is(told.match(/^sent to http/gm)?.length, 5);
});

test("a client that disconnects cancels its request, before and after the first byte", async () => {
  for (const begun of [false, true]) {
    let left = false;
    const one = await fake({
      post: (_got, response) => {
        response.on("close", () => {
          left = true;
        });
        if (begun) response.write(event("a"));
      },
    });
    const router = await routing([one.url]);
    const asking = request(`${router.url}/v1/chat/completions`, { method: "POST", agent: false });
    asking.on("error", () => {});
    const answered = new Promise<void>((resolve) => {
      asking.on("response", (response) => {
        response.on("error", () => {}).resume();
        resolve();
      });
    });
    asking.end(JSON.stringify({ messages, stream: true }));
    await until(() => one.got.length === 1);
    if (begun) await answered;
    asking.destroy();
    await until(() => left);
    await until(() => router.service.requests.cancelled === 1);
    assert.is(router.service.requests.active, 0);
    const { body } = await router.get("/executions");
    assert.is(body.executions[0].status, "cancelled");
    assert.is(router.service.backends[0]?.state, "healthy");
    assert.equal(router.faults, []);
  }
});

test("an invalid HTTP answer counts as a failure", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.end("hello\r\n\r\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as { port: number };
  const router = await routing([`http://127.0.0.1:${port}`]);
  assert.is(router.service.backends[0]?.state, "aside");
  assert.is((await router.chat({ messages })).status, 503);
  for (const socket of sockets) socket.destroy();
});

test.run();
