/**
 * Sparse dictionaries and extraction. `encode` against its matrix product alone, as PyTorch and NumPy compute it on the
 * same threads (the faster of the two counts); the first feature of a large file, from a process that has just begun;
 * and training against PyTorch and SAELens. Rounds alternate, so that a busy machine slows
 * all sides.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type DictionaryPlaces, encodeRows, narrow } from "../src/native/index.js";
import { pythonWith } from "../test/support/python.js";
import { TestRandom } from "../test/support/random.js";
import { benchTraining } from "./dictionary-training.js";
import { type Row, row } from "./figures.js";

const run = promisify(execFile);
const allThreads = os.availableParallelism();
const hidden = 2304;
const features = 16_384;
const rows = 256;

export async function benchDictionaries(options: {
  quick: boolean;
  rounds?: number;
  only?: string;
  processor?: boolean;
}): Promise<Row[]> {
  const wants = (part: string) => options.only === undefined || new RegExp(options.only).test(part);
  const python = pythonWith("numpy", "torch");
  if (python === undefined)
    throw new Error("Needs Debian's python3-numpy and python3-torch, or TAPLINE_PYTHON.");
  const folder = await mkdtemp(join(os.tmpdir(), "tapline-bench-"));
  try {
    const rounds = options.rounds ?? (options.quick ? 1 : 5);
    const measured: Row[] = [];
    for (const type of ["f32", "f16"] as const) {
      if (!wants("encode") && !wants("first feature")) break;
      const places = await writeDictionary(join(folder, type), type);
      if (wants("encode"))
        measured.push(...(await benchEncode(places, type, python, rounds, options.processor === true)));
      if (wants("first feature")) measured.push(await firstFeature(places, type, rounds));
    }
    if (wants("train")) {
      const [few, processor] = [Math.min(rounds, 3), options.processor === true];
      const steps = options.quick ? 6 : 24;
      measured.push(...(await benchTraining(folder, { rounds: few, processor, steps })));
    }
    return measured;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Places = (activation: DictionaryPlaces["activation"]) => DictionaryPlaces;

/** A file of random weights: [features, hidden] twice, and what the activations need. */
async function writeDictionary(path: string, type: "f32" | "f16"): Promise<Places> {
  const random = new TestRandom(1);
  const block = random.normals(hidden * 64).map((value) => value / Math.sqrt(hidden));
  const numbers = type === "f32" ? block : await narrow(block, type);
  const bytes = new Uint8Array(numbers.buffer);
  const matrix = (features / 64) * bytes.length;
  const file = createWriteStream(path);
  for (let i = 0; i < (2 * features) / 64; i++) {
    if (!file.write(bytes)) await once(file, "drain");
  }
  file.write(new Uint8Array(new Float32Array(features).fill(-1).buffer)); // bias
  file.write(new Uint8Array(new Float32Array(features).fill(0.5).buffer)); // threshold
  file.end(new Uint8Array(new Float32Array(hidden).buffer));
  await once(file, "finish");
  const small = 2 * matrix;
  return (activation) => ({
    ...{ path, activation, rowScaling: "none", subtractBias: true, hidden, features },
    ...{ k: activation === "topk" ? 64 : 0, encoderType: type, decoderType: type },
    ...{ encoder: 0, decoder: matrix, encoderBias: small, threshold: small + 4 * features },
    decoderBias: small + 8 * features,
  });
}

/** The product alone; in a separate process, its best of several. */
const productProgram = `
import sys, time, numpy as np, torch
rows, hidden, features, threads, processor = map(int, sys.argv[1:])
clock = time.process_time if processor else time.perf_counter
torch.set_num_threads(threads)
x = np.random.default_rng(0).standard_normal((rows, hidden), dtype=np.float32)
w = np.random.default_rng(1).standard_normal((features, hidden), dtype=np.float32)
tx, tw = torch.from_numpy(x), torch.from_numpy(w)
best = 1e9
for work in (lambda: x @ w.T, lambda: tx @ tw.T):
    work()
    for _ in range(5):
        start = clock(); work(); best = min(best, clock() - start)
print(best)
`;

/** @param processor counts processor time of one thread, for a machine that others use */
async function benchEncode(
  places: Places,
  type: string,
  python: string,
  rounds: number,
  processor: boolean,
): Promise<Row[]> {
  const threads = processor ? 1 : allThreads;
  const spent = processor ? processorSeconds : seconds;
  const random = new TestRandom(2);
  const given = random.normals(rows * hidden);
  const kinds = ["relu", "jumprelu", "topk"] as const;
  const ratios: Record<(typeof kinds)[number], number[]> = { relu: [], jumprelu: [], topk: [] };
  const products: number[] = [];
  for (const kind of kinds) await encodeRows(places(kind), given, { threads });
  for (let round = 0; round < rounds; round++) {
    const environment = {
      ...process.env,
      OPENBLAS_NUM_THREADS: String(threads),
      OMP_NUM_THREADS: String(threads),
    };
    const words = [rows, hidden, features, threads, processor ? 1 : 0].map(String);
    const { stdout } = await run(python, ["-c", productProgram, ...words], { env: environment });
    const product = Number(stdout);
    products.push(product);
    for (const kind of kinds) {
      const times: number[] = [];
      for (let i = 0; i < 5; i++) times.push(await spent(() => encodeRows(places(kind), given, { threads })));
      ratios[kind].push(Math.min(...times) / product);
    }
  }
  const what = `encode, ${type} weights, ${rows} rows of ${hidden}, ${features} features`;
  return [
    row(
      `${what}: its matrix product alone`,
      products.map((time) => time * 1000),
      "ms",
    ),
    ...kinds.map((kind) =>
      row(`${what}, ${kind}: over its matrix product`, ratios[kind], "x", { most: 1.25 }),
    ),
  ];
}

async function firstFeature(places: Places, type: string, rounds: number): Promise<Row> {
  const addon = new URL("../src/native/index.ts", import.meta.url).href;
  const program = `
    const { encodeRows } = await import(${JSON.stringify(addon)});
    const rows = new Float32Array(${hidden}).fill(1);
    const { indices } = await encodeRows(${JSON.stringify(places("topk"))}, rows);
    if (indices.length === 0) throw new Error("nothing fires");`;
  const root = fileURLToPath(new URL("..", import.meta.url));
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const node = ["--import", "tsx", "--input-type=module", "-e", program];
    times.push(await seconds(() => run(process.execPath, node, { cwd: root })));
  }
  return row(`first feature of ${features} by ${hidden}, ${type}, from a new process`, times, "s", {
    most: 5,
  });
}

/** Of all threads of this process. */
async function processorSeconds(work: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}
