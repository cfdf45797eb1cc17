/** Waiting for a service, and services that npx started and left behind. */
import { spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { freePort } from "../support/free-port.js";
import { program } from "../support/program.js";
import { until } from "../support/until.js";
import { command } from "./in-process.js";
import { isOpen } from "./processes.js";

test("ready waits for the service and the model, until the first success", async () => {
  const answers = [503, 503, 200];
  const asked: string[] = [];
  const refused = new Promise<void>((resolve) => {
    const ended = (message: unknown) => {
      if ((message as { error?: { code?: string } }).error?.code !== "ECONNREFUSED") return;
      unsubscribe("http.client.request.error", ended);
      resolve();
    };
    subscribe("http.client.request.error", ended);
  });
  const server = createServer((request, response) => {
    asked.push(request.url as string);
    response.statusCode = answers[asked.length - 1] ?? 500;
    response.end("{}");
  });
  const port = await freePort();
  const waiting = command(["ready", String(port)]);
  await refused;
  server.listen(port, "127.0.0.1");
  const { code, stdout } = await waiting;
  server.closeAllConnections();
  server.close();
  assert.equal([code, stdout], [0, `http://127.0.0.1:${port} is ready.\n`]);
  assert.equal(asked, ["/health", "/health", "/health"]);
});

/** What `ready` comes to before a service that gives these answers, each so many milliseconds behind the one before. */
async function readyBefore(statuses: number[], words: string[], msEach = 0, name?: string) {
  const { now } = performance;
  let passed = 0;
  performance.now = () => now.call(performance) + passed;
  const left = [...statuses];
  const server = createServer((_, response) => {
    passed += msEach;
    response.statusCode = left.shift() ?? 200;
    response.end('{"error": "Not so."}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  if (name !== undefined) process.env[name] = String(port);
  try {
    return await command(["ready", ...words, ...(name === undefined ? [String(port)] : [])]);
  } finally {
    performance.now = now;
    if (name !== undefined) delete process.env[name];
    server.closeAllConnections();
    server.close();
  }
}

test("ready waits for a model as long as it loads, and not for a service that fails", async () => {
  const loading = await readyBefore([503, 503, 503, 200], ["--timeout", "5"], 4000);
  assert.is(loading.code, 0, loading.stderr);
  const failing = await readyBefore([500, 200], []);
  assert.equal([failing.code, failing.stderr], [1, "tapline: Not so.\n"]);
});

test("ready takes the addresses that the environment names", async () => {
  for (const [words, name] of [
    [["lab"], "TAPLINE_LAB_URL"],
    [["serve"], "TAPLINE_URL"],
    [[], "TAPLINE_URL"],
  ] as const) {
    const { code, stdout } = await readyBefore([200], [...words], 0, name);
    assert.is(code, 0, name);
    assert.match(stdout, /^http:\/\/127\.0\.0\.1:\d+ is ready\.\n$/);
  }
});

test("ready gives up: nothing there in time, somebody else's service, no address", async () => {
  const nothing = await command(["ready", "1", "--timeout", "1"]);
  assert.is(nothing.code, 3);
  assert.match(nothing.stderr, "Nothing listens at http://127.0.0.1:1; is the service running?");
  const other = createServer((_, response) => {
    response.statusCode = 404;
    response.end("{}");
  });
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const refused = await command(["ready", `localhost:${port}`]);
  other.closeAllConnections();
  other.close();
  assert.is(refused.code, 1);
  assert.match(refused.stderr, `http://localhost:${port} is not a tapline service.`);
  const unclear = await command(["ready", "https://example.org"]);
  assert.is(unclear.code, 2);
  assert.match(unclear.stderr, "It must be an address such as http://127.0.0.1:8980, or a port.");
});

test("a service that npx started ends with npx", async () => {
  if (!existsSync("/bin/sh")) return;
  const home = mkdtempSync(join(tmpdir(), "tapline-npx-"));
  // As npx does it: a shell between, the event in the environment, and no signal passed on.
  const npx = spawn(
    "/bin/sh",
    [
      "-c",
      `'${process.execPath}' ${program.map((word) => `'${word}'`).join(" ")} lab --port 0 --home '${home}'; exit`,
    ],
    { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, npm_lifecycle_event: "npx" } },
  );
  const [line] = await once(npx.stdout, "data");
  const url = /ready at (\S+)/.exec(String(line))?.[1] as string;
  assert.ok(await isOpen(url));
  npx.kill("SIGKILL");
  await until(async () => !(await isOpen(url)), "the service of npx has ended");
  rmSync(home, { recursive: true, force: true });
});

test.run();
