import { test } from "uvu";
import * as assert from "uvu/assert";
import { ask, Silence } from "../../src/router/ask.js";
import { cast } from "./support/cast.js";

const { fake, endAll } = cast();
test.after.each(endAll);

const never = new AbortController().signal;

test("a process that stood still itself takes nobody for frozen", async () => {
  const backend = await fake();
  const asked = ask(`${backend.url}/health`, undefined, 400, never);
  // Suspended, or starved: nothing runs here for twice the time that an answer may take.
  for (const end = performance.now() + 800; performance.now() < end; );
  assert.equal(await asked, { status: 200, body: { status: "ok" } });
});

test("one that says nothing is silent in the end", async () => {
  const backend = await fake({ pages: { "/health": () => {} } });
  const fault = await ask(`${backend.url}/health`, undefined, 100, never).catch((error) => error);
  assert.instance(fault, Silence);
});

test.run();
