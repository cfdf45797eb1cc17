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

test("a backend that was never there is no fault of a request for a model that nobody serves", async () => {
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

test("a time to the first token is told with two digits behind the point", async () => {
  const backend = new Backend({ url: "http://127.0.0.1:1" });
  backend.measured(12.3456, 0);
  assert.is(backend.report(0).time_to_first_token_ms, 12.35);
  await backend.destroy();
});

test.run();
