/** Which server the workbench joins, and which it starts: at what port, with what model, and what it tells meanwhile. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { newLink, openWorkbench } from "../../src/cli/commands/workbench-run.js";
import { OwnServer, type OwnServerOptions } from "../../src/cli/own-server.js";
import { ports } from "../../src/contracts/limits.js";
import { PortInUse } from "../../src/contracts/user-error.js";
import { keyPath, linkPath } from "../../src/workbench/index.js";
import type { Seen } from "../client/scripted.js";
import { freePort } from "../support/free-port.js";
import { capturing } from "./in-process.js";
import { Refused, standIn } from "./stand-in.js";

const home = mkdtempSync(join(tmpdir(), "tapline-workbench-run-"));
const service = await standIn();
const before = process.env.TAPLINE_HOME;
const usual = ports.inference;
const { start } = OwnServer;
const started: [model: string, port: number][] = [];
/** A started server, which reports its address. */
let starting: (options: OwnServerOptions) => void = () => {};

test.before(() => {
  process.env.TAPLINE_HOME = home;
  (ports as { inference: number }).inference = service.port;
  OwnServer.start = async (model, options) => {
    started.push([model, options.port]);
    starting(options);
    return { url: service.url, ended: Promise.resolve(), serve() {}, close: async () => {} } as never;
  };
});
test.after(async () => {
  OwnServer.start = start;
  (ports as { inference: number }).inference = usual;
  if (before === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = before;
  await service.close();
  rmSync(home, { recursive: true, force: true });
});

const health = { "GET /lab/v1/health": { api_version: 1, active_job: null, queued: 0 } };
const capabilities = { model: "m", n_layer: 4, n_embd: 8, architecture: "llama", backend: "cpu" };
const serves = { ...health, "GET /lab/capabilities": capabilities };

/** Started servers and printed lines of a workbench that is opened and closed again. */
async function opened(answers: Record<string, object>, model?: string, more: { serverPort?: number } = {}) {
  started.length = 0;
  service.answers = answers;
  const { stderr } = await capturing(async () => {
    const { signal } = new AbortController();
    const bench = await openWorkbench({ model, port: 0, lab: service.url, open: false, signal, ...more });
    await bench.close();
  });
  return { started: [...started], stderr };
}

test("workbench joins the usual port unless another model is named", async () => {
  assert.equal((await opened(serves)).started, []);
  assert.equal((await opened(serves, "other")).started, [["other", 0]]);
});

test("a server starts at the usual port, or at a free one if it is taken", async () => {
  assert.equal((await opened(health)).started, [["demo", service.port]]);
  assert.equal((await opened(health, "other")).started, [["other", service.port]]);
  // Another program answers with other JSON.
  assert.equal((await opened({ ...health, "GET /lab/capabilities": {} })).started, [["demo", service.port]]);
  starting = ({ port }) => {
    if (port !== 0) throw new PortInUse("127.0.0.1", port);
  };
  assert.equal((await opened(health)).started, [
    ["demo", service.port],
    ["demo", 0],
  ]);
  const fault = new Error("No such model.");
  starting = () => {
    throw fault;
  };
  assert.is(await opened(health).catch((error) => error), fault);
  assert.equal(started, [["demo", service.port]]);
});

test("a chosen port is taken as it is, next to a running server as well", async () => {
  starting = () => {};
  assert.equal((await opened(serves, undefined, { serverPort: 4321 })).started, [["demo", 4321]]);
  assert.equal((await opened(health, "other", { serverPort: 0 })).started, [["other", 0]]);
  starting = ({ port }) => {
    throw new PortInUse("127.0.0.1", port);
  };
  const error = await opened(health, undefined, { serverPort: 4321 }).catch((one: Error) => one.message);
  assert.match(String(error), /4321/, "and no other one instead");
  assert.equal(started, [["demo", 4321]]);
  starting = () => {};
});

test("a link is requested with the running workbench's key, or its absence reported", async () => {
  const port = await freePort();
  const told = (error: Error) => [error.name, error.message];
  const none = [
    ...[
      "UserError",
      `You have no workbench running at port ${port}; start one with tapline workbench --port ${port}.`,
    ],
  ];
  assert.equal(await newLink(port).catch(told), none);
  for (const at of [port, service.port]) {
    mkdirSync(dirname(keyPath(home, at)), { recursive: true });
    writeFileSync(keyPath(home, at), "the key");
  }
  assert.equal(await newLink(port).catch(told), none, "the key of one that was killed");
  const keys: unknown[] = [];
  service.answers = {
    [`POST ${linkPath}`]: ({ headers }: Seen) => {
      keys.push(headers.authorization);
      return keys.length === 1 ? { link: "http://127.0.0.1/#token" } : new Refused(403, "Not from here.");
    },
  };
  assert.is(await newLink(service.port), "http://127.0.0.1/#token");
  assert.equal(await newLink(service.port).catch(told), ["TaplineError", "Not from here."]);
  assert.equal(keys, ["Bearer the key", "Bearer the key"]);
});

test("server events are shown as progress, warnings and errors", async () => {
  starting = ({ onEvent }) => {
    onEvent({ event: "warning", sentence: "Careful." });
    onEvent({ event: "crashed", sentence: "It fell." });
    onEvent({ event: "fault", line: "Error: x" });
    onEvent({ event: "ready", url: "", info: {} as never, backend: "cpu" });
  };
  assert.is((await opened(health)).stderr, "tapline: Careful.\ntapline: It fell.\nError: x\n");
  // Progress appears on terminals only, and is erased.
  const { isTTY } = process.stderr;
  process.stderr.isTTY = true;
  try {
    starting = ({ onEvent }) => onEvent({ event: "loading", stage: "weights", fraction: 0.456 });
    assert.is((await opened(health)).stderr, "\r\u001b[Kweights demo: 46 %\r\u001b[K");
    // Messages during progress get a separate line.
    starting = ({ onEvent }) => {
      onEvent({ event: "loading", stage: "weights", fraction: 0.5 });
      onEvent({ event: "warning", sentence: "Careful." });
      onEvent({ event: "loading", stage: "weights", fraction: 1 });
      onEvent({ event: "fault", line: "Error: x" });
    };
    assert.is(
      (await opened(health)).stderr,
      "\r\u001b[Kweights demo: 50 %\r\u001b[Ktapline: Careful.\n\r\u001b[Kweights demo: 100 %\r\u001b[KError: x\n",
    );
  } finally {
    process.stderr.isTTY = isTTY;
  }
});

test.run();
