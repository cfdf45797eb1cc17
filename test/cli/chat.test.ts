import { test } from "uvu";
import * as assert from "uvu/assert";
import { until } from "../support/until.js";
import { canPty, inTerminal, keys, type TerminalRun } from "./pty.js";
import { tapline } from "./run.js";
import { type SlowServer, slowServer } from "./slow-server.js";

let server: SlowServer;
let terminal: TerminalRun | undefined;
test.before.each(async () => {
  server = await slowServer();
});
test.after.each(() => {
  terminal?.kill();
  terminal = undefined;
  server.close();
});

async function chat(words: string[] = [], env: Record<string, string> = {}): Promise<TerminalRun> {
  terminal = inTerminal(["chat", "--url", server.url, ...words], { env });
  await terminal.shows("slow at http://");
  await terminal.shows("> ");
  return terminal;
}

const said = (index: number) =>
  server.requests[index]!.messages.map(({ role, content }) => `${role}: ${content}`);

if (canPty) {
  test("Ctrl-C stops an answer; the session, its history and the line editor's live on", async () => {
    const run = await chat();
    run.type(`count forever${keys.enter}`);
    await run.shows("three");
    run.type(keys.interrupt);
    await run.shows("Stopped; the partial answer stays in the conversation.");
    await until(() => server.abandoned() === 1);
    run.type(`and now?${keys.enter}`);
    await run.shows("one two three");
    await run.shows("> ");
    const [first, second, third] = server.requests[1]!.messages;
    assert.equal(first, { role: "user", content: "count forever" });
    assert.is(second!.role, "assistant");
    assert.match(second!.content, /^one two three(more )*/);
    assert.equal(third, { role: "user", content: "and now?" });
    // The line editor still knows what was typed.
    run.type(`${keys.up}${keys.up}`);
    await run.shows("count forever");
    // Once empties the line.
    run.type(keys.interrupt);
    await run.shows("Press Ctrl-C again or Ctrl-D to end the chat.");
    // Twice ends, in the middle of an answer, too.
    run.type(`forever${keys.enter}`);
    await run.shows("one");
    run.type(keys.interrupt);
    await run.shows("Stopped");
    run.type(keys.interrupt);
    assert.is(await run.ended, 130);
  });

  test("pasted lines are one message; what is typed during an answer waits", async () => {
    const run = await chat();
    run.type("\u001b[200~first line\r\nsecond line\nthird\u001b[201~");
    await run.shows("first line⏎second line⏎third");
    run.type(`${keys.enter}typed ahead${keys.enter}`);
    await run.shows("one two three");
    await run.shows("one two three");
    assert.equal(said(0), ["user: first line\nsecond line\nthird"]);
    assert.is(said(1).at(-1), "user: typed ahead");
    run.type(`one \\${keys.enter}`);
    await run.shows("… ");
    run.type(`two${keys.enter}`);
    await run.shows("one two three");
    assert.is(said(2).at(-1), "user: one \ntwo");
    run.type(keys.end);
    assert.is(await run.ended, 0);
    assert.match(run.shown, "\u001b[?2004h");
    assert.match(run.shown, "\u001b[?2004l");
  });

  test("commands: reset, system, think; what is refused is not kept", async () => {
    const run = await chat(["--system", "Be brief."], { FORCE_COLOR: "1" });
    run.type(`hello${keys.enter}`);
    await run.shows("\u001b[2mlet me count\u001b[0m");
    await run.shows("three");
    run.type(`please fail${keys.enter}`);
    await run.shows("The server does not like it. The message was discarded.");
    run.type(`/think on${keys.enter}`);
    await run.shows("Thinking: on (if the model's template supports it).");
    run.type(`again${keys.enter}`);
    await run.shows("three");
    assert.equal(said(2), ["system: Be brief.", "user: hello", "assistant: one two three", "user: again"]);
    assert.equal(server.requests[2]!.chat_template_kwargs, { enable_thinking: true });
    assert.is(server.requests[0]!.chat_template_kwargs, undefined);
    run.type(`/reset${keys.enter}`);
    await run.shows("Conversation cleared.");
    run.type(`/system off${keys.enter}`);
    await run.shows("No system message.");
    run.type(`/bogus${keys.enter}`);
    await run.shows("Unknown command /bogus");
    run.type(`//slash${keys.enter}`);
    await run.shows("three");
    assert.equal(said(3), ["user: /slash"]);
    run.type(`/exit${keys.enter}`);
    assert.is(await run.ended, 0);
  });
}

test("from a pipe every line is answered, and only answers are written", async () => {
  const { code, stdout } = await tapline(["chat", "--url", server.url], {
    input: "first\n\nsecond\n/system Be kind.\nthird",
  });
  assert.is(code, 0);
  assert.is(stdout, "one two three\n".repeat(3));
  assert.equal(said(2), [
    "system: Be kind.",
    "user: first",
    "assistant: one two three",
    "user: second",
    "assistant: one two three",
    "user: third",
  ]);
});

test("--steer and --watch apply to every request, with a score after each token", async () => {
  const words = ["--steer", "polite:0.2", "--steer", "kind:-1e-1", "--watch", "truth"];
  const { code, stdout, stderr } = await tapline(["chat", "--url", server.url, ...words], {
    input: "go\nagain",
  });
  assert.is(code, 0, stderr);
  const steer = { kind: "steer", strength_unit: "row_norm" };
  for (const request of server.requests) {
    assert.equal(request.tapline, {
      interventions: [
        { ...steer, vector: "polite", strength: 0.2 },
        { ...steer, vector: "kind", strength: -0.1 },
      ],
      watch: { probes: ["truth"] },
    });
  }
  // Four characters are a score of 0.4.
  assert.is(stdout, "one ₄two ₄three₅\none ₄two ₄three₅\n");
  assert.match(stderr, /^digits are tenths of truth's score; mean 0\.43, highest 0\.50 at three$/m);
  const bad = await tapline(["chat", "--url", server.url, "--steer", "polite"], { input: "go" });
  assert.is(bad.code, 2);
  assert.match(bad.stderr, /Write a vector's name and a strength, such as polite:0\.2\./);
});

test("when nobody reads the answers any more, nothing more is asked", async () => {
  const { code, stderr } = await tapline(["chat", "--url", server.url], {
    input: "count forever\nnever\n",
    enough: /one/,
  });
  assert.is(stderr, "");
  assert.is(code, 0);
  assert.is(server.requests.length, 1);
  await until(() => server.abandoned() === 1);
});

test("a refusal from a pipe ends with its sentence and code", async () => {
  const { code, stderr, stdout } = await tapline(["chat", "--url", server.url], {
    input: "please fail\nnever\n",
  });
  assert.is(stdout, "");
  assert.is(stderr, "tapline: The server does not like it.\n");
  assert.is(code, 2);
  assert.is(server.requests.length, 1);
});

test("a server for the occasion answers and is gone", async () => {
  const run = await tapline(["chat", "--model", "demo", "--temperature", "0", "--think", "off"], {
    input: "What is the capital of France?\n",
  });
  assert.is(run.stderr, "");
  assert.match(run.stdout, /Paris/);
  assert.is(run.code, 0);
  run.assertNothingLeft();
});

test.run();
