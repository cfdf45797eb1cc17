/** The workbench's last view of its services, and heads of attention that it reads from them. */
import type { ServerResponse } from "node:http";
import ndarray from "ndarray";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Lab, TaplineError, TimeoutError } from "../../src/client/index.js";
import type { HttpError } from "../../src/http/index.js";
import { HeadReader } from "../../src/workbench/attention.js";
import { sentenceOf } from "../../src/workbench/services.js";
import { until } from "../support/until.js";
import { withTime } from "../support/with-time.js";
import { closeAll, open } from "./asking.js";
import { type Answers, capabilities } from "./parts.js";

test.after.each(closeAll);

test("the services' state is reported only when it changes", async () => {
  const job = { id: "0".repeat(32), status: "running" };
  const answers: Answers = {
    "GET /lab/v1/health": { active_job: job.id, queued: 2 },
    "GET /lab/v1/jobs": { jobs: [job] },
  };
  const { services, told } = await open(answers);
  const url = services.server.url;
  assert.equal(services.server, {
    ...{ url, ok: false, sentence: "Not checked yet.", model: null, path: null },
    ...{ n_layer: null, n_embd: null, architecture: null, backend: null, points: [], chat_template: true },
  });
  await services.look();
  const server = {
    ...{ url, ok: true, sentence: "ready", model: "m", path: "/models/m.gguf" },
    ...{ n_layer: 4, n_embd: 8, architecture: "a", backend: "cpu", points: [], chat_template: true },
  };
  const lab = { url, ok: true, sentence: "ready", active: job.id, queued: 2 };
  assert.equal([services.server, services.labStatus, services.jobs], [server, lab, [job]]);
  assert.equal(
    told.toSorted((a, b) => a.type.localeCompare(b.type)),
    [
      { type: "jobs", jobs: [job] },
      { type: "lab", lab },
      { type: "server", server },
    ] as never,
  );
  told.length = 0;
  await services.look();
  assert.equal(told, []);
  answers["GET /lab/capabilities"] = { ...capabilities(4), points: ["mid"] };
  await services.look();
  assert.equal(services.server, { ...server, points: ["mid"] });
  answers["GET /lab/v1/health"] = undefined;
  answers["GET /lab/capabilities"] = capabilities(4, null);
  await services.look();
  const away = { ...lab, ok: false, sentence: "Nothing is at /lab/v1/health.", active: null, queued: 0 };
  assert.equal(services.labStatus, away);
  assert.equal(services.jobs, [job], "as they were last seen");
  assert.equal([services.server.ok, services.server.sentence], [false, "no model loaded"]);
  answers["GET /lab/capabilities"] = undefined;
  await services.look();
  assert.equal(
    [services.server.sentence, services.server.n_layer],
    ["Nothing is at /lab/capabilities.", null],
  );
});

test("a served model's file is requested once per model", async () => {
  let props = 0;
  const answers: Answers = {
    "GET /props": (response: ServerResponse) => {
      props++;
      response.end(JSON.stringify({ model_path: props > 1 ? 7 : "/a.gguf" }));
    },
  };
  const { services } = await open(answers);
  await services.look();
  await services.look();
  assert.equal([services.server.path, props], ["/a.gguf", 1]);
  answers["GET /lab/capabilities"] = capabilities(4, "other");
  await services.look();
  assert.equal([services.server.path, props], [null, 2], "malformed paths are ignored");
  services.served = "demo";
  await services.look();
  assert.equal([services.server.path, services.served, props], ["demo", "demo", 2]);
  // Files of two models may have one name: the started one counts.
  services.served = "owner/demo";
  await services.look();
  assert.equal([services.server.path, props], ["owner/demo", 2]);
  services.served = undefined;
  assert.is(services.served, undefined);
  await services.look();
  assert.is(services.server.path, "owner/demo", "the same model's");
});

test("concurrent checks are merged; nothing is polled without a page", async () => {
  const { setTimeout: real } = globalThis;
  let asked = 0;
  const { services, events, told } = await open({
    "GET /lab/v1/health": (response: ServerResponse) => {
      asked++;
      response.end(JSON.stringify({ active_job: null, queued: 0 }));
    },
  });
  await Promise.all([services.look(), services.look()]);
  assert.is(asked, 1);
  await services.look();
  assert.is(asked, 2);
  const timers: { run: () => void; ms: number }[] = [];
  const noted = (run: () => void, ms: number, ...rest: unknown[]) => {
    if (ms !== 0 && ms !== 1000) return real(run, ms, ...(rest as []));
    timers.push({ run, ms });
    return real(() => {}, 1e9);
  };
  await withTime({ setTimeout: noted }, async () => {
    const stream = events.stream(0);
    assert.equal(
      timers.map(({ ms }) => ms),
      [0],
    );
    timers[0]?.run();
    await until(() => timers.length > 1);
    assert.equal([timers[1]?.ms, asked], [1000, 3]);
    timers[1]?.run();
    await until(() => timers.length > 2);
    assert.equal([timers[2]?.ms, asked], [1000, 4]);
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.destroy();
    await closed;
    timers[2]?.run();
    await until(() => asked === 5);
    await services.look();
    assert.is(timers.length, 3, "nobody is there any more");
    services.close();
    events.stream(0).destroy();
    assert.is(timers.length, 3, "nor at the end");
  });
  assert.is(told.filter(({ type }) => type === "lab").length, 1);
});

test("tokens of a text, bytes as text, and faults in a sentence", async () => {
  const { services, asked } = await open({
    "POST /tokenize": {
      tokens: [
        { id: 1, piece: "a" },
        { id: 2, piece: [0xc3, 0xa9] },
      ],
    },
  });
  assert.equal(await services.tokens("aé"), [
    { id: 1, text: "a" },
    { id: 2, text: "é" },
  ]);
  assert.equal(asked(), [
    ["POST", "/tokenize", { content: "aé", add_special: true, parse_special: false, with_pieces: true }],
  ]);
  const fault = "The service failed; see its log.";
  assert.equal([new TaplineError("a"), new TimeoutError("b"), new Error("c"), "d"].map(sentenceOf), [
    ...["a", "b", fault, fault],
  ]);
});

test("attention of a head is found by layer and number; files are read once", async () => {
  const id = "0".repeat(32);
  const attention = [
    { layer: 1, head: 5 },
    { layer: 2, head: 5 },
    { layer: 2, head: 7 },
  ];
  const tokens = ["a", "b"];
  let job: object = { id, operation: "inspect", result: { tokens, attention } };
  let file = new Map([
    ["layer_2", ndarray(Float32Array.of(1, 0, 0.123456, 0.876544, 1, 0, 0.5, 0.5), [2, 2, 2])],
  ]);
  const read: string[] = [];
  let broken = false;
  const lab = {
    job: async () => job,
    arrays: async (of: string, name: string) => {
      read.push(`${of} ${name}`);
      if (broken) throw new TaplineError("broken");
      return file;
    },
  } as unknown as Lab;
  const heads = new HeadReader(lab);
  const refused = (layer: number, head: number) =>
    heads.read(id, layer, head).then(
      () => assert.unreachable() as never,
      (error: HttpError) => [error.status, error.message],
    );
  assert.equal(await heads.read(id, 2, 5), {
    layer: 2,
    head: 5,
    weights: [
      [1, 0],
      [0.1235, 0.8765],
    ],
  });
  assert.equal(await heads.read(id, 2, 7), {
    layer: 2,
    head: 7,
    weights: [
      [1, 0],
      [0.5, 0.5],
    ],
  });
  assert.equal(read, [`${id} attention.npz`]);
  for (const [layer, head] of [
    [2, 6],
    [3, 5],
    [1, 7],
  ] as const) {
    assert.equal(await refused(layer, head), [
      ...[404, `Job ${id} has no attention for layer ${layer}, head ${head}.`],
    ]);
  }
  const not = `attention.npz of job ${id} does not contain layer`;
  assert.equal(await refused(1, 5), [502, `${not} 1, head 5.`]);
  for (const shape of [
    [1, 2, 2],
    [2, 1, 2],
    [2, 2, 1],
  ] as const) {
    const another = new HeadReader(lab);
    file = new Map([["layer_2", ndarray(new Float32Array(8), [...shape])]]);
    const error = await another.read(id, 2, 7).catch((error: HttpError) => error.message);
    assert.is(error, `${not} 2, head 7.`, String(shape));
  }
  // Square, and of a text of three tokens.
  file = new Map([["layer_2", ndarray(new Float32Array(18), [2, 3, 3])]]);
  const longer = await new HeadReader(lab).read(id, 2, 7).catch((error: HttpError) => error.message);
  assert.is(longer, `${not} 2, head 7.`);
  job = { ...job, operation: "compare" };
  assert.is((await refused(2, 5))[0], 404);
  job = { id, operation: "inspect", result: { tokens } };
  assert.is((await refused(2, 5))[0], 404);
  // Another job's file takes its place; one that could not be read is asked for again.
  const other = "1".repeat(32);
  read.length = 0;
  job = { id: other, operation: "inspect", result: { tokens, attention } };
  broken = true;
  assert.is(((await heads.read(other, 2, 5).catch((error) => error)) as Error).message, "broken");
  broken = false;
  file = new Map([["layer_2", ndarray(new Float32Array(8), [2, 2, 2])]]);
  await heads.read(other, 2, 5);
  await heads.read(other, 2, 7);
  assert.equal(read, [`${other} attention.npz`, `${other} attention.npz`]);
});

test.run();
