/** Who is let in, and how long the end waits for them; a model's name; an engine's refusal. On stand-ins. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { HttpError } from "../../src/http/index.js";
import { Admission } from "../../src/inference/admission.js";
import { wholeBody } from "../../src/inference/reply.js";
import { endService, modelId } from "../../src/inference/server.js";

function refusal(run: () => unknown): [number, string, string | null, Record<string, string>] {
  try {
    run();
  } catch (error) {
    const { status, message, code, headers } = error as HttpError;
    return [status, message, code, headers];
  }
  return [200, "", null, {}];
}

test("as many are let in as there are slots and waiting places; each leaves once", () => {
  const admission = new Admission(2, 1);
  const leave = [admission.enter(), admission.enter(), admission.enter()];
  const busy = "The server is busy: 3 requests are already running or waiting.";
  assert.equal(
    refusal(() => admission.enter()),
    [503, busy, "overloaded", { "Retry-After": "1" }],
  );
  leave[0]?.();
  leave[0]?.();
  assert.is(admission.inside, 2);
  admission.enter();
  assert.is(refusal(() => admission.enter())[1], busy);
  leave[1]?.();
  admission.close();
  assert.equal(
    refusal(() => admission.enter()),
    [503, "The server is shutting down.", "overloaded", { "Retry-After": "5" }],
  );
  assert.is(admission.inside, 2);
  // 256 may wait unless told otherwise.
  const usual = new Admission(4);
  for (let count = 0; count < 260; count++) usual.enter();
  assert.is(refusal(() => usual.enter())[0], 503);
});

test("a service that ends lets nobody in, and waits a while for who is inside before it closes all", async () => {
  const ending = (graceMs: number) => {
    const admission = new Admission(2, 0);
    const done: string[] = [];
    const engine = { close: async () => void done.push(`engine, ${admission.inside} inside`) };
    const files = { close: () => done.push("files") };
    const server = { closeAllConnections: () => done.push("connections") };
    const leave = admission.enter();
    const ended = endService({ admission, engine, files } as never, server as never, graceMs);
    return { admission, done, leave, ended };
  };
  const patient = ending(1e9);
  assert.is(refusal(() => patient.admission.enter())[1], "The server is shutting down.");
  assert.equal(patient.done, []);
  patient.leave();
  await patient.ended;
  assert.equal(patient.done, ["engine, 0 inside", "files", "connections"]);
  const hasty = ending(0);
  await hasty.ended;
  assert.equal(hasty.done, ["engine, 1 inside", "files", "connections"]);
});

test("a model is served under the hub's id, or its file's name without its ending and the numbers of its parts", () => {
  const named = (path: string, repository: string | null = null) => modelId("asked", { path, repository });
  assert.is(named("/m/x.gguf", "owner/name"), "asked");
  assert.is(named("/m/x.Q4.GGUF"), "x.Q4");
  assert.is(named("/m/large-00001-of-00003.gguf"), "large");
  assert.is(named("/m/large-1-of-3.gguf"), "large-1-of-3");
});

test("an engine's refusal is the answer, with whose fault it is", () => {
  const refused = (status: number, error: { message: string; type: string }) =>
    refusal(() => wholeBody({ status, body: JSON.stringify({ error }) })).slice(0, 3);
  assert.equal(refused(400, { message: "No.", type: "invalid_request_error" }), [400, "No.", null]);
  assert.equal(refused(501, { message: "Not here.", type: "not_supported_error" }), [400, "Not here.", null]);
  assert.equal(
    refused(500, { message: "Unexpected empty grammar stack after x", type: "server_error" })[0],
    400,
  );
  assert.equal(refused(500, { message: "It broke.", type: "server_error" }), [500, "It broke.", null]);
  assert.equal(refused(400, { message: "Long.", type: "exceed_context_size_error" }), [
    400,
    "Long.",
    "context_length_exceeded",
  ]);
  const unfit = refused(400, { message: "Failed to initialize samplers: std::exception", type: "x" })[1];
  assert.match(String(unfit), "does not match the required format");
  assert.is(wholeBody({ status: 399, body: "b" }), "b");
});

test.run();
