/**
 * `tapline serve` against `llama-server` from the same source: same model, same settings, same load program, in
 * turns. On the embedded model the overhead of the server is nearly all there is; on the 0.5B shape the model is.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { median, percentile, type Row, row } from "../figures.js";
import { llamaTools } from "../llama-tools.js";
import { randomModel } from "../models/random-model.js";
import { benchCancel } from "./cancel.js";
import type { LoadOrder, LoadReport } from "./load.js";
import { type BenchServer, type Settings, startLlamaServer, startTapline } from "./servers.js";

const loadProgram = fileURLToPath(new URL("./load.ts", import.meta.url));
const demo = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));

interface Bench {
  label: string;
  settings: Settings;
  promptWords: number;
  maxTokens: number;
  /** For each number of streams. */
  loads: Record<number, { requests: number; rounds: number }>;
  /** Requests before anything is measured. */
  warmUp: number;
}

export async function benchServe({ quick }: { quick: boolean }): Promise<Row[]> {
  const { "llama-server": tool } = await llamaTools(["llama-server"]);
  const shared = { slots: 16, slotContext: 512 };
  const benches: Bench[] = [
    {
      label: "demo model",
      settings: { ...shared, path: demo, batch: 256, threads: 1 },
      promptWords: 12,
      maxTokens: 32,
      loads: quick
        ? { 1: { requests: 60, rounds: 3 }, 16: { requests: 160, rounds: 3 } }
        : {
            1: { requests: 120, rounds: 5 },
            4: { requests: 240, rounds: 5 },
            16: { requests: 480, rounds: 5 },
            64: { requests: 512, rounds: 5 },
          },
      warmUp: 100,
    },
  ];
  if (!quick) {
    benches.push({
      label: "0.5B shape, Q8_0",
      settings: { ...shared, path: await randomModel("q8_0"), batch: 512, threads: 2 },
      promptWords: 12,
      maxTokens: 24,
      loads: {
        1: { requests: 4, rounds: 5 },
        4: { requests: 8, rounds: 5 },
        16: { requests: 16, rounds: 6 },
        64: { requests: 64, rounds: 3 },
      },
      warmUp: 8,
    });
  }
  const rows: Row[] = await benchCancel({ quick });
  for (const bench of benches) rows.push(...(await benchModel(bench, tool as string)));
  return rows;
}

async function benchModel(bench: Bench, tool: string): Promise<Row[]> {
  const servers = [await startTapline(bench.settings)];
  try {
    servers.push(await startLlamaServer(tool, bench.settings));
    const [ours, theirs] = servers as [BenchServer, BenchServer];
    // Also what is compiled at run time must have been run.
    for (const server of servers) await load(server, bench, 4, bench.warmUp, 1);
    const rows: Row[] = [];
    for (const [count, { requests, rounds }] of Object.entries(bench.loads)) {
      const streams = Number(count);
      const pairs: Array<[LoadReport, LoadReport]> = [];
      for (let round = 0; round < rounds; round++) {
        const measure = (server: BenchServer) =>
          load(server, bench, streams, requests, 1000 * streams + round);
        // Who is first changes, so that neither always finds the machine as the other left it.
        if (round % 2 === 0) {
          const mine = await measure(ours);
          pairs.push([mine, await measure(theirs)]);
        } else {
          const other = await measure(theirs);
          pairs.push([await measure(ours), other]);
        }
      }
      rows.push(...describe(`${bench.label}, ${streams} streams`, streams, pairs));
    }
    return rows;
  } finally {
    for (const server of servers) await server.close();
  }
}

async function load(
  server: BenchServer,
  { promptWords, maxTokens }: Bench,
  streams: number,
  requests: number,
  seed: number,
): Promise<LoadReport> {
  const order: LoadOrder = { ...server, streams, requests, promptWords, maxTokens, seed };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", loadProgram, JSON.stringify(order)],
    { maxBuffer: 1 << 28 },
  );
  return JSON.parse(stdout) as LoadReport;
}

function describe(name: string, streams: number, pairs: Array<[LoadReport, LoadReport]>): Row[] {
  const each = (figure: (report: LoadReport) => number, side: 0 | 1) =>
    pairs.map((pair) => figure(pair[side]));
  const ratios = (figure: (report: LoadReport) => number) => pairs.map(([a, b]) => figure(a) / figure(b));
  const differences = (figure: (report: LoadReport) => number) =>
    pairs.map(([a, b]) => figure(a) - figure(b));
  const requests = ({ requests, seconds }: LoadReport) => requests / seconds;
  const tokens = ({ tokens, seconds }: LoadReport) => tokens / seconds;
  // The mean: where a prompt takes a second, a whole batch of requests gets its first tokens at once, and the median
  // jumps by that second when one request more or less is before it.
  const first = ({ firstToken }: LoadReport) => firstToken.reduce((a, b) => a + b, 0) / firstToken.length;
  const between = ({ between }: LoadReport) => median(between);
  const late = ({ between }: LoadReport) => percentile(between, 0.99);
  return [
    row(`${name}: requests a second`, each(requests, 0), "1/s"),
    row(`${name}: tokens a second`, each(tokens, 0), "1/s"),
    // 1.0 is the aim; three per cent are the machine's noise, four where one stream alone is measured.
    row(`${name}: tokens a second over llama-server's`, ratios(tokens), "x", {
      least: streams === 1 ? 0.96 : 0.97,
    }),
    row(`${name}: time to first token`, each(first, 0), "ms"),
    {
      ...row(`${name}: time to first token behind llama-server's`, differences(first), "ms"),
      goal: "<= 5, or 3 %",
      // Of seconds in a queue, as of throughput, three per cent are the machine's noise.
      ok: median(differences(first)) <= 5 || median(ratios(first)) <= 1.03,
    },
    row(`${name}: between tokens, median, over llama-server's`, ratios(between), "x"),
    row(`${name}: between tokens, 99th percentile, over llama-server's`, ratios(late), "x"),
  ];
}
