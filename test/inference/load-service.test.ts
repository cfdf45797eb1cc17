/** How a service comes to be: which files, with which options, with which warnings. The addon computes nothing. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { loadService, type ServingOptions } from "../../src/inference/server.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { takeStandIn } from "../support/stand-in-addon.js";
import { withTime } from "../support/with-time.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-load-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const roomy = { name: "host", host: true, free: 1, total: 1, weights: 1, context: 1, compute: 1 };
let devices: () => object[] = () => [roomy];
let kinds = ["cpu"];
let opened: Record<string, unknown>[] = [];
let estimated: Record<string, unknown>[] = [];
let closed = 0;
let connected: unknown[] = [];
let broken = false;
let tools: boolean;
test.before.each(() => {
  devices = () => [roomy];
  kinds = ["cpu"];
  opened = [];
  estimated = [];
  closed = 0;
  connected = [];
  broken = false;
  tools = true;
});

takeStandIn({
  backendInfo: () => ({ backend: "cpu", devices: kinds.map((kind) => ({ kind })) }),
  connectRemotes: async (given) => void connected.push(given),
  estimateMemory: async (given) => {
    estimated.push(given);
    return devices();
  },
  openEngine: async (given) => {
    opened.push(given);
    const { id, path } = given;
    return {
      info: JSON.stringify({
        ...{ id, path, nEmbd: 2, nLayer: 3, slots: 2, slotContext: 512, captures: true },
        templateCapabilities: { supports_tools: tools },
      }),
      close: async () => void closed++,
      capture: async () => {
        if (broken) throw Object.assign(new Error("Block 2 is not finite."), { code: "COMPUTE" });
        return { layers: [] };
      },
    };
  },
});

/** A service, what was warned of on the way, and what the engine was opened with. */
async function loaded(options: Partial<ServingOptions> = {}) {
  const warnings: string[] = [];
  const onWarning = (sentence: string) => void warnings.push(sentence);
  const home = join(folder, "home");
  const service = await loadService({ model: "demo", home, onWarning, ...options });
  return { service, warnings, opened: opened[0]! };
}
const refused = (options: Partial<ServingOptions> = {}) =>
  loaded(options).then(
    () => "loaded",
    (error: Error) => `${error.name}: ${error.message}`,
  );

test("the engine is opened with what concerns it, and the service knows the rest", async () => {
  const sampling = { temperature: 0.5 };
  const {
    service,
    warnings,
    opened: given,
  } = await loaded({
    ...{ parallel: 3, gpuLayers: 5, embeddings: false, chatTemplate: "t", loras: [], cacheTypeK: "q8_0" },
    ...{
      apiKey: "secret",
      cors: ["*"],
      aliases: ["first", "second"],
      sampling,
      waiting: 0,
      captureWaitMs: 7,
    },
  });
  assert.equal(given, {
    ...{
      parallel: 3,
      gpuLayers: 5,
      embeddings: 0,
      thinking: -1,
      chatTemplate: "t",
      loras: [],
      cacheTypeK: "q8_0",
    },
    ...{ path: demoModelPath, id: "first", threads: 1 },
  });
  const { id: _, thinking: __, ...layout } = given;
  assert.equal(estimated, [layout]);
  assert.equal(warnings, []);
  const { engine, library, resolved, admission } = service;
  assert.equal([engine.info.id, resolved.path, library.model.id], ["first", demoModelPath, "first"]);
  assert.equal([library.model.nEmbd, library.model.nLayer, library.model.fingerprint.length], [2, 3, 64]);
  assert.equal(
    [service.requestedModel, service.requestedRevision, service.drafts, service.apiKey, service.cors],
    ["demo", null, false, "secret", ["*"]],
  );
  assert.equal(
    [service.aliases, service.sampling, service.captureWaitMs],
    [["first", "second"], sampling, 7],
  );
  assert.equal(service.backend, { backend: "cpu", devices: [{ kind: "cpu" }] });
  for (let slot = 0; slot < 2; slot++) admission.enter();
  assert.throws(() => admission.enter(), /2 requests are already running or waiting/);
  assert.equal(await library.vectors.list(), []);
});

test("defaults: no key, no aliases, no CORS origins, one minute for a capture", async () => {
  const { service, opened: given } = await loaded();
  assert.is(given.id, "tapline-demo");
  assert.equal([service.apiKey, service.cors, service.aliases, service.sampling], [undefined, [], [], {}]);
  assert.equal([service.captureWaitMs, service.rows.count], [60_000, 0]);
  assert.not("draft" in given || "mmproj" in given || "home" in given || "waiting" in given);
});

test("threads: as asked, one for a small model, the addon's choice for a large one", async () => {
  assert.is((await loaded({ threads: 3 })).opened.threads, 3);
  // Holes take no room.
  for (const [bytes, threads] of [
    [39_999_999, 1],
    [40_000_000, undefined],
  ] as const) {
    const path = join(folder, `m-${bytes}.gguf`);
    writeFileSync(path, "GGUF");
    truncateSync(path, bytes);
    opened = [];
    const { opened: given } = await loaded({ model: path });
    assert.equal([given.threads, given.id], [threads, `m-${bytes}`]);
  }
});

test("a draft and an image encoder are named like models, and found as them", async () => {
  const [draft, mmproj] = ["draft.gguf", "mmproj.gguf"].map((name) => join(folder, name)) as [string, string];
  for (const path of [draft, mmproj]) writeFileSync(path, "GGUF");
  const { service, opened: given } = await loaded({ draft, mmproj });
  assert.equal([given.draft, given.mmproj, service.drafts], [draft, mmproj, true]);
  assert.is(
    await refused({ draft: join(folder, "none.gguf") }),
    `UserError: No model found at ${folder}/none.gguf.`,
  );
  assert.is(
    await refused({ mmproj: join(folder, "none.gguf") }),
    `UserError: No model found at ${folder}/none.gguf.`,
  );
  assert.match(
    await refused({ revision: "main" }),
    "demo is a local file and has no revisions; remove the revision.",
  );
});

test("a model that cannot fit is refused unless it is forced, one that hardly fits is warned of", async () => {
  const gpu = { ...roomy, host: false, free: 2 ** 60, total: 2 ** 60 };
  const huge = { ...roomy, weights: 2 ** 62 };
  devices = () => [huge];
  assert.match(await refused(), /^UserError: The model needs about 4611686018\.4 GB/);
  assert.equal(opened, []);
  const { warnings } = await loaded({ force: true });
  assert.is(warnings.length, 1);
  assert.match(warnings[0]!, "--force to load it anyway");
  // Free is less than there is: tight.
  devices = () => [{ ...gpu, free: 0, weights: 2 ** 50 }];
  assert.match((await loaded()).warnings[0]!, "it may be slow, or the system may kill it");
  devices = () => [{ ...gpu, weights: 2 ** 50 }];
  assert.equal((await loaded()).warnings, []);
  // Loading says better what is wrong with a file; any other fault is one.
  const fails = (code: string) => () => {
    throw Object.assign(new Error("No."), { code });
  };
  devices = fails("MODEL_LOAD");
  assert.equal((await loaded()).warnings, []);
  devices = fails("OUT_OF_MEMORY");
  assert.is(await refused(), "NativeError: No.");
});

test("what changes nothing, or less than it was meant to, is warned of", async () => {
  const none = "--split-mode, --tensor-split and --main-gpu have no effect, because no GPU is used.";
  const spread: Partial<ServingOptions>[] = [{ splitMode: "row" }, { tensorSplit: [1] }, { mainGpu: 0 }];
  for (const options of spread) assert.equal((await loaded(options)).warnings, [none]);
  kinds = ["cpu", "gpu"];
  for (const options of spread) assert.equal((await loaded(options)).warnings, []);
  const cut = (asked: number) =>
    `--ctx-size ${asked} exceeds this model's training context: a slot holds 512 tokens.`;
  assert.equal((await loaded({ ctxSize: 512 })).warnings, []);
  assert.equal((await loaded({ ctxSize: 513 })).warnings, [cut(513)]);
  tools = false;
  assert.equal((await loaded()).warnings, [
    "Requests with tools will be refused, because this model's chat template does not support them.",
  ]);
});

test("a model whose numbers are not finite is closed again, and not served", async () => {
  broken = true;
  assert.is(
    await refused(),
    "UserError: This model cannot be served, because its weights are damaged or too large: Block 2 is not finite.",
  );
  assert.is(closed, 1);
});

test("rpc-servers are greeted before anything is loaded, or waited for", async () => {
  const door = createServer((socket) => {
    socket
      .on("error", () => {})
      .on("data", () => {
        // What llama.cpp's rpc-server of this protocol says: how much follows, its version, what it can do.
        const hello = Buffer.alloc(8 + 28);
        hello.writeBigUInt64LE(28n);
        hello[8] = 7;
        socket.end(hello);
      });
  });
  const listening = (port: number) => new Promise<void>((resolve) => door.listen(port, "127.0.0.1", resolve));
  await listening(0);
  const { port } = door.address() as { port: number };
  const closing = () => new Promise((resolve) => door.close(resolve));
  const rpc = [{ host: "127.0.0.1", port }];
  await loaded({ rpc });
  assert.equal(connected.splice(0), [[`127.0.0.1:${port}`]]);
  await closing();
  opened = [];
  estimated = [];
  const absent = `The rpc-server 127.0.0.1:${port} is not running (connection refused).`;
  assert.is(await refused({ rpc }), `UserError: ${absent}`);
  assert.equal([opened, estimated, connected], [[], [], []]);
  const pauses: unknown[] = [];
  const atOnce = async (ms: number) => {
    pauses.push(ms);
    if (pauses.length === 2) await listening(port);
  };
  await withTime({ "timers.setTimeout": atOnce }, async () => {
    const { warnings } = await loaded({ rpc, patient: true });
    assert.equal(warnings, [`${absent} Waiting for it.`]);
    assert.equal([pauses, connected.length, opened.length], [[1000, 1000], 1, 1]);
  }).finally(closing);
});

test.run();
