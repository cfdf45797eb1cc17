/** A `tapline` object is acted on or refused, on every route that reads a body: never ignored. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { disguisedLiveField, liveFieldFault } from "../../src/contracts/live-field.js";
import { forwardedPaths } from "../../src/contracts/router.js";
import { type Routes, routesOf } from "../../src/http/index.js";
import { inferenceEndpoints } from "../../src/inference/endpoints.js";
import { type LabParts, labEndpoints } from "../../src/lab/endpoints.js";
import { startLab } from "../../src/lab/index.js";
import { stand } from "../inference/support/stand.js";
import { cast } from "../router/support/cast.js";
import { messages } from "../router/support/routing.js";
import { send } from "../support/request.js";

const { fake, routing, endAll } = cast();
test.after.each(endAll);

const live = { watch: { layers: [0], norms: true } };
/** Fields under which a client may send the object by mistake. */
const mistakes = [
  { Tapline: live },
  { TAPLINE: live },
  { " tapline": live },
  { "tapline ": live },
  { "\ttapline\n": live },
  { extra_body: { tapline: live } },
  { extra_body: { "Tapline ": live } },
];

/** The paths of these routers that take one of these methods. */
function taking(routers: readonly Routes[], ...wanted: string[]): string[] {
  return routers.flatMap(({ stack }) =>
    stack.filter(({ methods }) => wanted.some((method) => methods.includes(method))).map(({ path }) => path),
  );
}

const acting = ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"];
/** What bodies of the contract's strict routes must not lack; the others are refused before they are checked. */
const required: Record<string, object> = {
  "/lab/activations": { model: "m", prompt: "a" },
  "/lab/forward": { sequences: ["a"], logits: "last" },
  "/lab/weights": { tensors: ["a"] },
  "/lab/vectors": { name: "v", layers: [0], positive: ["a", "b"], negative: ["c", "d"] },
  "/lab/probes": { name: "p", layer: 0, positive: Array(5).fill("a"), negative: Array(5).fill("b") },
  "/lab/v1/jobs": { operation: "inspect", model: "demo", prompt: "a", layers: [0] },
  "/lab/v1/jobs/:id/cancel": {},
  "/lab/dictionaries/:name": { from: "a/b" },
  "/lab/lenses/:name": { from: "a/b" },
  "/lab/profiles/:name": { tapline: { interventions: [{ kind: "scale", layer: 0, strength: 2 }] } },
  ...Object.fromEntries(
    ["vectors", "probes", "profiles", "dictionaries", "lenses"].map((kind) => [
      `/lab/${kind}/:name/rename`,
      { name: "other" },
    ]),
  ),
};
/** Routes that answer 405 on the inference port. */
const refusing = ["/props", "/lora-adapters"];
/** Routes of the Lab that read files, or answer 405. */
const unread = ["/lab/vectors", "/lab/probes", "/lab/vectors/:name", "/lab/probes/:name"];

test("every POST route of the inference server acts on tapline or refuses it", async () => {
  const { service, post, asked } = await stand({ embeddings: true });
  const paths = taking([routesOf(inferenceEndpoints, service)], "POST");
  for (const path of [...acting, ...Object.keys(required).filter((path) => paths.includes(path))]) {
    assert.ok(paths.includes(path), path);
  }
  assert.ok(paths.length >= 20, `${paths}`);
  for (const path of paths) {
    if (refusing.includes(path)) {
      assert.is((await post(path, { tapline: live })).status, 405);
      continue;
    }
    const wrong = acting.includes(path) ? mistakes : [...mistakes, { tapline: live }, { tapline: {} }];
    for (const body of [...wrong, { extra_body: { top_k: 1 } }]) {
      const { status, bytes } = await post(path.replace(":name", "name"), { ...required[path], ...body });
      const [field] = Object.keys(body) as [string];
      const sentence = bytes.toString();
      assert.is(status, 400, `${path} ${JSON.stringify(body)}: ${sentence}`);
      assert.ok(sentence.includes(field === "extra_body" ? field : field.trim()), `${path}: ${sentence}`);
    }
  }
  assert.equal(asked, [], "the engine is not asked");
});

test("the four routes that run edits hand the object to the engine", async () => {
  const { engine } = await stand({}, {}, undefined, {});
  const bodies = {
    "/v1/chat/completions": { messages },
    "/v1/completions": { prompt: "a" },
    "/v1/responses": { input: "a" },
    "/v1/messages": { messages, max_tokens: 1 },
  };
  for (const path of acting) {
    const body = bodies[path as keyof typeof bodies];
    assert.ok((await engine(path, { ...body, tapline: {} })).live !== undefined, path);
    assert.is(
      (await engine(path, { ...body, tapline: null, Tapline: null, extra_body: null })).live,
      undefined,
    );
  }
});

test("every POST route of the Lab refuses it", async () => {
  const home = await mkdtemp(join(tmpdir(), "tapline-live-field-"));
  const lab = await startLab({ home, port: 0, backend: "cpu" });
  let refused = 0;
  try {
    // Made only to be listed: no route is asked.
    const routes = [routesOf(labEndpoints, {} as LabParts)];
    for (const method of ["POST", "PUT"]) {
      for (const path of taking(routes, method)) {
        // A profile is such an object.
        if (unread.includes(path) || path === "/lab/profiles/:name") continue;
        for (const body of [...mistakes, { tapline: live }, { extra_body: { top_k: 1 } }]) {
          const url = lab.url + path.replace(":id", "0".repeat(32)).replace(":name", "name");
          const { status, bytes } = await send(url, method, { ...required[path], ...body });
          assert.is(status, 400, `${path} ${JSON.stringify(body)}: ${bytes}`);
          assert.match(bytes.toString(), /tapline|extra_body/i, path);
          refused++;
        }
      }
    }
    // Jobs, their cancelling, dictionaries and lenses; renaming of each of the five kinds.
    assert.is(refused, 9 * (mistakes.length + 2));
  } finally {
    await lab.close();
    await rm(home, { recursive: true });
  }
});

test("the router refuses disguised objects on every path that it forwards", async () => {
  const backend = await fake({ models: [{ id: "a", owned_by: "somebody" }] });
  const router = await routing([backend.url]);
  for (const path of forwardedPaths) {
    for (const body of mistakes) {
      const { status, body: told } = await send(router.url + path, "POST", { model: "a", ...body });
      assert.is(status, 400, `${path} ${JSON.stringify(body)}`);
      assert.equal(told.error.param, Object.keys(body)[0]);
    }
  }
  assert.is(backend.got.length, 0);
  // An extra_body without one is the backend's business, and null counts as absent.
  for (const body of [
    { extra_body: { top_k: 1 } },
    { extra_body: null },
    { Tapline: null },
    { tapline: null },
  ]) {
    assert.is((await router.chat({ model: "a", messages, ...body })).status, 200, JSON.stringify(body));
  }
});

test("an object of edits under a misspelled name is refused by its contents", () => {
  const edits = { interventions: [{ kind: "scale", layer: 1 }] };
  for (const name of ["taplin", "tapline_", "tabline", "Tap-Line", "taplines", "taline", "atpline"]) {
    assert.equal(
      liveFieldFault({ [name]: edits }, true),
      { field: name, sentence: `"${name}": the object for edits and readings is named tapline.` },
      name,
    );
  }
  for (const part of ["watch", "stop_when", "pair"])
    assert.is.not(liveFieldFault({ taplin: { [part]: {} } }, true), null, part);
  // Other names and other contents are another program's business.
  for (const body of [
    { pipeline: edits },
    { tap: edits },
    { timeline: edits },
    { taplin: { a: 1 } },
    { taplin: [] },
  ])
    assert.is(liveFieldFault(body, true), null, JSON.stringify(body));
});

test("names that only resemble tapline are left alone", () => {
  const body = { "": 1, tap: 1, taplines: 1, "tap line": 1, x_tapline: 1, extra: { tapline: 1 } };
  assert.is(liveFieldFault(body, false), null);
  for (const [name, value] of Object.entries(body))
    assert.is(
      disguisedLiveField(name, () => value),
      null,
    );
  const long = "T".repeat(10_000);
  assert.is(
    disguisedLiveField(`${" ".repeat(10_000)}tapline`, () => long)?.sentence,
    `"${" ".repeat(60)}": the field is named tapline, in lower case and without spaces.`,
  );
});

test.run();
