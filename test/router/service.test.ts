/** What the routes of one router share: its configuration, its figures, its end; and what it says of itself. */
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startRouter } from "../../src/router/index.js";
import { RouterService } from "../../src/router/service.js";
import { freePort } from "../support/free-port.js";
import { send } from "../support/request.js";
import { until } from "../support/until.js";
import { withTime } from "../support/with-time.js";
import { cast } from "./support/cast.js";
import { json } from "./support/fake.js";
import { messages } from "./support/routing.js";

const { fake, routing, endAll } = cast();
test.after.each(endAll);

test("a new configuration updates remaining backends and drops the others", async () => {
  const [stays, goes] = [await fake(), await fake()];
  const router = await routing([stays.url, goes.url]);
  const [kept, gone] = router.service.backends;
  // Long after this test; whoever stood aside until then may have been put right by what was configured.
  kept!.nextCheck = 1e12;
  await router.configure([{ url: `${stays.url}/v1`, api_key: "k", slots: 9 }]);
  assert.is(router.service.backends.length, 1);
  assert.is(router.service.backends[0], kept);
  assert.equal([kept?.retired, kept?.slots, kept?.pool.closed, kept?.nextCheck], [false, 9, false, 0]);
  assert.equal([gone?.retired, gone?.pool.closed], [true, true]);
  await router.chat({ messages });
  assert.is(stays.got[0]?.headers.authorization, "Bearer k");
  const before = router.service.backends;
  await router.configure([{ url: stays.url }, { url: stays.url }]).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, "is given twice"),
  );
  assert.is(router.service.backends, before, "a configuration that is none changes nothing");
});

test("times are told in milliseconds, since the start in seconds", async () => {
  let ms = 1000;
  await withTime({ "performance.now": () => ms }, async () => {
    const began = Date.now() / 1000;
    const service = new RouterService({ backends: [] });
    assert.ok(Math.abs(service.startedAt - began) <= 2, "Unix seconds");
    assert.ok(Number.isInteger(service.startedAt));
    ms = 5000;
    assert.is(service.report().uptime_seconds, 4);
    assert.equal(service.report().latency_ms.total, { p50: null, p95: null, p99: null });
    service.requests.active = 2;
    service.ended("completed", 3000);
    service.ended("refused", 3000);
    const { requests, latency_ms } = service.report();
    assert.equal(requests, {
      ...{ total: 0, active: 0, completed: 1, failed: 0, cancelled: 0, refused: 1, retried: 0 },
    });
    // Two seconds, to the width of the histogram's buckets.
    assert.ok(Math.abs((latency_ms.total.p50 as number) - 2000) < 100, String(latency_ms.total.p50));
    assert.equal([service.total.sum, service.total.count], [4, 2], "two of two seconds");
    assert.is(latency_ms.time_to_first_token.p50, null);
    await service.close();
  });
});

test("its end ends the backends' connections and its checks", async () => {
  const one = await fake();
  const router = await startRouter({ port: 0, backends: [{ url: one.url }] });
  const [backend] = router.service.backends;
  const closing = router.close();
  assert.is(router.close(), closing, "once");
  await closing;
  assert.equal([backend?.pool.destroyed, backend?.fresh.destroyed], [true, true]);
  const { length } = one.asked;
  assert.not(await router.service.health.check(backend as NonNullable<typeof backend>));
  assert.is(one.asked.length, length, "nobody is asked any more");
});

test("a router that cannot begin leaves nothing open", async () => {
  const port = await freePort();
  const one = await fake();
  await startRouter({ port, backends: [] }).then(
    () => assert.unreachable(),
    (error: Error) => assert.is(error.message, "At least one backend is required."),
  );
  const router = await startRouter({ port, backends: [{ url: one.url }] });
  await startRouter({ port, backends: [{ url: one.url }] }).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, String(port)),
  );
  await router.close();
});

test("idle connections of clients stay for 75 seconds", async () => {
  const router = await routing([(await fake()).url]);
  const answer = await fetch(`${router.url}/v1/health`);
  assert.is(answer.headers.get("keep-alive"), "timeout=75");
  await answer.text();
});

test("the front page, /health and model list show healthy and other backends", async () => {
  const one = await fake({ models: [{ id: "a" }, { id: "b", owned_by: "one" }] });
  const two = await fake({ models: [{ id: "b", owned_by: "two" }] });
  const down = await fake({ models: [{ id: "c" }], pages: { "/health": json({}, 503) } });
  const router = await routing([one.url, two.url, down.url]);
  const page = async () => (await router.get("/", { Accept: "text/plain" })).bytes.toString();
  assert.match(await page(), "2 of 3 backends are healthy.");
  const { data } = (await router.get("/v1/models")).body;
  assert.equal(
    data.map(({ id, owned_by }: { id: string; owned_by?: string }) => [id, owned_by]),
    [
      ["auto", "tapline"],
      ["a", undefined],
      ["b", "one"],
    ],
  );
  assert.is(data[0].created, router.service.startedAt);
  const missing = await router.get(`/v1/models/${"c".repeat(300)}`);
  assert.is(missing.body.error.message, `No backend serves the model ${"c".repeat(200)}.`);
  assert.equal([(await router.get("/health")).status, (await router.get("/v1/health")).status], [200, 200]);
  const alone = await routing([down.url]);
  const sick = await alone.get("/health");
  assert.equal([sick.status, sick.body.error], [503, "No backend is healthy."]);
  assert.match(String(sick.headers["retry-after"]), /^[12]$/);
  assert.match(
    (await alone.get("/", { Accept: "text/plain" })).bytes.toString(),
    "0 of 1 backends is healthy.",
  );
});

test("what a server does not tell, or not as JSON, is said with its address", async () => {
  const one = await fake({
    models: [{ id: "a" }],
    pages: {
      "/health": json({}),
      "/props": (response) => void response.destroy(),
      "/slots": (response) => void response.writeHead(501).end("<html>"),
    },
  });
  const router = await routing([one.url]);
  const broken = await router.get("/props");
  assert.is(broken.status, 502);
  assert.match(broken.body.error.message, `${one.url} did not return /props: `);
  const html = await router.get("/slots?model=a");
  assert.equal([html.status, html.body.error.message], [502, `${one.url} answered 501 without JSON.`]);
});

test("a client leaving mid-request is not a fault, and the router continues", async () => {
  const router = await routing([(await fake()).url]);
  const socket = connect(router.port, "127.0.0.1");
  await once(socket, "connect");
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${router.port}\r\nContent-Length: 100\r\n\r\n{`;
  socket.write(head);
  await until(() => router.service.requests.active === 1);
  socket.destroy();
  await until(() => router.service.requests.refused === 1);
  assert.is((await router.chat({ messages })).status, 200);
  assert.equal(router.faults, []);
});

test("a router fault is a 500 without details and a log line; client faults are not", async () => {
  const router = await routing([(await fake()).url], { cors: ["http://page.example"] });
  const origin = { Origin: "http://page.example" };
  const refused = await router.chat("[]" as unknown as object, origin);
  assert.equal([refused.status, refused.headers["access-control-allow-origin"]], [400, origin.Origin]);
  assert.equal(router.faults, []);
  router.service.executions.begin = () => {
    throw new Error("a secret of the house");
  };
  const { status, body, headers } = await router.chat({ messages }, origin);
  assert.equal([status, headers["access-control-allow-origin"]], [500, origin.Origin]);
  assert.not.match(JSON.stringify(body), /secret/);
  assert.match(router.faults.join("\n"), /^Error: a secret of the house\n +at /);
  router.service.executions.begin = () => {
    throw Object.assign(new Error("gone"), { code: "EPIPE" });
  };
  router.faults.length = 0;
  await send(`${router.url}/v1/chat/completions`, "POST", { messages });
  assert.equal(router.faults, [], "that somebody went away is nobody's fault");
});

test.run();
