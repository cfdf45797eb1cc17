import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type HostileService, startHostile } from "../../client/research-hostile.js";
import { injections } from "../../mcp/injections.js";
import { command } from "../../mcp/session.js";

let hostile: HostileService;
test.before(async () => {
  hostile = await startHostile();
});
test.after(() => hostile.close());

interface Run {
  child: ChildProcess;
  send(message: object | string): void;
  /** The next protocol line. */
  next(): Promise<Record<string, unknown>>;
  lines: string[];
  stderr(): string;
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

function start(words: string[], environment: Record<string, string> = {}): Run {
  const { command: node, args } = command(words);
  const env = {
    ...process.env,
    AGENT_RESEARCH_URL: hostile.url,
    AGENT_RESEARCH_CA_FILE: hostile.caFile,
    AGENT_RESEARCH_TOKEN: "tpl_token",
    ...environment,
  };
  const child = spawn(node, args, { env, stdio: "pipe" });
  child.stdin.on("error", () => {});
  let stderr = "";
  child.stderr.on("data", (part) => {
    stderr += part;
  });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  const waiting: ((line: string) => void)[] = [];
  let taken = 0;
  reader.on("line", (line) => {
    lines.push(line);
    waiting.shift()?.(line);
  });
  return {
    child,
    lines,
    send: (message) =>
      child.stdin.write(typeof message === "string" ? message : `${JSON.stringify(message)}\n`),
    async next() {
      const line = lines[taken] ?? (await new Promise<string>((resolve) => waiting.push(resolve)));
      taken += 1;
      return JSON.parse(line);
    },
    stderr: () => stderr,
    ended: once(child, "close").then(([code, signal]) => ({ code, signal })),
  };
}

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};

async function ready(words: string[], environment: Record<string, string> = {}): Promise<Run> {
  const run = start(words, environment);
  run.send(initialize);
  assert.is((await run.next()).id, 1);
  run.send({ jsonrpc: "2.0", method: "notifications/initialized" });
  return run;
}

test("stdout carries only protocol lines, whatever the input and the service", async () => {
  // A module that prints whenever a request is made, as a careless dependency would.
  const noise = `data:text/javascript,${encodeURIComponent(`
    import https from "node:https";
    import { syncBuiltinESMExports } from "node:module";
    const { request } = https;
    https.request = (...words) => {
      console.log("noise");
      process.stdout.write("more");
      return request(...words);
    };
    syncBuiltinESMExports();`)}`;
  const run = await ready(["research"], { NODE_OPTIONS: `--import ${JSON.stringify(noise)}` });
  hostile.answer = (_request, response) =>
    response.writeHead(400).end(JSON.stringify({ error: injections.join("\n"), code: "x", request_id: "x" }));
  for (const message of [
    "not json\n",
    "{}\n",
    "[]\n",
    '{"jsonrpc":"2.0"}\n',
    "\n",
    '"\u2028"\n',
    "\u0000\n",
  ]) {
    run.send(message);
  }
  run.send({ jsonrpc: "2.0", id: 2, method: "no/such/method" });
  run.send({ jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "list_studies", arguments: {} } });
  run.send({ jsonrpc: "2.0", id: 4, method: "tools/call", params: { name: "no_tool", arguments: {} } });
  const wrong = { name: "list_studies", arguments: { limit: 0, colour: "red" } };
  run.send({ jsonrpc: "2.0", id: 5, method: "tools/call", params: wrong });
  const answers = [await run.next(), await run.next(), await run.next(), await run.next()];
  assert.equal(answers.map(({ id }) => id).sort(), [2, 3, 4, 5]);
  run.child.stdin?.end();
  assert.equal(await run.ended, { code: 0, signal: null });
  for (const line of run.lines) assert.is(JSON.parse(line).jsonrpc, "2.0");
  assert.match(run.stderr(), "noise");
});

for (const words of [["research"], ["lab"]]) {
  test(`${words}: it ends when stdin closes and on signals, with a call in flight`, async () => {
    hostile.answer = () => {};
    const ends: [string, (child: ChildProcess) => unknown][] = [
      ["stdin", (child) => child.stdin?.end()],
      ["SIGTERM", (child) => child.kill("SIGTERM")],
      ["SIGINT", (child) => child.kill("SIGINT")],
      ["SIGHUP", (child) => child.kill("SIGHUP")],
      ["stdout", (child) => child.stdout?.destroy()],
    ];
    await Promise.all(
      ends.map(async ([name, end]) => {
        const run = await ready([...words, ...(words[0] === "lab" ? ["--lab", "http://127.0.0.1:9"] : [])]);
        if (words[0] === "research") {
          const call = { name: "list_studies", arguments: {} };
          const seen = hostile.seen.length;
          run.send({ jsonrpc: "2.0", id: 2, method: "tools/call", params: call });
          while (hostile.seen.length === seen) await new Promise((resolve) => setTimeout(resolve, 5));
        }
        end(run.child);
        // A closed stdout is noticed when something is written.
        if (name === "stdout") run.send({ jsonrpc: "2.0", id: 9, method: "ping" });
        assert.equal(await run.ended, { code: 0, signal: null }, name);
        assert.not.match(run.stderr(), /^ {4}at /m);
      }),
    );
  });
}

test("stdin that is closed before anything was said is a clean end", async () => {
  const run = start(["research"]);
  run.child.stdin?.end();
  assert.equal(await run.ended, { code: 0, signal: null });
  assert.equal([run.lines, run.stderr()], [[], ""]);
});

test("a configuration that cannot work is said on stderr, with exit code 2", async () => {
  const cases: [words: string[], environment: Record<string, string>, stderr: RegExp][] = [
    [
      ["research"],
      { AGENT_RESEARCH_TOKEN: "" },
      /^tapline: No token is configured; set AGENT_RESEARCH_TOKEN to a token from the website's Agent access page\./,
    ],
    [["research"], { AGENT_RESEARCH_URL: "http://localhost" }, /^tapline: The address of a studies service/],
    [["lab", "--lab", "https://localhost"], {}, /It must be an address such as/],
    [
      ["lab", "--url", "http://192.0.2.1:8971"],
      {},
      /--url must be a server on this machine, got 192\.0\.2\.1\./,
    ],
  ];
  for (const [words, environment, stderr] of cases) {
    const run = start(words, environment);
    assert.equal(await run.ended, { code: 2, signal: null });
    assert.equal(run.lines, []);
    assert.match(run.stderr(), stderr);
  }
});

test("a client that cancels a call is obeyed: the service's connection goes", async () => {
  let dropped = () => {};
  const gone = new Promise<void>((resolve) => {
    dropped = resolve;
  });
  const arrived = new Promise<void>((resolve) => {
    hostile.answer = (_request, response) => {
      response.once("close", dropped);
      resolve();
    };
  });
  const run = await ready(["research"]);
  run.send({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "list_studies", arguments: {} } });
  await arrived;
  run.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } });
  await gone;
  run.child.stdin?.end();
  await run.ended;
  assert.is(run.lines.length, 1);
});

test.run();
