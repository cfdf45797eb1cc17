import { test } from "uvu";
import * as assert from "uvu/assert";
import { startRouter } from "../../src/router/index.js";
import { send } from "../support/request.js";
import { cast } from "./support/cast.js";
import { json } from "./support/fake.js";

const { fake, endAll } = cast();
test.after.each(endAll);

test("forwarded requests follow the same rules as the rest of /v1", async () => {
  const origin = "http://page.example";
  const backend = await fake({ models: [{ id: "a" }] });
  const router = await startRouter({
    port: 0,
    backends: [{ url: backend.url }],
    cors: [origin],
    apiKey: "k",
  });
  try {
    const ask = (headers: Record<string, string>, method = "POST") =>
      send(`${router.url}/v1/chat/completions`, method, method === "POST" ? { messages: [] } : undefined, {
        "X-Api-Key": "k",
        ...headers,
      });
    const before = backend.got.length;
    assert.is((await ask({ Host: "evil.example" })).status, 403);
    assert.is((await ask({ Origin: "http://evil.example", "Content-Type": "text/plain" })).status, 403);
    assert.is(backend.got.length, before);
    const allowed = await ask({ Origin: origin, "Content-Type": "text/plain" });
    assert.equal([allowed.status, allowed.headers["access-control-allow-origin"]], [200, origin]);
    assert.is(backend.got.at(-1)?.headers?.["x-api-key"], undefined); // the router's key is nobody else's to see
    const preflight = await ask({ Origin: origin, "Access-Control-Request-Method": "POST" }, "OPTIONS");
    assert.equal([preflight.status, preflight.headers["access-control-allow-origin"]], [204, origin]);
    const refused = await ask({ Origin: origin, "X-Api-Key": "no" });
    assert.equal([refused.status, refused.headers["access-control-allow-origin"]], [401, origin]);
  } finally {
    await router.close();
  }
});

test("llama-server's own paths are forwarded for programs on this machine only", async () => {
  const backend = await fake({ models: [{ id: "a" }] });
  const router = await startRouter({ port: 0, backends: [{ url: backend.url }] });
  try {
    const ask = (headers: Record<string, string>) =>
      send(`${router.url}/completion`, "POST", { prompt: "a" }, headers);
    assert.is((await ask({})).status, 200);
    assert.is(backend.got.at(-1)?.path, "/completion");
    assert.is((await ask({ Origin: "http://page.example" })).status, 403);
    assert.is((await send(`${router.url}/v1/health`, "GET")).body.status, "ok");
  } finally {
    await router.close();
  }
});

test("properties come from a backend that serves the model, never in a circle", async () => {
  const tells = (id: string) => ({
    models: [{ id }],
    pages: { "/health": json({ status: "ok" }), "/props": json({ model_alias: id }) },
  });
  const [a, b] = [await fake(tells("a")), await fake(tells("b"))];
  const router = await startRouter({ port: 0, backends: [{ url: a.url }, { url: b.url }] });
  const outer = await startRouter({ port: 0, backends: [{ url: router.url }] });
  try {
    const ask = (path: string, headers: Record<string, string> = {}) =>
      send(`${router.url}${path}`, "GET", undefined, headers);
    for (const id of ["a", "b"]) {
      const { status, body } = await ask(`/props?model=${id}`);
      assert.equal([status, body.model_alias], [200, id]);
    }
    const through = await send(`${outer.url}/props?model=auto`, "GET");
    assert.ok(["a", "b"].includes(through.body.model_alias), through.bytes.toString());
    const unknown = await ask("/slots?model=c");
    assert.equal([unknown.status, unknown.body.error.code], [503, 503]);
    assert.is((await ask("/slots?model=a")).status, 404); // as that server itself says
    assert.is((await ask("/props", { Origin: "http://page.example" })).status, 403);
    const back = { "X-Tapline-Route": `1.1 other, ${router.service.via}` };
    assert.is((await ask("/props", back)).status, 508);
    // Requests through a proxy may use /v1 only.
    assert.is((await ask("/props", { Via: `1.1 other, ${router.service.via}` })).status, 403);
    const chat = { messages: [{ role: "user", content: "x" }] };
    for (const headers of [back, { Via: `1.1 other, ${router.service.via}` }]) {
      assert.is((await send(`${router.url}/v1/chat/completions`, "POST", chat, headers)).status, 508);
    }
  } finally {
    await Promise.all([router.close(), outer.close()]);
  }
});

test.run();
