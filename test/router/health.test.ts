/** When backends are asked how they are, and what is made of the answers: the clock and its ticks are the test's. */
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Attempt } from "../../src/router/attempt.js";
import { Backend } from "../../src/router/backend.js";
import { Health, type HealthEvent, type HealthTiming, usualTiming } from "../../src/router/health.js";
import { until } from "../support/until.js";
import { standIn, withTime } from "../support/with-time.js";
import { cast } from "./support/cast.js";
import { type Fake, type FakeOptions, json } from "./support/fake.js";

const { fake, atEnd, endAll } = cast();
let ms = 0;
let putBack = () => {};
test.before.each(() => {
  ms = 1_000_000;
  putBack = standIn({ "performance.now": () => ms });
});
test.after.each(async () => {
  putBack();
  await endAll();
});

const never = 1e12;

/** A router's health without a router; `tick` is what its clock would call. */
function health(timing: Partial<HealthTiming> = {}) {
  const events: HealthEvent[] = [];
  let tick = () => {};
  const { setInterval: real } = globalThis;
  const noted = (run: () => void) => {
    tick = run;
    return real(() => {}, 1e9);
  };
  const one = withTime(
    { setInterval: noted },
    () => new Health({ ...usualTiming, ...timing }, (event) => events.push(event)),
  );
  atEnd(async () => one.close());
  return { health: one, events, tick: () => tick() };
}

function at(url: string): Backend {
  const one = new Backend({ url });
  atEnd(() => one.destroy());
  return one;
}

/** A backend that was asked once and is healthy, with what it was asked for forgotten. */
async function healthy(timing: Partial<HealthTiming> = {}, pages?: FakeOptions["pages"]) {
  const server = await fake(pages === undefined ? {} : { pages });
  const backend = at(server.url);
  const all = health(timing);
  await all.health.watch([backend]);
  assert.is(backend.state, "healthy");
  const first = server.asked.splice(0);
  return { server, backend, first, ...all };
}

/** Something that runs at a backend. */
function running(backend: Backend) {
  const said: string[] = [];
  const one = { abandon: () => said.push("abandon"), giveUp: () => said.push("give up") };
  backend.attempts.add(one as unknown as Attempt);
  return said;
}

test("a new backend is asked at once for everything, one that is known is not", async () => {
  const { backend, first, events, health: one } = await healthy();
  assert.equal(first, ["/health", "/v1/models", "/stats", "/props"]);
  assert.equal(events, [{ event: "healthy", url: backend.url, models: ["m"] }]);
  assert.equal(
    [backend.epoch, backend.healthySince, backend.lastSeen, backend.listedAt, backend.lastCheckEnded],
    [1, ms, ms, ms, ms],
  );
  const server = await fake();
  const other = at(server.url);
  other.state = "aside";
  await one.watch([backend, other]);
  assert.equal(server.asked, []);
});

test("who is silent is asked after five seconds, after one where requests wait; what it serves, every five", async () => {
  for (const [timing, waits, after, asked] of [
    [{ news: never }, false, 5000, ["/health"]],
    [{ news: never }, true, 1000, ["/health"]],
    // It has no /stats, which was found out the first time.
    [{ idle: never, silent: never }, false, 5000, ["/health", "/v1/models"]],
  ] as const) {
    const { backend, server, tick } = await healthy(timing);
    if (waits) running(backend);
    ms += after;
    tick();
    assert.is(backend.checking, undefined, `${after} ms are not more than that`);
    ms += 1;
    tick();
    const { checking } = backend;
    assert.ok(checking);
    tick();
    assert.is(backend.checking, checking, "one at a time");
    assert.ok(await checking);
    assert.equal(server.asked, [...asked]);
  }
});

test("who stands aside is asked when its time has come, and loses what it was silent about for thirty seconds", async () => {
  const { backend, tick } = await healthy();
  backend.state = "aside";
  backend.nextCheck = ms + 40_000;
  const said = running(backend);
  ms += 30_000;
  tick();
  assert.equal([backend.checking, said], [undefined, []]);
  ms += 1;
  tick();
  assert.equal([backend.checking, said], [undefined, ["give up"]]);
  ms += 9999;
  tick();
  assert.ok(await backend.checking);
  assert.is(backend.state, "healthy");
  said.length = 0;
  // A healthy one may be silent for as long as it likes.
  backend.lastSeen = ms - 60_000;
  tick();
  assert.equal(said, []);
  await backend.checking;
});

test("slots and other people's requests, as tapline, a router and llama-server tell them", async () => {
  const stats = (value: unknown) => ({ "/health": json({}), "/stats": json(value) });
  const props = (total_slots: unknown) => ({ "/health": json({}), "/props": json({ total_slots }) });
  for (const [pages, slots, elsewhere] of [
    [stats({ requests: { active: 3 }, slots: { total: 8 } }), 8, 3],
    [stats({ requests: { active: 3 }, backends: [{ slots: 4 }, { slots: 2 }, {}] }), 6, 3],
    [stats({ requests: { active: 3 }, slots: { total: 0 } }), 4, 3],
    [stats({ requests: { active: 3 } }), 4, 3],
    [stats({ requests: { active: "3" }, slots: { total: 8 } }), 4, 0],
    [props(6), 6, 0],
    [props(1), 1, 0],
    [props(0), 4, 0],
    [props("6"), 4, 0],
    [{ "/health": json({}), "/stats": (response) => void response.destroy() }, 4, 0],
  ] as [FakeOptions["pages"], number, number][]) {
    const { backend } = await healthy({}, pages);
    assert.equal([backend.slots, backend.elsewhere], [slots, elsewhere], JSON.stringify(pages));
  }
});

test("load by other clients excludes the router's own requests", async () => {
  const pages: NonNullable<FakeOptions["pages"]> = { "/health": json({}) };
  pages["/stats"] = json({ requests: { active: 3 }, slots: { total: 8 } });
  const { backend, health: one } = await healthy({ news: -1 }, pages);
  running(backend);
  await one.check(backend);
  assert.is(backend.elsewhere, 2);
  running(backend);
  running(backend);
  running(backend);
  await one.check(backend);
  assert.is(backend.elsewhere, 0, "four of ours, although it told of three");
  const tells = pages["/stats"];
  pages["/stats"] = (response) => {
    backend.attempts.clear();
    tells(response);
  };
  await one.check(backend);
  assert.is(backend.elsewhere, 0);
  // Nor those that began while it was asked.
  pages["/stats"] = (response) => {
    running(backend);
    running(backend);
    tells(response);
  };
  await one.check(backend);
  assert.is(backend.elsewhere, 1);
  backend.attempts.clear();
  pages["/stats"] = json({ requests: { active: 0 }, slots: { total: 8 } });
  await one.check(backend);
  pages["/stats"] = (response) => void response.destroy();
  await one.check(backend);
  assert.equal([backend.slots, backend.elsewhere, backend.state], [8, 0, "healthy"]);
});

test("backends without /stats or /health are not asked again until they restart", async () => {
  const { server, backend, first, health: one } = await healthy({ news: -1 }, {});
  assert.equal(first, ["/health", "/v1/models", "/stats", "/props"]);
  await one.check(backend);
  assert.equal(server.asked.splice(0), ["/v1/models"]);
  one.failed(backend, backend.epoch, "gone");
  await until(() => backend.state === "healthy");
  assert.equal(server.asked, first);
});

test("a page of another name at /health, or one that is not for us, is asked for once", async () => {
  for (const page of [json({ error: "no such page" }), json({}, 404), json({ status: "ok" }, 403)]) {
    const { server, backend, health: one } = await healthy({}, { "/health": page });
    await one.check(backend);
    assert.equal(server.asked, ["/v1/models"]);
  }
});

test("what a check finds, in words", async () => {
  const models = (value: unknown, status = 200) => ({ "/v1/models": json(value, status) });
  const well = { "/health": json({ status: "ok" }) };
  const list = (data: unknown) => ({ ...well, ...models({ data }) });
  for (const [pages, told] of [
    [{ "/health": json({}, 500) }, "/health answered 500"],
    [{ "/health": json({}, 429) }, "/health answered 429"],
    [{ ...models({}, 401), "/health": json({}, 499) }, "it requires an API key"],
    [{ ...well, ...models({}, 404) }, "/v1/models answered 404"],
    [{ ...well, ...models({}, 201) }, "/v1/models answered 201"],
    [list({}), "/v1/models answered 200"],
    [{ "/health": (response) => void response.destroy() }, "the connection was closed"],
    [{ ...well, ...models([]) }, []],
    [{ ...well, ...models(null) }, []],
    [list([null, 1, {}, { id: 7 }, { id: "a" }]), ["a"]],
    [{ "/health": json({ error: "no such page" }) }, ["m"]],
    [{ "/health": json({}, 499) }, ["m"]],
    [{ "/health": json({}, 201) }, ["m"]],
  ] as [FakeOptions["pages"], string | string[]][]) {
    const { url } = await fake({ ...(pages && { pages }) });
    const backend = at(url);
    const { health: one, events } = health();
    await one.watch([backend]);
    const seen = backend.state === "healthy" ? backend.models.map(({ id }) => id) : backend.lastError;
    assert.equal(seen, told, JSON.stringify(told));
    assert.is(events[0]?.event, typeof told === "string" ? "aside" : "healthy");
    one.close();
  }
});

test("a name that leads nowhere, for good or for now", async () => {
  const { lookup } = dns;
  for (const code of ["ENOTFOUND", "EAI_AGAIN"]) {
    dns.lookup = ((_name: string, _options: object, done: (error: Error) => void) =>
      queueMicrotask(() => done(Object.assign(new Error("getaddrinfo"), { code })))) as typeof lookup;
    syncBuiltinESMExports();
    try {
      const backend = at("http://nobody.example");
      const { health: one } = health();
      await one.watch([backend]);
      assert.is(backend.lastError, "the host name does not resolve");
      one.close();
    } finally {
      dns.lookup = lookup;
      syncBuiltinESMExports();
    }
  }
});

test("a check without an answer: frozen, unless its streams showed meanwhile that it lives", async () => {
  const pages: NonNullable<FakeOptions["pages"]> = { "/health": json({}) };
  const { backend, server, health: one } = await healthy({ answer: 60 }, pages);
  const said = running(backend);
  pages["/health"] = () => {
    ms += 1;
    backend.lastSeen = ms;
  };
  assert.ok(await one.check(backend));
  assert.equal([backend.state, said], ["healthy", []]);
  pages["/health"] = () => {
    ms += 1;
    backend.lastSeen = ms - 1;
  };
  assert.not(await one.check(backend));
  assert.equal([backend.state, backend.lastError, said], ["aside", "timeout", ["abandon"]]);
  // Of one that stands aside already, a stream's last bytes say nothing.
  await backend.checking;
  ms = backend.nextCheck;
  const before = server.asked.length;
  pages["/health"] = () => {
    ms += 1;
    backend.lastSeen = ms;
  };
  assert.not(await one.check(backend));
  assert.ok(server.asked.length > before);
});

test("the first failure is looked at once, the next ones are waited for; an answered request ends their count", async () => {
  const { backend, health: one, server } = await healthy({}, { "/health": json({}) });
  const fail = () => one.failed(backend, backend.epoch, "it broke");
  fail();
  assert.equal([backend.nextCheck, backend.failures], [ms, 1]);
  assert.ok(backend.checking, "at once");
  await backend.checking;
  assert.equal([backend.state, backend.failures, backend.epoch], ["healthy", 1, 2]);
  fail();
  assert.equal([backend.nextCheck, backend.checking], [ms + 250, undefined]);
  ms += 250;
  await one.check(backend);
  one.answered(backend);
  fail();
  assert.is(backend.nextCheck, ms);
  await backend.checking;
  // A check that is under way asked before the failure: the next tick asks again.
  one.answered(backend);
  server.asked.length = 0;
  const underWay = one.check(backend);
  fail();
  assert.ok(await underWay);
  assert.is(server.asked.filter((path) => path === "/health").length, 1);
});

test("a backend that stays away is asked after a quarter of a second, and then half as often each time, up to half a minute", async () => {
  const pages: NonNullable<FakeOptions["pages"]> = { "/health": json({}) };
  const { backend, health: one } = await healthy({}, pages);
  pages["/health"] = json({}, 503);
  const waits: number[] = [];
  for (let round = 0; round < 10; round++) {
    ms = Math.max(ms, backend.nextCheck);
    const checking = backend.checking ?? one.check(backend);
    assert.not(await checking);
    waits.push(backend.nextCheck - ms);
  }
  assert.equal(waits, [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test("ten seconds of health end the count of its failures, and no millisecond less", async () => {
  const { backend, health: one } = await healthy();
  backend.failures = 3;
  ms += 10_000;
  assert.ok(await one.check(backend));
  assert.is(backend.failures, 3);
  ms += 1;
  assert.ok(await one.check(backend));
  assert.is(backend.failures, 0);
});

test("a client is told to wait until the next check, a second at least and thirty at most", () => {
  const { health: one } = health();
  const [soon, late] = [at("http://127.0.0.1:1"), at("http://127.0.0.1:2")];
  for (const backend of [soon, late]) backend.state = "aside";
  void one.watch([soon, late]);
  late.nextCheck = ms + 100_000;
  for (const [wait, told] of [
    [-5000, 1],
    [0, 1],
    [1000, 1],
    [1001, 2],
    [2000, 2],
    [29_001, 30],
    [31_000, 30],
    [200_000, 30],
  ] as const) {
    soon.nextCheck = ms + wait;
    assert.is(one.retryAfterSeconds(), told, String(wait));
  }
});

test("lists older than a second are read anew for a model that nobody lists, those of healthy ones", async () => {
  const { backend, health: one, server } = await healthy();
  ms += 1000;
  await one.refresh();
  assert.equal(server.asked, []);
  ms += 1;
  backend.state = "aside";
  await one.refresh();
  assert.equal(server.asked, []);
  backend.state = "healthy";
  await one.refresh();
  assert.equal(server.asked, ["/health", "/v1/models"]);
  assert.is(backend.listedAt, ms);
});

test("a request that has nobody else asks a tenth of a second after the last check", async () => {
  const { health: one } = health();
  const server = await fake();
  const backend = at(server.url);
  backend.state = "aside";
  await one.watch([backend]);
  assert.not(await one.checkForRequest(() => false), "nobody could take it");
  const { setTimeout: real } = globalThis;
  const waits: number[] = [];
  const waiting = (meanwhile: () => void) => {
    const atOnce = (done: () => void, wait: number, ...rest: unknown[]) => {
      if (rest.length === 0 && wait > 1) {
        waits.push(wait);
        meanwhile();
        return real(done, 0);
      }
      return real(done, wait, ...(rest as []));
    };
    return withTime({ setTimeout: atOnce }, () => one.checkForRequest(() => true));
  };
  backend.lastCheckEnded = ms - 40;
  assert.ok(
    await waiting(() => {
      backend.state = "healthy";
    }),
  );
  assert.equal([waits.splice(0), server.asked.length], [[60], 0], "it came back meanwhile, and is not asked");
  assert.not(await one.checkForRequest(() => true), "of a healthy one nothing is to be hoped");
  backend.state = "aside";
  backend.lastCheckEnded = ms - 100;
  assert.ok(await waiting(() => {}));
  assert.equal(
    waits.filter((wait) => wait <= 100),
    [],
  );
  assert.is(server.asked[0], "/health");
  // A check that is under way may be the one that finds it well.
  backend.state = "aside";
  server.asked.length = 0;
  void one.check(backend);
  assert.ok(await one.checkForRequest(() => true));
  assert.is(server.asked.filter((path) => path === "/health").length, 1);
});

test("at the end, and of one that is taken out, a check says nothing any more", async () => {
  const held: (() => void)[] = [];
  const begin = async (server: Fake, backend: Backend, one: Health) => {
    const checking = one.check(backend);
    await until(() => server.asked.length > 0);
    return checking.then.bind(checking);
  };
  for (const [how, answer] of [
    ["closed", json({}, 500)],
    ["retired", json({}, 500)],
    ["retired", json({})],
  ] as const) {
    const server = await fake({ pages: { "/health": (response) => held.push(() => answer(response)) } });
    const backend = at(server.url);
    const { health: one, events } = health();
    const checked = await begin(server, backend, one);
    if (how === "closed") one.close();
    else backend.retired = true;
    for (const release of held.splice(0)) release();
    assert.is(await checked((found) => found), false);
    assert.equal([backend.state, backend.lastSeen, events], ["starting", 0, []], how);
  }
});

test("at the end its clock stands still", () => {
  const { setInterval: begin, clearInterval: stop } = globalThis;
  let timer: unknown;
  const stopped: unknown[] = [];
  const watched = {
    setInterval(run: () => void, every: number) {
      timer = begin(run, every);
      return timer;
    },
    clearInterval(one: NodeJS.Timeout) {
      stopped.push(one);
      stop(one);
    },
  };
  withTime(watched, () => new Health(usualTiming, () => {}).close());
  assert.equal(stopped.includes(timer), true);
});

test.run();
