/**
 * The cost of a router: the same streams straight from `tapline serve`, through `tapline router` and through nginx,
 * alternately and in random order within each round.
 */
import { fileURLToPath } from "node:url";
import { TestRandom } from "../../test/support/random.js";
import { median, type Row, row } from "../figures.js";
import { randomModel } from "../models/random-model.js";
import { closeConnections, loadWith, streamChat } from "./client.js";
import { type Measured, startNginx, startRouting, startServing } from "./processes.js";

const demo = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));
const streams = 16;
const warmUp = 1500;
const ways = ["direct", "router", "nginx"] as const;
type Way = (typeof ways)[number];

interface Ways {
  measured: Record<Way, Measured>;
  end(): Promise<void>;
}

export async function benchRouter({ quick, rounds }: { quick: boolean; rounds?: number }): Promise<Row[]> {
  const rows: Row[] = [];
  const small = await startAll(demo);
  try {
    rows.push(...(await benchFirstToken(small, quick ? 100 : 1000)));
    rows.push(...(await benchProcessorTime(small, rounds ?? (quick ? 3 : 11), quick ? 200 : 400)));
  } finally {
    await small.end();
  }
  const large = await startAll(await randomModel("q8_0"));
  try {
    rows.push(...(await benchThroughput(large, rounds ?? (quick ? 1 : 9), quick ? 16 : 32)));
  } finally {
    await large.end();
  }
  closeConnections();
  return rows;
}

async function startAll(model: string): Promise<Ways> {
  const started: Measured[] = [];
  const end = async () => {
    for (const one of started.reverse()) await one.end();
  };
  try {
    const direct = await startServing(model, ["--parallel", String(streams), "--ctx-size", "512"]);
    started.push(direct);
    const router = await startRouting(direct.url);
    started.push(router);
    const nginx = await startNginx(direct.url);
    started.push(nginx);
    return { measured: { direct, router, nginx }, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** One request at a time, a new prompt for each round so that no cache favours who comes second. */
async function benchFirstToken({ measured }: Ways, rounds: number): Promise<Row[]> {
  const random = new TestRandom(11);
  const added: Record<"router" | "nginx", number[]> = { router: [], nginx: [] };
  const direct: number[] = [];
  // V8 compiles the router while it runs: what counts is how it runs from then on.
  for (const way of ways) {
    await loadWith(measured[way].url, {
      streams: 4,
      count: warmUp,
      tokens: 2,
      prompt: (index) => `Is it ${index}?`,
    });
  }
  for (let round = -20; round < rounds; round++) {
    const times = {} as Record<Way, number>;
    for (const way of shuffled(random)) {
      const { firstMs } = await streamChat(measured[way].url, `Question ${round} by ${way}?`, 4);
      times[way] = firstMs;
    }
    if (round < 0) continue;
    direct.push(times.direct);
    added.router.push(times.router - times.direct);
    added.nginx.push(times.nginx - times.direct);
  }
  const base = `first token, demo model, over a direct ${median(direct).toFixed(2)} ms`;
  return [
    { ...row(`${base}: router adds`, added.router, "ms", { most: 1 }), spread: quartiles(added.router) },
    { ...row(`${base}: nginx adds`, added.nginx, "ms"), spread: quartiles(added.nginx) },
  ];
}

/** Short streams of a tiny model, many at once: what passing them on takes. */
async function benchProcessorTime({ measured }: Ways, rounds: number, count: number): Promise<Row[]> {
  const random = new TestRandom(12);
  const cpu: Record<Way, number[]> = { direct: [], router: [], nginx: [] };
  const rate: Record<Way, number[]> = { direct: [], router: [], nginx: [] };
  for (let round = -3; round < rounds; round++) {
    for (const way of shuffled(random)) {
      const before = measured[way].cpuMs();
      const { seconds } = await loadWith(measured[way].url, {
        streams,
        count,
        tokens: 32,
        prompt: (index) => `Question ${index}?`,
      });
      if (round < 0) continue;
      cpu[way].push((measured[way].cpuMs() - before) / count);
      rate[way].push(count / seconds);
    }
  }
  const what = `demo model, ${streams} streams of 32 tokens`;
  return [
    row(`${what}: processor time of a request, router`, cpu.router, "ms"),
    row(`${what}: processor time of a request, nginx`, cpu.nginx, "ms"),
    row(`${what}: processor time of a request, the server itself`, cpu.direct, "ms"),
    row(`${what}: requests a second, direct`, rate.direct, "1/s"),
    row(`${what}: requests a second, router`, rate.router, "1/s"),
    row(`${what}: requests a second, nginx`, rate.nginx, "1/s"),
  ];
}

/** A model that takes all of the machine: whatever the proxy needs is missing there. */
async function benchThroughput({ measured }: Ways, rounds: number, tokens: number): Promise<Row[]> {
  const random = new TestRandom(13);
  const overDirect: Record<"router" | "nginx", number[]> = { router: [], nginx: [] };
  const overNginx: number[] = [];
  const direct: number[] = [];
  for (let round = -1; round < rounds; round++) {
    const rates = {} as Record<Way, number>;
    for (const way of shuffled(random)) {
      const { seconds, events } = await loadWith(measured[way].url, {
        streams,
        count: streams,
        tokens: round < 0 ? 4 : tokens,
        prompt: (index) => `Question ${index}?`,
      });
      rates[way] = events / seconds;
    }
    if (round < 0) continue;
    direct.push(rates.direct);
    overNginx.push(rates.router / rates.nginx);
    overDirect.router.push(rates.router / rates.direct);
    overDirect.nginx.push(rates.nginx / rates.direct);
  }
  const what = `0.5B shape, ${streams} streams, ${median(direct).toFixed(1)} tokens/s direct`;
  return [
    row(`${what}: throughput through the router, over nginx`, overNginx, "x", { least: 0.99 }),
    row(`${what}: through the router, over direct`, overDirect.router, "x"),
    row(`${what}: through nginx, over direct`, overDirect.nginx, "x"),
  ];
}

function shuffled(random: TestRandom): Way[] {
  const order: Way[] = [...ways];
  for (let last = order.length - 1; last > 0; last--) {
    const other = random.below(last + 1);
    [order[last], order[other]] = [order[other] as Way, order[last] as Way];
  }
  return order;
}

/** First and third quartile: with requests this short, the extremes show the machine. */
function quartiles(values: readonly number[]): [number, number] {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] as number;
  return [at(0.25), at(0.75)];
}
