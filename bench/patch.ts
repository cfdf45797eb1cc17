/**
 * `npm run bench -- patch`: patch sweeps against the limit that they have, and beside TransformerLens's own `patching` on
 * the same weights, token ids, threads and machine. A site at token p of n must compute n - p tokens again, so the limit of
 * a grid is that sum over its sites at llama-bench's prompt speed. The prompts differ from their first token on: otherwise
 * most sites would need no computing at all.
 */
import { execFile } from "node:child_process";
import os from "node:os";
import { promisify } from "node:util";
import { type Context, Model, type PatchSweep, patchCells } from "../src/native/index.js";
import { TestRandom } from "../test/support/random.js";
import { smolLm2Model } from "../test/support/real/models.js";
import { type Row, row } from "./figures.js";
import { llamaTools } from "./llama-tools.js";
import { randomModel } from "./models/random-model.js";
import { Lines } from "./peers/tool.js";

const run = promisify(execFile);
const threads = os.availableParallelism();
const lengths = [12, 64];
/** Least ratios over TransformerLens. */
const goals = { F32: 2, Q8_0: 4 } as const;

export async function benchPatch({
  quick,
  rounds,
  only = "",
}: {
  quick: boolean;
  rounds?: number;
  only?: string;
}): Promise<Row[]> {
  const count = rounds ?? (quick ? 1 : 3);
  const wanted = new RegExp(only);
  return [
    ...(wanted.test("limit") ? await benchLimit(count) : []),
    ...(wanted.test("TransformerLens") ? await benchPeer(count) : []),
  ];
}

/** A context as the Lab's patch_sweep has it. */
function contextFor(model: Model, tokens: number): Promise<Context> {
  const nBatch = Math.max(tokens, 512);
  return model.createContext({ nCtx: patchCells(tokens, 512), nBatch, maxSequences: 256, threads });
}

/** A grid of the longer prompts takes minutes, over which a machine's whims even out: one round says what three would. */
function roundsOf(length: number, count: number): number {
  return length > 12 ? 1 : count;
}

async function timed<T>(work: () => Promise<T>): Promise<[seconds: number, found: T]> {
  const start = process.hrtime.bigint();
  const found = await work();
  return [Number(process.hrtime.bigint() - start) / 1e9, found];
}

/** Two prompts of random tokens, which part at once. */
function prompts(model: Model, length: number): { clean: Int32Array; corrupted: Int32Array } {
  const random = new TestRandom(length);
  const clean = Int32Array.from({ length }, () => random.below(model.info.nVocab));
  const corrupted = clean.slice();
  corrupted[0] = ((clean[0] as number) + 1) % model.info.nVocab;
  return { clean, corrupted };
}

function sweep(context: Context, model: Model, given: { clean: Int32Array; corrupted: Int32Array }) {
  const layers = [...Array(model.info.nLayer).keys()];
  return context.patchSweep({ ...given, layers, positions: [...given.clean.keys()], target: 1, foil: 2 });
}

async function benchLimit(count: number): Promise<Row[]> {
  const path = await randomModel("q8_0");
  const tools = await llamaTools(["llama-bench"]);
  const model = await Model.open(path);
  const rows: Row[] = [];
  try {
    for (const length of lengths) {
      const context = await contextFor(model, length);
      const given = prompts(model, length);
      const tokens = (model.info.nLayer * length * (length + 1)) / 2;
      const shares: number[] = [];
      const spent: number[] = [];
      for (let round = 0; round < roundsOf(length, count); round++) {
        const [seconds] = await timed(() => sweep(context, model, given));
        const speed = await promptSpeed(tools["llama-bench"] as string, path);
        spent.push(seconds);
        shares.push(tokens / speed / seconds);
      }
      await context.close();
      const name = `Q8_0, ${model.info.nLayer} layers x ${length} tokens`;
      rows.push(
        row(`${name}: whole sweep`, spent, "s"),
        row(`${name}: share of its limit at llama-bench's prompt speed`, shares, "x", { least: 0.9 }),
      );
    }
  } finally {
    await model.close();
  }
  return rows;
}

async function promptSpeed(tool: string, path: string): Promise<number> {
  const { stdout } = await run(tool, [
    ...["-m", path, "-t", String(threads), "-p", "512", "-n", "0", "-ub", "512", "-r", "2", "-o", "json"],
  ]);
  return (JSON.parse(stdout) as Array<{ avg_ts: number }>)[0]?.avg_ts ?? Number.NaN;
}

async function benchPeer(count: number): Promise<Row[]> {
  const files = await smolLm2Model();
  const peer = await Lines.tool("TransformerLens", files.folder, threads);
  const ours = { F32: await Model.open(files.f32), Q8_0: await Model.open(files.q8_0) };
  const rows: Row[] = [];
  try {
    for (const length of lengths) {
      const given = prompts(ours.F32, length);
      const task = { task: "patch", ...spread(given), target: 1, foil: 2 } as const;
      const theirRounds = roundsOf(length, count);
      const theirs: number[] = [];
      const seconds: Record<keyof typeof goals, number[]> = { F32: [], Q8_0: [] };
      const contexts = { F32: await contextFor(ours.F32, length), Q8_0: await contextFor(ours.Q8_0, length) };
      for (let round = 0; round < count; round++) {
        const answer = round < theirRounds ? await peer.run(task) : undefined;
        if (answer) theirs.push(answer.seconds);
        for (const form of ["F32", "Q8_0"] as const) {
          const [spent, found] = await timed(() => sweep(contexts[form], ours[form], given));
          seconds[form].push(spent);
          if (form === "F32" && answer) checkSame(found, answer.patched ?? []);
        }
      }
      for (const context of Object.values(contexts)) await context.close();
      const name = `SmolLM2-135M, ${ours.F32.info.nLayer} layers x ${length} tokens`;
      rows.push(
        row(`${name}: TransformerLens F32`, theirs, "s"),
        ...(["F32", "Q8_0"] as const).flatMap((form) => [
          row(`${name}: tapline ${form}`, seconds[form], "s"),
          row(
            `${name}: ${form} over TransformerLens`,
            seconds[form].map((spent, round) => (theirs[Math.min(round, theirRounds - 1)] as number) / spent),
            "x",
            { least: goals[form] },
          ),
        ]),
      );
    }
  } finally {
    await peer.close();
    for (const model of Object.values(ours)) await model.close();
  }
  return rows;
}

function spread({ clean, corrupted }: { clean: Int32Array; corrupted: Int32Array }) {
  return { clean: [...clean], corrupted: [...corrupted] };
}

/** @throws Error where the two did other work */
function checkSame({ patched }: PatchSweep, theirs: readonly number[]): void {
  const size = Math.max(...patched.map(Math.abs), 1);
  const apart = patched.reduce(
    (most, value, i) => Math.max(most, Math.abs(value - (theirs[i] as number))),
    0,
  );
  if (patched.length === theirs.length && apart <= 1e-3 * size) return;
  throw new Error(
    `TransformerLens finds other logit differences: ${patched.length} and ${theirs.length} sites, apart by ${apart}.`,
  );
}
