/**
 * What layers on rpc-servers cost: the same requests to a server with all of them in its own process, over one
 * rpc-server and over two, in turns. All on this machine, so the network is loopback and the processor is shared.
 */
import { connect, createServer, type Socket } from "node:net";
import { availableParallelism } from "node:os";
import { type Serving, serve } from "../src/inference/process/supervisor.js";
import type { RpcServer } from "../src/models/rpc.js";
import { startRpcServer } from "../test/rpc/support/rpc-server.js";
import { TestRandom } from "../test/support/random.js";
import { send } from "../test/support/request.js";
import { type Row, row } from "./figures.js";
import { randomModel } from "./models/random-model.js";

const promptBytes = 240;
const answerTokens = 32;

export async function benchRpc({ quick, rounds }: { quick: boolean; rounds?: number }): Promise<Row[]> {
  const model = await randomModel("q8_0");
  const ends: (() => Promise<unknown>)[] = [];
  const start = async (servers: number, relayed = false) => {
    const rpc: RpcServer[] = [];
    const sent = { bytes: 0 };
    for (let count = 0; count < servers; count++) {
      const server = await startRpcServer({ threads: availableParallelism() });
      ends.unshift(() => server.kill());
      const relay = relayed ? await startRelay(server, sent) : undefined;
      if (relay !== undefined) ends.unshift(relay.end);
      rpc.push(relay?.address ?? server);
    }
    const serving = await serve({
      model,
      host: "127.0.0.1",
      port: 0,
      parallel: 1,
      ctxSize: 512,
      ...(servers > 0 && { rpc }),
    });
    ends.unshift(() => serving.close());
    return { serving, sent };
  };
  try {
    const rows: Row[] = [];
    for (const servers of [1, 2]) {
      const { serving, sent } = await start(servers, true);
      const what = nameOf(servers);
      rows.push(row(`${what}: sent at start`, [sent.bytes / 1e6], "MB"));
      const before = sent.bytes;
      const { prompt } = await complete(serving, "x".repeat(promptBytes));
      const name = `${what}: sent for ${prompt} + ${answerTokens} tokens`;
      rows.push(row(name, [(sent.bytes - before) / 1e6], "MB"));
      for (const end of ends.splice(0)) await end();
    }
    return [...(await benchSpeed([0, 1, 2], start, rounds ?? (quick ? 2 : 15))), ...rows];
  } finally {
    for (const end of ends) await end();
  }
}

function nameOf(servers: number): string {
  return `${servers === 0 ? "no" : servers} rpc-server${servers > 1 ? "s" : ""}`;
}

async function benchSpeed(
  ways: number[],
  start: (servers: number) => Promise<{ serving: Serving }>,
  rounds: number,
): Promise<Row[]> {
  const random = new TestRandom(17);
  const all: { name: string; serving: Serving; prompt: number[]; answer: number[] }[] = [];
  for (const servers of ways) {
    all.push({ name: nameOf(servers), serving: (await start(servers)).serving, prompt: [], answer: [] });
  }
  for (let round = -1; round < rounds; round++) {
    for (const way of all) {
      // A prompt that no cache knows.
      const text = Array.from({ length: promptBytes }, () => String.fromCharCode(97 + random.below(26)));
      const speed = await complete(way.serving, text.join(""));
      if (round < 0) continue;
      way.prompt.push(speed.promptPerSecond);
      way.answer.push(speed.answerPerSecond);
    }
  }
  return [
    ...all.map(({ name, prompt }) => row(`${name}: prompt`, prompt, "tokens/s")),
    ...all.map(({ name, answer }) => row(`${name}: generation`, answer, "tokens/s")),
  ];
}

async function complete({ url }: Serving, prompt: string) {
  const body = { prompt, max_tokens: answerTokens, temperature: 0, ignore_eos: true };
  const answer = await send(`${url}/v1/completions`, "POST", body);
  const { timings, usage } = answer.body;
  if (usage?.completion_tokens !== answerTokens) throw new Error(JSON.stringify(answer.body));
  return {
    prompt: usage.prompt_tokens as number,
    promptPerSecond: timings.prompt_per_second as number,
    answerPerSecond: timings.predicted_per_second as number,
  };
}

/** Passes connections on to an rpc-server and counts what goes either way. */
async function startRelay(server: RpcServer, sent: { bytes: number }) {
  const open = new Set<Socket>();
  const relay = createServer((client) => {
    const behind = connect(server.port, server.host);
    for (const [from, to] of [
      [client, behind],
      [behind, client],
    ] as const) {
      open.add(from.setNoDelay(true));
      from.on("data", (chunk) => {
        sent.bytes += chunk.length;
      });
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  const { port } = relay.address() as { port: number };
  const end = () => {
    for (const socket of open) socket.destroy();
    return new Promise((resolve) => relay.close(resolve));
  };
  return { address: { host: "127.0.0.1", port }, end };
}
