/** The models of this machine as the workbench has them, before a hub on loopback and a server that answers as told. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { HttpError } from "../../src/http/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { downloadDictionary } from "../../src/workbench/dictionary-download.js";
import { Events } from "../../src/workbench/events.js";
import { type ModelHost, Models, weightsAlone } from "../../src/workbench/models.js";
import { Services } from "../../src/workbench/services.js";
import type { ModelsStatus } from "../../src/workbench/wire.js";
import { type Seen, scripted, sendJson } from "../client/scripted.js";
import { mainCommit, TestHub } from "../models/support/hub.js";
import { until } from "../support/until.js";

const demo = readFileSync(demoModelPath);
const id = "tiny/demo/demo-F16.gguf";
const variables = ["HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "HF_HUB_OFFLINE"];
const saved = Object.fromEntries(variables.map((name) => [name, process.env[name]]));

let hub: TestHub;
let home: string;
let server: Awaited<ReturnType<typeof scripted>>;
/** The model that the server reports as loaded; undefined: it does not answer. */
let loaded: string | undefined;
let jobs: object[];
/** What listens to events, to be ended. */
const streams: Readable[] = [];

test.before.each(async () => {
  hub = await TestHub.open();
  home = mkdtempSync(join(tmpdir(), "tapline-models-"));
  for (const name of variables) delete process.env[name];
  process.env.HF_ENDPOINT = hub.url;
  process.env.HF_HOME = home;
  hub.repositories["tiny/demo"] = {
    files: {
      "README.md": Buffer.from("a model"),
      "larger-F32.gguf": Buffer.concat([demo, Buffer.alloc(4096)]),
      "demo-F16.gguf": demo,
      "mmproj-F16.gguf": demo,
    },
  };
  loaded = demoModelPath;
  jobs = [];
  server = await scripted(answer);
});
test.after.each(async () => {
  for (const stream of streams.splice(0)) stream.destroy();
  await Promise.all([hub.close(), server.close()]);
  rmSync(home, { recursive: true, force: true });
  for (const name of variables) {
    if (saved[name] === undefined) delete process.env[name];
    else process.env[name] = saved[name];
  }
});

function answer({ path }: Seen, response: ServerResponse): void {
  if (path === "/props" && loaded !== undefined) sendJson(response, 200, { model_path: loaded });
  else if (path === "/lab/v1/jobs") sendJson(response, 200, { jobs });
  else if (path === "/lab/v1/health")
    sendJson(response, 200, { api_version: 1, active_job: null, queued: 0 });
  else sendJson(response, 503, { error: "The server is restarting after a crash; retry in a moment." });
}

const device = { name: "host", host: true, free: 0, total: 0, weights: 0, context: 0, compute: 0 };

function open(host: Partial<ModelHost> = {}, model?: string) {
  const events = new Events();
  const { url } = server;
  const services = new Services({ server: url, lab: url, ...(model !== undefined && { model }) }, events);
  const models = new Models(services, events, {
    layOut: async (path) => [{ ...device, weights: path.length, context: 1000, compute: 500 }],
    ...host,
  });
  return { events, services, models };
}

async function refusal(work: Promise<unknown> | (() => unknown)): Promise<HttpError> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    assert.instance(error, HttpError, String(error));
    return error as HttpError;
  }
  return assert.unreachable("it was not refused") as never;
}

/** The last event about models. */
function toldBy(events: Events): ModelsStatus[] {
  const told: ModelsStatus[] = [];
  const stream = events.stream(0);
  streams.push(stream);
  stream.on("data", (chunk: Buffer) => {
    for (const [, text] of chunk.toString().matchAll(/^data: (.*)$/gm)) {
      const { event } = JSON.parse(text as string);
      if (event?.type === "models") told.push(event.models);
    }
  });
  return told;
}

async function bring(models: Models, name = id): Promise<void> {
  const { number } = models.download(name);
  const ended = await until(() =>
    models.status.downloads.find((one) => one.number === number && one.state !== "running"),
  );
  assert.is(ended.state, "done", ended.error);
}

test("a file outside the cache is opened by its whole path, and only a model", async () => {
  const { models } = open();
  const refused = (path: string): Promise<string> =>
    models.open(path).then(
      () => "opened",
      (error: HttpError) => `${error.status} ${error.message}`,
    );
  const file = join(home, "own-F16.gguf");
  const text = join(home, "text.gguf");
  writeFileSync(file, demo);
  writeFileSync(text, "words");
  assert.match(
    await refused("own-F16.gguf"),
    /^400 Give the whole path of the file, .*; got own-F16\.gguf\.$/,
  );
  assert.is(await refused(join(home, "none.gguf")), `404 There is no file at ${join(home, "none.gguf")}.`);
  assert.match(await refused(text), /^400 .* is not a model: expected a \.gguf file\.$/);
  assert.match(await refused("/"), /^400 \/ is not a model: expected a \.gguf file, got a folder\.$/);
  const { changes } = models.status;
  const opened = await models.open(file);
  assert.equal([opened.id, opened.from, opened.bytes, opened.header?.blocks], [file, "file", demo.length, 8]);
  assert.is(models.status.changes, changes + 1, "every tab reads the list again");
  await models.open(file);
  const listed = (await models.here()).models.filter(({ id }) => id === file);
  assert.is(listed.length, 1, "once, however often it is opened");
});

test("the list has the embedded model and cached models with their metadata", async () => {
  const { models } = open();
  const before = await models.here();
  assert.equal(
    before.models.map(({ id, from, served }) => [id, from, served]),
    [["demo", "embedded", true]],
  );
  assert.is(before.models[0]?.bytes, demo.length);
  assert.is(before.models[0]?.header?.blocks, 8);
  await bring(models);
  const { models: here, folder, memory, fixed } = await models.here();
  assert.equal(
    here.map(({ id, from, served }) => [id, from, served]),
    [
      ["demo", "embedded", true],
      [id, "cache", false],
    ],
  );
  assert.is(folder, join(home, "hub"));
  assert.ok(memory.total >= memory.free && memory.free > 0);
  assert.match(fixed ?? "", /^Can't switch models: .* started outside the workbench\..*--model MODEL`\.$/);
  loaded = join(folder, "models--tiny--demo/snapshots", mainCommit, "demo-F16.gguf");
  assert.equal(
    (await models.here()).models.map(({ served }) => served),
    [false, true],
  );
  const fits = await models.fits("demo");
  assert.is(fits?.needed, demoModelPath.length + 1500, "weights, context and buffers");
  assert.is(await models.fits("/etc/passwd"), null, "the page names no paths");
});

test("the list includes a served file, and the model of a stopped server", async () => {
  const file = join(home, "mine.gguf");
  writeFileSync(file, demo);
  loaded = file;
  const { models } = open({}, file);
  const served = async () => (await models.here()).models.filter(({ served }) => served).map(({ id }) => id);
  assert.equal(await served(), [file]);
  loaded = undefined;
  assert.equal(await served(), [file]);
  assert.is((await refusal(models.remove(file))).status, 409, "a file that is its owner's");
  assert.ok(existsSync(file));
});

test("unknown cache folders are ignored, and longer names are other folders", async () => {
  const { models } = open();
  const ids = async () => (await models.here()).models.map(({ id }) => id);
  for (const [folder, listed] of [
    ["hub/models--tiny--demo/lost", false],
    ["hub-mine", true],
  ] as const) {
    mkdirSync(join(home, folder), { recursive: true });
    loaded = join(home, folder, "mine.gguf");
    writeFileSync(loaded, demo);
    assert.equal(await ids(), listed ? ["demo", loaded] : ["demo"], folder);
  }
});

test("of a repository's models the one the server started with is shown", async () => {
  const larger = "tiny/demo/larger-F32.gguf";
  const { models, services } = open();
  await bring(models);
  await bring(models, larger);
  loaded = undefined; // away for a moment
  const served = async () => (await models.here()).models.filter(({ served }) => served).map(({ id }) => id);
  for (const one of [id, larger]) {
    services.served = one;
    assert.equal(await served(), [one]);
  }
});

test("a repository's models are listed smallest first without downloading", async () => {
  const { models } = open();
  const { repository, offers } = await models.offers("tiny/demo:Q8_0");
  assert.is(repository, "tiny/demo");
  assert.equal(
    offers.map(({ id, bytes, here }) => [id, bytes, here]),
    [
      [id, demo.length, false],
      ["tiny/demo/larger-F32.gguf", demo.length + 4096, false],
    ],
  );
  assert.is(hub.downloads.length, 0);
  await bring(models);
  assert.equal(
    (await models.offers("tiny/demo")).offers.map(({ here }) => here),
    [true, false],
  );
  for (const name of ["http://elsewhere.example/x", "../tiny/demo", "tiny", ""]) {
    await models.offers(name).then(
      () => assert.unreachable(name),
      (error: Error) => assert.match(error.message, /is not a hub model/),
    );
  }
});

test("weights alone: fit, hardly, not at all", () => {
  const memory = { free: 4e9, total: 8e9 };
  assert.equal(weightsAlone(3e9, memory), { needed: 3e9, ...memory, fits: "yes", sentence: "" });
  assert.equal(weightsAlone(5e9, memory), {
    ...{ needed: 5e9, ...memory, fits: "tight" },
    sentence: "The weights alone need 5.0 GB; 4.0 GB of 8.0 GB are free.",
  });
  assert.equal(weightsAlone(9e9, memory), {
    ...{ needed: 9e9, ...memory, fits: "no" },
    sentence: "The weights alone need 9.0 GB; this machine has 8.0 GB.",
  });
});

test("a download reports progress, stops on request and resumes", async () => {
  const { models, events } = open();
  const told = toldBy(events);
  hub.faults = { stall: () => true };
  const { number, state } = models.download(id);
  assert.is(state, "running");
  assert.match((await refusal(() => models.download(id))).message, /is already being downloaded/);
  await until(() => hub.downloads.length > 0);
  models.stop(number);
  await until(() => models.status.downloads[0]?.state === "stopped");
  hub.faults = {};
  await bring(models);
  assert.equal(
    models.status.downloads.map(({ state, done, total }) => [state, done, total]),
    [
      ["done", demo.length, demo.length],
      ["stopped", 0, 0],
    ],
  );
  await until(() => told.at(-1)?.downloads[0]?.state === "done");
  assert.ok(told.at(-1)!.changes > told[0]!.changes, "the pages read the list again");
  assert.is((await refusal(() => models.stop(99))).status, 404);
});

test("failed downloads give a sentence, and at most three run at once", async () => {
  const { models } = open();
  models.download("tiny/none");
  const failed = await until(() => models.status.downloads.find(({ state }) => state === "failed"));
  assert.match(failed.error ?? "", /^tiny\/none is neither a local file nor a repository on /);
  assert.is((await refusal(() => models.download("https://elsewhere.example/model.gguf"))).status, 400);
  hub.faults = { stall: () => true };
  for (const name of ["tiny/demo/demo-F16.gguf", "tiny/demo/larger-F32.gguf", "tiny/demo:F16"])
    models.download(name);
  assert.match(
    (await refusal(() => models.download("tiny/demo:F32"))).message,
    /^At most 3 downloads can run/,
  );
  models.close();
  await until(() => models.status.downloads.every(({ state }) => state !== "running"));
});

test("a model is not removed while it is served or a job uses it", async () => {
  const { models, services } = open();
  await bring(models);
  const path = join(home, "hub/models--tiny--demo/snapshots", mainCommit, "demo-F16.gguf");
  loaded = path;
  assert.match((await refusal(models.remove(id))).message, /is being served; switch to another model first/);
  loaded = undefined;
  services.served = "tiny/demo";
  assert.match(
    (await refusal(models.remove(id))).message,
    /is being served/,
    "a server that is away a moment",
  );
  services.served = "demo";
  for (const status of ["queued", "running"]) {
    jobs = [{ id: "ab".repeat(16), status, model: "tiny/demo:F16" }];
    await services.look();
    const used = await refusal(models.remove(id));
    assert.match(used.message, /^Job abababab is using /);
    assert.is(used.status, 409);
    assert.ok(existsSync(path));
  }
  jobs = [{ ...jobs[0], status: "completed" }];
  await services.look();
  assert.equal(await models.remove(id), { removed: [id], freed: demo.length });
  assert.not(existsSync(path));
  assert.is((await refusal(models.remove(id))).status, 404);
  assert.is((await refusal(models.remove("demo"))).status, 409);
});

test("another local model can be served, and a failure gives its reason", async () => {
  const none = open().models;
  assert.match((await refusal(none.serve("demo"))).message, /was started outside the workbench/);

  let release = (_error?: Error) => {};
  const served: string[] = [];
  const { models, services, events } = open(
    {
      layOut: async (path) => [{ ...device, weights: path.includes("larger") ? 1e18 : 1 }],
      serve: (model, onProgress) => {
        served.push(model);
        onProgress("weights", 0.5);
        return new Promise((resolve, reject) => {
          release = (error) => (error === undefined ? resolve() : reject(error));
        });
      },
    },
    "demo",
  );
  const told = toldBy(events);
  await bring(models);
  await bring(models, "tiny/demo/larger-F32.gguf");
  assert.is((await models.here()).fixed, null);
  assert.is((await refusal(models.serve("tiny/other"))).status, 404);
  assert.match((await refusal(models.serve("demo"))).message, /is already being served/);
  assert.match(
    (await refusal(models.serve("tiny/demo/larger-F32.gguf"))).message,
    /there is only .* in total/,
  );
  await models.serve(id);
  await until(() =>
    told.some(({ switching }) => switching?.stage === "weights" && switching.fraction === 0.5),
  );
  assert.match((await refusal(models.serve(id))).message, /Already switching to tiny\/demo/);
  assert.match((await refusal(models.remove(id))).message, /is being served/);
  release();
  await until(() => models.status.switching === null);
  assert.is(services.served, id, "what the Lab is asked for from now on");
  loaded = join(home, "hub/models--tiny--demo/snapshots", mainCommit, "demo-F16.gguf");
  await models.serve("demo");
  await until(() => served.length === 2);
  release(new Error("no memory"));
  await until(() => models.status.switching?.error !== undefined);
  assert.is(models.status.switching?.error, "Failed: no memory");
  assert.is(services.served, id);
  await models.serve("demo");
  await until(() => served.length === 3);
  release();
  await until(() => models.status.switching === null);
  assert.equal(served, [id, "demo", "demo"]);
});

test("a model that could not be served can be removed like any other", async () => {
  const { models, services } = open({ serve: () => Promise.reject(new Error("no memory")) }, "demo");
  await bring(models);
  const { changes } = models.status;
  await models.serve(id);
  await until(() => models.status.changes > changes);
  assert.is(models.status.switching?.error, "Failed: no memory");
  assert.match(services.server.sentence, "is restarting", "the server is looked at once more");
  assert.equal(await models.remove(id), { removed: [id], freed: demo.length });
});

test("local files are reported as complete without asking the hub", async () => {
  const { models } = open();
  await bring(models);
  process.env.HF_HUB_OFFLINE = "1";
  await bring(models);
  const [last] = models.status.downloads;
  assert.equal([last?.number, last?.done, last?.total], [2, demo.length, demo.length]);
});

test("a file served earlier stays in the list; a missing file does not", async () => {
  const file = join(home, "mine.gguf");
  writeFileSync(file, demo);
  loaded = file;
  const { models, services } = open({ serve: async () => {} }, file);
  const listed = async () => (await models.here()).models.map(({ id, served }) => [id, served]);
  const give = async (model: string) => {
    await models.serve(model);
    await until(() => services.served === model && models.status.switching === null);
  };
  await give("demo");
  loaded = demoModelPath;
  assert.equal(await listed(), [
    ["demo", true],
    [file, false],
  ]);
  await give(file);
  // Away by now, and never a file.
  services.served = join(home, "gone.gguf");
  loaded = undefined;
  await give("demo");
  loaded = demoModelPath;
  assert.equal(await listed(), [
    ["demo", true],
    [file, false],
  ]);
});

test("a model switch reports each new stage, and progress twice a second", async () => {
  let ms = 1000;
  const events = new Events();
  const { url } = server;
  const services = new Services({ server: url, lab: url }, events);
  const told = toldBy(events);
  const host: ModelHost = {
    layOut: async () => [device],
    serve: async (_model, onProgress) => {
      for (const [stage, fraction, at] of [
        ["weights", 0.1, 1000],
        ["weights", 0.2, 1499],
        ["weights", 0.3, 1500],
        ["context", 0.4, 1501],
        ["context", 0.5, 2000],
        ["context", 0.6, 2001],
      ] as const) {
        ms = at;
        onProgress(stage, fraction);
      }
    },
  };
  const models = new Models(services, events, host, () => ms);
  loaded = undefined;
  await models.serve("demo");
  await until(() => models.status.switching === null);
  await until(() => told.at(-1)?.changes === 1);
  assert.equal(
    told.map(({ switching }) => (switching === null ? null : [switching.stage, switching.fraction])),
    [
      ["stopping the old model", 0],
      ["weights", 0.1],
      ["weights", 0.3],
      ["context", 0.4],
      ["context", 0.6],
      null,
    ],
  );
  assert.is(services.served, "demo");
  services.close();
});

test("twenty downloads are listed, newest first, and ended ones make room", async () => {
  const { models } = open();
  for (let count = 1; count <= 21; count++) {
    models.download("tiny/none");
    await until(() => models.status.downloads[0]?.state === "failed");
  }
  assert.equal(
    models.status.downloads.map(({ number }) => number),
    Array.from({ length: 20 }, (_, index) => 21 - index),
  );
});

test("a file that llama.cpp cannot load is not served, with llama.cpp's reason", async () => {
  const fault = Object.assign(new Error("The file is damaged."), { name: "NativeError" });
  let broken = false;
  const { models } = open({
    layOut: async (path) => {
      if (broken && path === demoModelPath) {
        broken = false;
        throw fault;
      }
      return [{ ...device, free: 5, total: 7, weights: 1 }];
    },
    serve: async () => {},
  });
  loaded = undefined;
  broken = true;
  const found = await models.fits("demo");
  assert.equal([found?.needed, found?.fits, found?.sentence], [0, "unknown", "The file is damaged."]);
  broken = true;
  assert.is((await refusal(models.serve("demo"))).message, "The file is damaged.");
  const { models: odd } = open({ layOut: () => Promise.reject(new Error("a fault")) });
  assert.is(((await odd.fits("demo").catch((error) => error)) as Error).message, "a fault");
});

test("weights up to the free memory fit, and up to the total memory tightly", () => {
  const memory = { free: 4, total: 8 };
  assert.equal(
    [4, 5, 8, 9].map((needed) => weightsAlone(needed, memory).fits),
    ["yes", "tight", "tight", "no"],
  );
});

const dictionary = "some/sae/layer_5";
const withDictionary = () => {
  const at = (folder: string, size: number) => ({
    [`${folder}/cfg.json`]: Buffer.from("{}"),
    [`${folder}/sae_weights.safetensors`]: Buffer.alloc(size, 1),
  });
  hub.repositories["some/sae"] = { files: { ...at("layer_5", 200_000), ...at("layer_6", 300_000) } };
};
const never = new AbortController().signal;

test("a dictionary's own files are downloaded with progress, and only once", async () => {
  withDictionary();
  const { events, models } = open();
  const told = toldBy(events);
  await downloadDictionary(models, dictionary, undefined, never);
  const [status, ...others] = models.status.downloads;
  assert.equal([status?.model, status?.state, others.length], [dictionary, "done", 0]);
  // 200,000 bytes of weights and 2 of settings.
  assert.equal([status?.done, status?.total, hub.sent], [200_002, 200_002, 200_002]);
  const running = await until(() =>
    told.flatMap(({ downloads }) => downloads).find(({ state, total }) => state === "running" && total > 0),
  );
  assert.is(running.model, dictionary);
  await downloadDictionary(models, dictionary, undefined, never);
  assert.equal([hub.sent, models.status.downloads.length], [200_002, 1]);
});

test("local paths and kinds that the Lab refuses are not downloaded", async () => {
  const { models } = open();
  for (const place of [home, join(home, "none"), "google/gemma-scope-2b-pt-transcoders/layer_1"]) {
    await downloadDictionary(models, place, undefined, never);
  }
  assert.equal([hub.requests.length, models.status.downloads], [0, []]);
});

test("a place without a dictionary and a stopped download are reported", async () => {
  withDictionary();
  const { models } = open();
  const missing = await refusal(downloadDictionary(models, "some/sae/layer_9", undefined, never));
  assert.match(missing.message, /layer_9/);
  assert.equal([missing.status, models.status.downloads], [409, []]);
  hub.faults = { dripMs: 20, dripBytes: 1000 };
  const leaving = new AbortController();
  const work = refusal(downloadDictionary(models, dictionary, undefined, leaving.signal));
  await until(() => models.status.downloads.some(({ total }) => total > 0));
  leaving.abort();
  assert.match((await work).message, /The download was stopped\./);
  assert.is(models.status.downloads[0]?.state, "stopped");
});

test.run();
