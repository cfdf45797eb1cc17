/** Ends of a server on stdin and stdout, and its log of odd messages. No process. */
import { PassThrough, Writable } from "node:stream";
import { McpServer } from "@modelcontextprotocol/server";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { serveMcp } from "../../src/mcp/serve.js";
import { until } from "../support/until.js";

const { write } = process.stderr;
const own = Object.getOwnPropertyDescriptor(process, "stdin") as PropertyDescriptor;
let log = "";
test.before.each(() => {
  log = "";
  process.stderr.write = ((text: string) => {
    log += text;
    return true;
  }) as typeof write;
});
test.after.each(() => {
  process.stderr.write = write;
  Object.defineProperty(process, "stdin", own);
});

function serving() {
  const stdin = Object.assign(new PassThrough(), { isTTY: false });
  Object.defineProperty(process, "stdin", { value: stdin, configurable: true });
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done() });
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const served = serveMcp(() => new McpServer({ name: "test", version: "1" }), stdout, stopped);
  return { stdin, stdout, stop, served };
}

for (const [what, end] of [
  ["its stdin ends", ({ stdin }) => void stdin.end()],
  ["its stdin breaks", ({ stdin }) => void stdin.destroy(new Error("It broke."))],
  ["its stdout is closed", ({ stdout }) => void stdout.destroy()],
  ["it is stopped", ({ stop }) => stop()],
] as [string, (one: ReturnType<typeof serving>) => void][]) {
  test(`a server ends when ${what}, and releases stdin`, async () => {
    const one = serving();
    end(one);
    await one.served;
    assert.ok(one.stdin.destroyed);
  });
}

test("an odd message is one line of the log, of five hundred characters at most", async () => {
  const { stdin, stop, served } = serving();
  stdin.write(`{"jsonrpc": "2.0", "id": 1, "method": ["${"x".repeat(2000)}", "\u202e"]}\n`);
  await until(() => log.endsWith("\n"));
  stop();
  await served;
  assert.match(log, /^tapline mcp: [^\n]{500}\n$/);
});

test.run();
