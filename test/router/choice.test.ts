import { test } from "uvu";
import * as assert from "uvu/assert";
import { RouterStats } from "../../src/contracts/router.js";
import { validate } from "../../src/contracts/validate.js";
import { until } from "../support/until.js";
import { withTime } from "../support/with-time.js";
import { cast } from "./support/cast.js";
import { type Fake, json, stream } from "./support/fake.js";
import { messages } from "./support/routing.js";

const { fake, routing, endAll } = cast();
test.after.each(endAll);

const modelsAsked = ({ got }: Fake) => got.map(({ body }) => JSON.parse(body).model);

test("auto goes to each in turn, under the name that the backend knows", async () => {
  const one = await fake({ models: [{ id: "one" }] });
  const two = await fake({ models: [{ id: "two" }, { id: "other" }] });
  const router = await routing([one.url, `${two.url}/v1/`]);
  for (const body of [{ model: "auto" }, {}, { model: null }, { model: "auto" }]) {
    assert.is((await router.chat({ ...body, messages })).status, 200);
  }
  assert.equal(modelsAsked(one), ["one", "one"]);
  assert.equal(modelsAsked(two), ["two", "two"]);
});

test("a model id selects its servers; the body is passed on unchanged", async () => {
  const one = await fake({ models: [{ id: "a" }] });
  const two = await fake({
    models: [{ id: "a" }, { id: "owner/b" }, { id: "c:latest" }, { id: "d", aliases: ["e"] }],
  });
  const router = await routing([one.url, two.url]);
  const body = '{"messages": [] , "seed":12345678901234567890, "model":"owner/b"}';
  const { status } = await router.chat(body as unknown as object);
  assert.is(status, 200);
  assert.is(two.got[0]?.body, body);
  await router.chat({ model: "c", messages });
  await router.chat({ model: "e", messages });
  assert.equal(modelsAsked(two), ["owner/b", "c:latest", "d"]);
  await router.chat({ model: "a", messages });
  await router.chat({ model: "a", messages });
  assert.is(one.got.length, 1);
  const { body: list } = await router.get("/v1/models");
  assert.equal(
    list.data.map(({ id }: { id: string }) => id),
    ["auto", "a", "owner/b", "c:latest", "d"],
  );
  assert.is((await router.get("/v1/models/owner/b")).body.id, "owner/b");
  assert.is((await router.get("/v1/models/auto")).body.id, "auto");
  assert.is((await router.get("/v1/models/nope")).status, 404);
});

test("with backends that are healthy and serve nothing, the 503 says so", async () => {
  const router = await routing([(await fake({ models: [] })).url]);
  const { status, body } = await router.chat({ messages });
  assert.equal([status, body.error.message], [503, "No healthy backend lists a model; try again later."]);
});

test("an unknown model is 404, unless a backend has it since", async () => {
  const one = await fake();
  const router = await routing([one.url]);
  const { status, body } = await router.chat({ model: "new", messages });
  assert.is(status, 404);
  assert.equal(body.error, {
    message: "No backend serves the model new.",
    type: "not_found_error",
    param: "model",
    code: "model_not_found",
  });
  const { body: list } = await router.get("/executions");
  const { body: record } = await router.get(`/executions/${list.executions[0].id}`);
  assert.equal(
    record.events.map(({ kind, text }: { kind: string; text: string }) => [kind, text]),
    [
      ["lifecycle", "received"],
      ["error", "No backend serves the model new."],
      ["lifecycle", "failed"],
    ],
  );
  one.options.models = [{ id: "m" }, { id: "new" }];
  await until(async () => (await router.chat({ model: "new", messages })).status === 200);
});

test("work goes to the shortest queue per slot, then the fastest first token", async () => {
  const waiting: (() => void)[] = [];
  type Post = NonNullable<Fake["options"]["post"]>;
  const hold: Post = (_got, response) => {
    waiting.push(() =>
      response.writeHead(200, { "Content-Type": "text/event-stream" }).end("data: [DONE]\n\n"),
    );
  };
  const wide = await fake({ post: hold, pages: { "/health": json({}), "/props": json({ total_slots: 6 }) } });
  const narrow = await fake({ post: hold });
  const router = await routing([wide.url, { url: narrow.url, slots: 2 } as { url: string }]);
  const chats: Promise<unknown>[] = [];
  for (let count = 1; count <= 8; count++) {
    chats.push(router.chat({ messages, stream: true }));
    await until(() => waiting.length === count);
  }
  assert.equal([wide.got.length, narrow.got.length], [6, 2]);
  for (const answer of waiting) answer();
  await Promise.all(chats);

  let ms = 1_000_000;
  await withTime({ "performance.now": () => ms }, async () => {
    const answering =
      (takes: number): Post =>
      (got, response) => {
        ms += takes;
        stream(["x"])(got, response);
      };
    const slow = await fake({ post: answering(200) });
    const quick = await fake({ post: answering(5) });
    const idle = await routing([slow.url, quick.url]);
    for (let count = 0; count < 8; count++) await idle.chat({ messages, stream: true });
    assert.equal([slow.got.length, quick.got.length], [1, 7]);
  });
});

test("work that others give to a tapline server counts", async () => {
  const stats = { requests: { active: 3 }, slots: { total: 4, busy: 3 } };
  const busy = await fake({ pages: { "/health": json({}), "/stats": json(stats) } });
  const free = await fake();
  const router = await routing([busy.url, free.url]);
  for (let count = 0; count < 4; count++) await router.chat({ messages });
  assert.equal([busy.got.length, free.got.length], [0, 4]);
  const { body } = await router.get("/stats");
  validate(RouterStats, body);
  assert.equal(
    body.backends.map(({ elsewhere, requests, state }: Record<string, unknown>) => ({
      elsewhere,
      requests,
      state,
    })),
    [
      { elsewhere: 3, requests: 0, state: "healthy" },
      { elsewhere: 0, requests: 4, state: "healthy" },
    ],
  );
});

test("servers without /health, with an odd one, or with a key are healthy too", async () => {
  const ollama = await fake({ models: [{ id: "llama:latest" }], pages: {} });
  const unexpected = json({ error: "Unexpected endpoint or method. (GET /health)" });
  const lmStudio = await fake({ models: [{ id: "studio" }], pages: { "/health": unexpected } });
  const vllm = await fake({
    models: [{ id: "org/model" }],
    pages: { "/health": (response) => void response.writeHead(200).end() },
  });
  const router = await routing([
    ollama.url,
    lmStudio.url,
    { url: vllm.url, api_key: "k" } as { url: string },
  ]);
  assert.equal(
    router.service.backends.map(({ state }) => state),
    ["healthy", "healthy", "healthy"],
  );
  for (const model of ["llama", "studio", "org/model"]) {
    assert.is((await router.chat({ model, messages })).status, 200);
  }
  assert.is(vllm.got[0]?.headers.authorization, "Bearer k");
  // They log each request for what they do not have: one is enough.
  for (const backend of router.service.backends) await router.service.health.check(backend);
  assert.equal(
    [ollama, lmStudio].map(({ asked }) => asked.filter((path) => path === "/health").length),
    [1, 1],
  );
});

test("routers in a circle answer, and ask each other once", async () => {
  const real = await fake();
  const first = await routing([real.url]);
  const second = await routing([first.url]);
  await first.configure([{ url: real.url }, { url: second.url }]);
  for (let count = 0; count < 4; count++) {
    const { status, body } = await first.chat({ messages });
    assert.is(status, 200, JSON.stringify(body));
  }
  assert.is(real.got.length, 4);
  assert.match(real.got[0]?.headers.via ?? "", /^1\.1 tapline-[0-9a-f]{16}$/);
});

test.run();
