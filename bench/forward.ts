/**
 * `npm run bench -- forward`: forward calls from Python. First beside the tools that notebooks use, on the same weights
 * (SmolLM2-135M), token ids, threads and machine: captures of 4 blocks and the last logits of 1, 8 and 64 prompts, as
 * `bench/peers` times them. Then what a call costs beyond the pass that it is for, on the demo model and on a model of
 * 0.5 billion parameters, and how many short calls a second there are.
 */
import os from "node:os";
import { demoModelPath } from "../src/models/resolve.js";
import { Model } from "../src/native/index.js";
import { TestRandom } from "../test/support/random.js";
import { smolLm2Model } from "../test/support/real/models.js";
import { passage } from "../test/verify/real/passage.js";
import { type Row, row } from "./figures.js";
import { layerSets } from "./layer-sets.js";
import { randomModel } from "./models/random-model.js";
import { Measured } from "./peers/suite.js";
import type { Task } from "./peers/tasks.js";
import { Lines, type ToolName } from "./peers/tool.js";
import type { Report } from "./report.js";

const peers: readonly ToolName[] = ["transformers", "TransformerLens", "nnsight"];
const goals = { F32: 1.2, Q8_0: 2.5 };
const clock = { unit: "s", of: ({ seconds }: { seconds: number }) => seconds };

export async function benchForward({
  quick,
  rounds,
  only = "",
  report,
}: {
  quick: boolean;
  rounds?: number;
  only?: string;
  report: Report;
}): Promise<Row[]> {
  const threads = os.availableParallelism();
  const wanted = new RegExp(only);
  return [
    ...(await besidePeers(threads, quick ? 1 : rounds, wanted, report)),
    ...(await overThePass(threads, quick ? 2 : (rounds ?? 15), wanted, report)),
  ];
}

async function besidePeers(
  threads: number,
  rounds: number | undefined,
  wanted: RegExp,
  report: Report,
): Promise<Row[]> {
  const sizes = [1, 8, 64].flatMap((count) => [16, 256].map((length) => ({ count, length })));
  const named = sizes.map((size) => ({ ...size, name: `${size.count} x ${size.length} tokens` }));
  const chosen = named.filter(({ name }) => wanted.test(name));
  if (chosen.length === 0) return [];
  const model = await smolLm2Model();
  const reader = await Model.open(model.f32, { gpuLayers: 0 });
  const layers = layerSets(reader.info.nLayer)["4 layers"] as number[];
  const all = [...(await reader.tokenize(passage))];
  await reader.close();
  const random = new TestRandom(34);
  const open = new Map<string, Lines>();
  try {
    for (const name of peers) open.set(name, await Lines.tool(name, model.folder, threads));
    open.set("tapline F32", await Lines.tool("tapline", model.f32, threads));
    open.set("tapline Q8_0", await Lines.tool("tapline", model.q8_0, threads));
    const rows: Row[] = [];
    for (const { count, length, name } of chosen) {
      report.stage(name);
      const batch = Array.from({ length: count }, () => {
        const start = random.below(all.length - length);
        return all.slice(start, start + length);
      });
      const task = { task: "forward" as const, batch, layers };
      const sides = new Map(open);
      const measured = new Measured(name);
      if (count * length < 4096) for (const lines of sides.values()) await lines.run(task);
      for (let round = 0; round < (rounds ?? (count * length < 4096 ? 15 : 3)); round++) {
        for (const [side, lines] of sides) measured.add(side, await lines.run(task));
        if (round === 0) for (const side of measured.hopeless(clock)) sides.delete(side);
      }
      rows.push(...report.rows(...measured.rows(goals, clock)));
    }
    return rows;
  } finally {
    for (const lines of open.values()) await lines.close();
  }
}

/** A call with 4 blocks captured, from Python, over the plain pass in this process, one after the other. */
async function overThePass(threads: number, rounds: number, wanted: RegExp, report: Report): Promise<Row[]> {
  const rows: Row[] = [];
  const demo = demoModelPath;
  if (wanted.test("demo model")) {
    const pairs = await pairsOf(demo, threads, rounds);
    const over = pairs.map(({ call, pass }) => 1000 * (call - pass));
    rows.push(
      ...report.rows(row("demo model, 4 layers x 256 tokens: over the pass", over, "ms", { most: 1 })),
    );
    const served = await Lines.tool("tapline", demo, threads);
    try {
      const rate = async (calls: Omit<Extract<Task, { task: "calls" }>, "task">) =>
        calls.count / (await served.run({ task: "calls", ...calls })).seconds;
      const prompt = { tokens: [1, 2, 3, 4, 5, 6], layer: 2 };
      const [threads, tasks, alone, empty]: [number[], number[], number[], number[]] = [[], [], [], []];
      await rate({ ...prompt, count: 500, at_once: 16 });
      for (let round = 0; round < Math.min(rounds, 5); round++) {
        threads.push(await rate({ ...prompt, count: 2000, at_once: 16 }));
        tasks.push(await rate({ ...prompt, count: 2000, at_once: 16, tasks: true }));
        alone.push(await rate({ ...prompt, count: 500, at_once: 1 }));
        empty.push(1000 / (await rate({ tokens: [1], count: 500, at_once: 1 })));
      }
      rows.push(
        ...report.rows(
          row("demo model, captures of one prompt, 16 threads", threads, "/s", { least: 1000 }),
          row("demo model, captures of one prompt, 16 tasks of asyncio", tasks, "/s", { least: 1000 }),
          row("demo model, captures of one prompt, one after another", alone, "/s"),
          row("demo model, a call with one token and no capture", empty, "ms"),
        ),
      );
    } finally {
      await served.close();
    }
  }
  if (wanted.test("0.5B")) {
    const pairs = await pairsOf(await randomModel("q8_0"), threads, rounds);
    const ratios = pairs.map(({ call, pass }) => call / pass);
    rows.push(
      ...report.rows(row("0.5B Q8_0, 4 layers x 256 tokens: over the pass", ratios, "x", { most: 1.02 })),
    );
  }
  return rows;
}

async function pairsOf(
  path: string,
  threads: number,
  rounds: number,
): Promise<Array<{ call: number; pass: number }>> {
  const model = await Model.open(path, { gpuLayers: 0 });
  const context = await model.createContext({ nCtx: 256, nBatch: 256 });
  const served = await Lines.tool("tapline", path, threads);
  try {
    const random = new TestRandom(35);
    const tokens = Array.from({ length: 256 }, () => random.below(model.info.nVocab));
    const layers = layerSets(model.info.nLayer)["4 layers"] as number[];
    const pass = async () => {
      const begin = performance.now();
      await context.forward({ sequences: [{ tokens: Int32Array.from(tokens) }], logits: "last" });
      return (performance.now() - begin) / 1000;
    };
    const call = async () => (await served.run({ task: "forward", batch: [tokens], layers })).seconds;
    // V8 compiles the server's functions after some hundred calls; cold ones cost milliseconds.
    await served.run({ task: "calls", tokens: tokens.slice(0, 6), layer: 0, count: 500, at_once: 1 });
    await pass();
    await call();
    const pairs: Array<{ call: number; pass: number }> = [];
    for (let round = 0; round < rounds; round++) pairs.push({ pass: await pass(), call: await call() });
    return pairs;
  } finally {
    await served.close();
    await context.close();
    await model.close();
  }
}
