import { test } from "uvu";
import * as assert from "uvu/assert";
import { Backend } from "../../src/router/backend.js";
import { pick } from "../../src/router/pick.js";
import { freePort } from "../support/free-port.js";
import { cast } from "./support/cast.js";
import { json } from "./support/fake.js";
import { messages } from "./support/routing.js";

const { fake, routing, endAll } = cast();
test.after.each(endAll);

test("a request that nobody could serve is refused; one that a server's fault ended has failed", async () => {
  const one = await fake({ models: [{ id: "one" }] });
  const router = await routing([one.url]);
  const counts = async () => {
    const { completed, failed, refused, cancelled } = (await router.get("/stats")).body.requests;
    return { completed, failed, refused, cancelled };
  };
  assert.is((await router.chat({ model: "one", messages })).status, 200);
  assert.equal(await counts(), { completed: 1, failed: 0, refused: 0, cancelled: 0 });
  assert.is((await router.chat("[]" as unknown as object)).status, 400);
  assert.is((await router.chat({ model: "nobody's", messages })).status, 404);
  one.options.post = (_got, response) => json({ error: { message: "too long" } }, 400)(response);
  assert.is((await router.chat({ model: "one", messages })).status, 400);
  assert.equal(await counts(), { completed: 1, failed: 0, refused: 3, cancelled: 0 });
  one.options.post = (_got, response) => json({ error: { message: "broken" } }, 500)(response);
  assert.is((await router.chat({ model: "one", messages })).status, 500);
  assert.equal(await counts(), { completed: 1, failed: 1, refused: 3, cancelled: 0 });
});

test("an unreachable backend is not the fault of a request for an unknown model", async () => {
  const one = await fake({ models: [{ id: "one" }] });
  const never = `http://127.0.0.1:${await freePort()}`;
  const router = await routing([never, one.url]);
  const { status, body } = await router.chat({ model: "another", messages });
  assert.equal([status, body.error.code], [404, "model_not_found"]);
  assert.is((await router.chat({ model: "one", messages })).status, 200);
});

test("a backend of which no time is known comes before one that took half a millisecond", async () => {
  const [quick, unknown] = [
    new Backend({ url: "http://127.0.0.1:1" }),
    new Backend({ url: "http://127.0.0.1:2" }),
  ];
  try {
    for (const backend of [quick, unknown]) {
      backend.state = "healthy";
      backend.setModels([{ id: "m", object: "model", owned_by: "x" }], 1);
    }
    quick.measured(0.5, 100);
    unknown.lastPicked = 50;
    assert.is(pick([quick, unknown], "m", new Set(), 100), unknown);
    assert.is(pick([quick, unknown], "m", new Set([unknown]), 100), quick);
    assert.is(pick([quick, unknown], "another", new Set(), 100), null);
  } finally {
    await Promise.all([quick.destroy(), unknown.destroy()]);
  }
});

test("a time to the first token counts for less the longer ago it was, and for less than one measured since", async () => {
  const backend = new Backend({ url: "http://127.0.0.1:1" });
  try {
    assert.is(backend.firstTokenMs(0), 0);
    assert.is(backend.report(0).time_to_first_token_ms, null);
    backend.measured(100, 1000);
    assert.equal(
      [1000, 31_000, 61_000].map((now) => backend.firstTokenMs(now)),
      [100, 50, 25],
    );
    backend.measured(200, 2000);
    assert.ok(Math.abs(backend.firstTokenMs(2000) - (0.7 * 100 + 0.3 * 200)) < 1e-9);
    assert.is(backend.report(2000).time_to_first_token_ms, 130);
  } finally {
    await backend.destroy();
  }
});

test("a time to first token has two decimals", async () => {
  const backend = new Backend({ url: "http://127.0.0.1:1" });
  backend.measured(12.3456, 0);
  assert.is(backend.report(0).time_to_first_token_ms, 12.35);
  await backend.destroy();
});

test("statistics of a backend without requests, and of one that is suspended", async () => {
  const backend = new Backend({ url: "http://127.0.0.1:1/base" });
  try {
    const told = {
      ...{ url: "http://127.0.0.1:1/base", state: "starting", models: [], slots: 4, active: 0, elsewhere: 0 },
      ...{
        requests: 0,
        failures: 0,
        time_to_first_token_ms: null,
        next_check_seconds: null,
        last_error: null,
      },
    };
    assert.equal(backend.report(5000), told);
    assert.equal([backend.listed, backend.prefix, backend.load], [false, "/base", 0]);
    const aside = {
      state: "aside",
      elsewhere: 6,
      requests: 3,
      timesAside: 2,
      lastError: "it broke",
    } as const;
    Object.assign(backend, { ...aside, nextCheck: 7500, reportedSlots: 8 });
    backend.setModels([{ id: "a:latest", aliases: ["b", 7] }, { id: "b" }], 10);
    const figures = { models: ["a:latest", "b"], slots: 8, elsewhere: 6, requests: 3, failures: 2 };
    assert.equal(backend.report(5000), {
      ...{ ...told, ...figures, state: "aside", next_check_seconds: 2.5, last_error: "it broke" },
    });
    assert.is(backend.report(9000).next_check_seconds, 0);
    assert.equal([backend.listed, backend.load], [true, 0.75]);
    // A model's own id comes before another one's other name.
    assert.equal(
      ["a", "a:latest", "b", "c", null].map((name) => backend.idOf(name)),
      [...["a:latest", "a:latest", "b", null, "a:latest"]],
    );
    backend.setModels([], 20);
    assert.equal(
      [backend.idOf("b"), backend.idOf(null)],
      [null, null],
      "what was listed before is forgotten",
    );
    backend.config = { url: backend.url, model: "own", slots: 2 };
    assert.equal([backend.idOf(null), backend.slots], ["own", 2]);
  } finally {
    await backend.destroy();
  }
});

test("a backend opens models where it is tapline's, and on this machine", async () => {
  for (const [url, owner, opens] of [
    ["http://127.0.0.1:1", "tapline", true],
    ["http://localhost:1", "tapline", true],
    ["http://[::1]:1", "tapline", true],
    ["http://127.0.0.1:1", "somebody", false],
    ["http://192.0.2.1:1", "tapline", false],
    ["http://localhost.example:1", "tapline", false],
  ] as const) {
    const backend = new Backend({ url });
    backend.setModels([{ id: "other" }, { id: "m", owned_by: owner }], 1);
    assert.is(backend.opensModels, opens, `${url} ${owner}`);
    await backend.destroy();
  }
});

test.run();
