import { test } from "uvu";
import * as assert from "uvu/assert";
import { cast } from "./support/cast.js";
import { messages } from "./support/routing.js";

const { fake, routing, endAll } = cast();
test.after.each(endAll);

const tapline = { watch: { layers: [0], norms: true } };

test("requests for internals go only to local tapline servers", async () => {
  const stranger = await fake({ models: [{ id: "a", owned_by: "somebody" }] });
  const own = await fake({ models: [{ id: "a", owned_by: "tapline" }] });
  const router = await routing([stranger.url, own.url]);
  for (let round = 0; round < 4; round++) {
    assert.is((await router.chat({ model: "a", messages, tapline })).status, 200);
  }
  assert.is(own.got.length, 4);
  assert.is(stranger.got.length, 0);
  assert.equal(JSON.parse(own.got[0]!.body).tapline, tapline);
});

test("without such a server it is refused, and so it is for a web page", async () => {
  const stranger = await fake({ models: [{ id: "a", owned_by: "somebody" }] });
  const router = await routing([stranger.url]);
  const { status, body } = await router.chat({ model: "a", messages, tapline });
  assert.is(status, 400);
  assert.match(body.error.message, /no backend of this router is a tapline server/);
  const page = await router.chat({ model: "a", messages, tapline }, { Cookie: "a=b" });
  assert.is(page.status, 403);
  assert.is(stranger.got.length, 0);
});

test.run();
