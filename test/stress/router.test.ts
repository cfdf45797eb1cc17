/**
 * Three real servers behind a router, under 32 clients, while they are killed, frozen, slowed and started again at
 * random (TAPLINE_TEST_SECONDS, two minutes by default). A request without a byte may fail only where no
 * server is well; no answer is mixed, doubled or another request's.
 */
import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { send } from "../support/request.js";
import { Backend, freePort, llamaServer, tapline } from "./router/backends.js";
import { chat, closeConnections, prompt, readAnswer } from "./router/chat.js";

const seconds = Number(process.env.TAPLINE_TEST_SECONDS ?? 120);
const clients = 32;
/** A server counts as well once it was so for this long: the router's look at it takes some time, too. */
const settledMs = 1000;
const command = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const between = (least: number, most: number) => least + Math.random() * (most - least);
const oneOf = <T>(choices: readonly T[]) => choices[Math.floor(Math.random() * choices.length)] as T;

let atEnd: () => Promise<unknown> = async () => {};
test.after(async () => void (await atEnd()));

async function startRouter(urls: string[]) {
  const words = [
    "--import",
    "tsx",
    command,
    "router",
    "--port",
    "0",
    ...urls.flatMap((url) => ["--backend", url]),
  ];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
  const said = { text: "" };
  child.stderr.on("data", (text) => (said.text += text));
  const url = await new Promise<string>((resolve) => {
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
      const found = /is ready at (\S+)/.exec(text);
      if (found !== null) resolve(found[1] as string);
    });
  });
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return { child, said, url, ended };
}

test(`${clients} clients, three servers in trouble for ${seconds} s`, async () => {
  const serves = [tapline, await llamaServer(), tapline];
  const backends = await Promise.all(serves.map(async (serve) => new Backend(await freePort(), serve)));
  const ended: (() => unknown)[] = backends.map((backend) => () => backend.end("SIGKILL"));
  atEnd = () => Promise.all(ended.map((end) => end()));
  await Promise.all(backends.map((backend) => backend.start()));
  const router = await startRouter(backends.map(({ url }) => url));
  ended.push(() => router.child.kill("SIGKILL"));
  const { url } = router;

  // How many tokens a prompt of this many words has, as each server reports without trouble: they agree.
  const lengths = new Map<number, number>();
  for (const words of [1, 5, 20, 60]) {
    for (const backend of backends) {
      const messages = [{ role: "user", content: prompt(words) }];
      const { body } = await send(`${backend.url}/v1/chat/completions`, "POST", { messages, max_tokens: 1 });
      const counted = body.usage.prompt_tokens as number;
      assert.is(counted, lengths.get(words) ?? counted);
      lengths.set(words, counted);
    }
  }

  const end = performance.now() + seconds * 1000;
  const going = () => performance.now() < end;
  const counts: Record<string, number> = {};
  const count = (what: string) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
  const wrong: string[] = [];
  const ids = new Set<string>();
  const anyWell = () =>
    backends.some(({ wellSince }) => wellSince !== null && performance.now() - wellSince > settledMs);

  const client = async () => {
    while (going()) {
      const options = {
        words: oneOf([...lengths.keys()]),
        tokens: Math.floor(between(4, 48)),
        stream: Math.random() < 0.8,
      };
      const began = performance.now();
      const outcome = await chat(
        url,
        options.stream && Math.random() < 0.05 ? { ...options, leaveAfter: between(1, 3000) } : options,
      );
      count(outcome.kind === "status" ? String(outcome.status) : outcome.kind);
      const took = `after ${Math.round(performance.now() - began)} ms`;
      if (outcome.kind === "whole") {
        try {
          const { id, prompt: asked, tokens } = readAnswer(outcome.text, options.stream);
          if (ids.has(id)) wrong.push(`the answer ${id} came twice`);
          ids.add(id);
          if (asked !== lengths.get(options.words) || tokens !== options.tokens) {
            wrong.push(
              `another request's answer: ${asked} and ${tokens} tokens for ${JSON.stringify(options)}`,
            );
          }
        } catch (error) {
          wrong.push(`${(error as Error).message}: ${outcome.text.slice(-300)}`);
        }
      } else if (outcome.kind === "status") {
        if (anyWell()) wrong.push(`${outcome.status} ${took} while a server is well: ${outcome.text}`);
        await sleep(100);
      } else if (outcome.kind === "cut" && outcome.bytes === 0) {
        wrong.push(`a connection was cut ${took} before a byte: ${outcome.code}`);
      }
    }
  };

  const trouble = async (backend: Backend) => {
    while (going()) {
      await sleep(between(1000, 6000));
      const kind = oneOf(["kill", "stop", "crash inside", "freeze", "slow"] as const);
      count(kind);
      if (kind === "kill") await backend.restart("SIGKILL", between(0, 3000));
      else if (kind === "stop") await backend.restart("SIGTERM", between(0, 3000));
      else if (kind === "crash inside") await backend.crashInside();
      else if (kind === "freeze") await backend.freeze(between(500, 9000));
      else await backend.slow(between(1000, 4000));
    }
  };

  const troubles = Promise.all(backends.map(trouble));
  await Promise.all(Array.from({ length: clients }, client));
  await troubles;
  const healthy = async () => {
    const { body } = await send(`${url}/stats`, "GET");
    return (
      body.requests.active === 0 && body.backends.every(({ state }: { state: string }) => state === "healthy")
    );
  };
  const deadline = performance.now() + 60_000;
  while (!(await healthy())) {
    if (performance.now() > deadline) wrong.push("not every server is healthy again after a minute");
    if (performance.now() > deadline) break;
    await sleep(200);
  }
  const { body: stats } = await send(`${url}/stats`, "GET");
  // Who left has freed its place.
  for (const backend of backends.filter((_, index) => serves[index] === tapline)) {
    let busy = 1;
    for (let tries = 0; tries < 50 && busy > 0; tries++) {
      busy = (await send(`${backend.url}/stats`, "GET")).body.slots.busy;
      await sleep(100);
    }
    if (busy > 0) wrong.push(`${busy} slots of ${backend.url} are still busy`);
  }
  closeConnections();
  router.child.kill("SIGTERM");
  const code = await Promise.race([router.ended, sleep(20_000, "it does not end", { ref: false })]);
  await Promise.all(backends.map((backend) => backend.end()));
  for (const { url: at, stuck } of backends.filter((_, index) => serves[index] === tapline)) {
    if (stuck > 0) wrong.push(`${at} did not end ${stuck} times when it was told to`);
  }
  console.log(JSON.stringify(counts), JSON.stringify(stats.requests));
  assert.equal(wrong, []);
  assert.is(code, 0);
  assert.not.match(router.said.text, /\n +at /, "the router logged its own fault");
  assert.ok((counts.whole ?? 0) > 2 * seconds, `only ${counts.whole} answers`);
  assert.ok(stats.requests.retried > 0);
});

test.run();
