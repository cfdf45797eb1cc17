/** A conversation: what is asked with each message, what stays of it, and what its commands change. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Ask, ChatSession, type ChatSettings, type Turn } from "../../src/cli/commands/chat-session.js";
import type { ChatDelta } from "../../src/client/index.js";

const none = new AbortController().signal;
const delta = (content: string, more: Partial<ChatDelta> = {}): ChatDelta => ({
  ...{ choice: 0, content, reasoning: "", finishReason: null },
  ...more,
});

function conversation(settings: Partial<ChatSettings> = {}) {
  const asked: Array<[messages: string[], request: object]> = [];
  const heard: Array<[part: string, text: string, tokens: number]> = [];
  let answer: () => AsyncIterable<ChatDelta> = async function* () {
    yield delta("Yes", { finishReason: "stop" });
  };
  const ask: Ask = (messages, request) => {
    asked.push([messages.map(({ role, content }) => `${role}: ${content}`), request]);
    return answer();
  };
  const session = new ChatSession(ask, { request: { model: "m" }, ...settings });
  const sink = {
    thinking: (text: string, tokens: readonly unknown[]) => heard.push(["thinking", text, tokens.length]),
    answer: (text: string, tokens: readonly unknown[]) => heard.push(["answer", text, tokens.length]),
  };
  return {
    asked,
    heard,
    command: (line: string) => session.command(line),
    say: (text: string, signal = none): Promise<Turn> => session.say(text, sink, signal),
    /** What the next messages are answered with. */
    answers(...deltas: ChatDelta[]) {
      answer = async function* () {
        yield* deltas;
      };
    },
    breaks(error: unknown, before: ChatDelta[] = []) {
      answer = async function* () {
        yield* before;
        throw error;
      };
    },
    last: () => asked.at(-1) as [string[], object],
  };
}

test("what was said goes along, in turns, behind the system message", async () => {
  const { say, last, command, asked } = conversation({ system: "Be brief." });
  assert.equal(await say("one"), { kind: "answered", cutAtLimit: false });
  await say("two");
  const said = ["user: one", "assistant: Yes", "user: two"];
  assert.equal(last(), [["system: Be brief.", ...said], { model: "m" }]);
  assert.equal(command("/system Be kind."), { text: "System message: Be kind." });
  await say("three");
  assert.equal(last()[0], ["system: Be kind.", ...said, "assistant: Yes", "user: three"]);
  command("/reset");
  await say("anew");
  assert.equal(last()[0], ["system: Be kind.", "user: anew"], "the system message is a setting, and stays");
  assert.equal(command("/system off"), { text: "No system message." });
  assert.equal(command("/reset"), { text: "Conversation cleared." });
  await say("four");
  assert.equal(last()[0], ["user: four"]);
  assert.is(asked.length, 5);
});

test("commands begin with one slash, messages with two; what is none is told", () => {
  const { command } = conversation();
  assert.equal([command("hello"), command("//reset"), command(" /reset")], [undefined, undefined, undefined]);
  assert.equal([command("/exit"), command("/quit"), command("/exit now")], ["exit", "exit", "exit"]);
  assert.equal(command("/system"), { text: "No system message." });
  assert.equal(command("/system a\nb"), { text: "System message: a\nb" });
  assert.equal(command("/system"), { text: "System message: a\nb" }, "asking changes nothing");
  assert.equal(command("/Reset"), {
    text: "Unknown command /Reset; see /help. Start a message with // to send a leading slash.",
  });
  assert.equal(command("/"), {
    text: "Unknown command /; see /help. Start a message with // to send a leading slash.",
  });
  const { text } = command("/help") as { text: string };
  for (const word of ["/reset", "/system TEXT", "/think on|off", "/exit", "Ctrl-C"]) assert.match(text, word);
});

test("a message with two slashes loses one", async () => {
  const { say, last } = conversation();
  await say("//etc");
  assert.equal(last()[0], ["user: /etc"]);
});

test("thinking is said to the server only where somebody said it", async () => {
  const { say, last, command } = conversation();
  assert.equal(command("/think"), { text: "Thinking: server default." });
  for (const [word, tell, template] of [
    ["on", "Thinking: on (if the model's template supports it).", { enable_thinking: true }],
    ["off", "Thinking: off (if the model's template supports it).", { enable_thinking: false }],
    ["auto", "Thinking: server default.", undefined],
  ] as const) {
    assert.equal(command(`/think ${word}`), { text: tell });
    await say("x");
    assert.equal(last()[1], { model: "m", ...(template && { chat_template_kwargs: template }) }, word);
  }
  command("/think on");
  for (const word of ["maybe", "toString"]) {
    assert.equal(command(`/think ${word}`), { text: "Use /think on, /think off or /think auto." }, word);
  }
  assert.equal(command("/think"), { text: "Thinking: on (if the model's template supports it)." });
  const decided = conversation({ thinking: false });
  await decided.say("x");
  assert.equal(decided.last()[1], { model: "m", chat_template_kwargs: { enable_thinking: false } });
});

test("an answer's first choice is printed, each token once, and its end is reported", async () => {
  const { say, answers, heard, last } = conversation();
  const tokens = [{ index: 0 }, { index: 1 }];
  answers(
    delta("", { reasoning: "hm", tapline: { tokens } }),
    delta("other", { choice: 1, finishReason: "length" }),
    delta("A", { finishReason: "length" }),
    delta("B"),
  );
  assert.equal(await say("x"), { kind: "answered", cutAtLimit: true });
  assert.equal(heard, [
    ["thinking", "hm", 2],
    ["answer", "", 0],
    ["thinking", "", 0],
    ["answer", "A", 0],
    ["thinking", "", 0],
    ["answer", "B", 0],
  ]);
  await say("y");
  assert.equal(last()[0], ["user: x", "assistant: AB", "user: y"]);
  for (const finishReason of ["tool_calls", null]) {
    answers(delta("C", { finishReason }));
    assert.equal(await say("z"), { kind: "answered", cutAtLimit: false }, String(finishReason));
  }
});

test("a failed turn leaves no trace; a stopped one keeps its partial answer", async () => {
  const { say, answers, breaks, last } = conversation();
  const fault = new Error("It broke.");
  breaks(fault, [delta("half")]);
  assert.is(await say("one").catch((error) => error), fault);
  const stop = new AbortController();
  stop.abort();
  breaks(fault, [delta(" \n")]);
  assert.equal(await say("two", stop.signal), { kind: "stopped", kept: false });
  breaks(fault, [delta("half")]);
  assert.equal(await say("three", stop.signal), { kind: "stopped", kept: true });
  answers(delta("whole"));
  await say("four");
  assert.equal(last()[0], ["user: three", "assistant: half", "user: four"]);
});

test.run();
