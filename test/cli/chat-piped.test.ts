/** A chat from a pipe: what of its flags reaches the server, and what is written where. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { pipedChat } from "../../src/cli/commands/chat-piped.js";
import { ChatSession } from "../../src/cli/commands/chat-session.js";
import { command } from "./in-process.js";
import { Refused, standIn } from "./stand-in.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-piped-"));
const service = await standIn();
test.after(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

const keys: unknown[] = [];
/** A server that serves these models and answers "Yes.", or what is given. */
function serves(models: string[], ...deltas: object[]): void {
  service.begin();
  keys.length = 0;
  const events = deltas.length > 0 ? deltas : [{ delta: { content: "Yes." } }];
  const stream = [...events, { delta: {}, finish_reason: "stop" }].map((choice) =>
    JSON.stringify({ choices: [choice] }),
  );
  service.answers = {
    "GET /v1/models": ({ headers }: { headers: Record<string, unknown> }) => {
      keys.push(headers.authorization);
      return { data: models.map((id) => ({ id })) };
    },
    "POST /v1/chat/completions": Buffer.from(
      [...stream, "[DONE]"].map((data) => `data: ${data}\n\n`).join(""),
    ),
  };
}

async function chat(lines: string, ...words: string[]) {
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin") as PropertyDescriptor;
  Object.defineProperty(process, "stdin", { configurable: true, value: Readable.from([lines]) });
  try {
    return await command(["chat", "--url", service.url, ...words]);
  } finally {
    Object.defineProperty(process, "stdin", stdin);
  }
}

const requests = () => service.asked().flatMap(([line, body]) => (line.startsWith("POST") ? [body] : []));
const user = (content: string) => ({ role: "user", content });

test("piped chat: one message per line, commands on stderr, history is sent", async () => {
  serves(["one", "two"]);
  const { code, stdout, stderr } = await chat("a\n\n  b \n/think off\nc\n/exit\nd\n");
  assert.equal([code, stdout], [0, "Yes.\nYes.\nYes.\n"]);
  assert.is(stderr, "Thinking: off (if the model's template supports it).\n");
  const answer = { role: "assistant", content: "Yes." };
  const base = { model: "one", stream: true };
  assert.equal(requests(), [
    { ...base, messages: [user("a")] },
    { ...base, messages: [user("a"), answer, user("b")] },
    {
      ...base,
      chat_template_kwargs: { enable_thinking: false },
      messages: [user("a"), answer, user("b"), answer, user("c")],
    },
  ]);
});

test("every flag is a field of the request; a router picks its model itself", async () => {
  serves(["one", "auto"]);
  const system = join(folder, "system.txt");
  writeFileSync(system, "\uFEFF Be brief. \n");
  const words =
    "--max-tokens 7 --temperature 0 --seed 0 --think on --steer a:b:0.5 --steer c:-1 --watch truth --api-key k";
  const { code, stderr } = await chat("a", ...words.split(" "), "--system-file", system);
  assert.is(code, 0, stderr);
  const steer = { kind: "steer", strength_unit: "row_norm" };
  assert.equal(requests(), [
    {
      ...{ model: "auto", max_tokens: 7, temperature: 0, seed: 0, stream: true },
      tapline: {
        interventions: [
          { ...steer, vector: "a:b", strength: 0.5 },
          { ...steer, vector: "c", strength: -1 },
        ],
        watch: { probes: ["truth"] },
      },
      chat_template_kwargs: { enable_thinking: true },
      messages: [{ role: "system", content: "Be brief." }, user("a")],
    },
  ]);
  assert.equal(keys, ["Bearer k"]);
  serves(["one"]);
  await chat("a", "--watch", "truth", "--system", " spaced ");
  assert.equal(requests(), [
    {
      ...{ model: "one", stream: true, tapline: { watch: { probes: ["truth"] } } },
      messages: [{ role: "system", content: " spaced " }, user("a")],
    },
  ]);
  assert.equal(keys, [undefined]);
});

test("contradictory flags are refused before any request", async () => {
  serves(["one"]);
  for (const [words, sentence] of [
    ["--model demo", "--model starts a server and --url uses a running one: they cannot be combined."],
    ["--system a --system-file b", "--system and --system-file cannot be combined."],
    ["--system-file /nowhere/at/all", "Cannot read /nowhere/at/all (ENOENT)."],
    ["--steer polite", "Write a vector's name and a strength, such as polite:0.2."],
    ["--steer polite:", "Write a vector's name and a strength, such as polite:0.2."],
    ["--steer polite:x", "Write a vector's name and a strength, such as polite:0.2."],
    ["--temperature 100.5", "It must be a number between 0 and 100."],
    ["--temperature x", "It must be a number between 0 and 100."],
    ["--max-tokens 0", "It must be a whole number between 1 and 1000000."],
    ["--seed 4294967296", "It must be a whole number between 0 and 4294967295."],
    ["--think maybe", "Allowed choices are on, off."],
  ] as const) {
    const { code, stderr } = await chat("a", ...words.split(" "));
    assert.is(code, 2, words);
    assert.match(stderr, sentence);
  }
  assert.equal(service.asked(), []);
});

test("a signal ends a piped chat with its reason, and nothing behind it is asked", async () => {
  const stop = new AbortController();
  const asked: unknown[] = [];
  const session = new ChatSession(
    async function* (messages) {
      asked.push(messages);
      stop.abort("SIGINT");
      yield* [];
      throw new Error("The connection broke.");
    },
    { request: {} },
  );
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin") as PropertyDescriptor;
  Object.defineProperty(process, "stdin", { configurable: true, value: Readable.from(["a\nb\n"]) });
  try {
    assert.is(await pipedChat(session, stop.signal).catch((reason) => reason), "SIGINT");
  } finally {
    Object.defineProperty(process, "stdin", stdin);
  }
  assert.equal(asked, [[user("a")]]);
});

test("a server without a model, one that refuses, and an answer that breaks off", async () => {
  serves([]);
  const none = await chat("a");
  assert.equal([none.code, none.stderr], [1, `tapline: The server at ${service.url} serves no model.\n`]);
  serves(["one"]);
  service.answers["POST /v1/chat/completions"] = new Refused(400, "Too long.");
  const refused = await chat("a\nb\n");
  assert.equal([refused.code, refused.stdout, refused.stderr], [2, "", "tapline: Too long.\n"]);
  assert.is(requests().length, 1, "nothing more is asked");
  serves(["one"]);
  service.answers["POST /v1/chat/completions"] = Buffer.from(
    'data: {"choices": [{"delta": {"content": "Y"}}]}\n\n',
  );
  const broken = await chat("a");
  assert.equal([broken.code, broken.stderr], [1, "tapline: The answer ended before it was complete.\n"]);
});

test.run();
