/**
 * Computes one model on the processor, then whole and in part on pretend GPUs, and compares; prints a ModelReport:
 *   TAPLINE_ADDON=… TAPLINE_PRETEND_GPU=3x1024 node --import tsx test/verify/devices/check-devices.ts MODEL
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, type GraphTranscoderUse, Model } from "../../../src/native/index.js";
import { randomSource, randomVector, relativeDistance } from "../architectures/arithmetic.js";
import { randomSet } from "../architectures/random-set.js";
import type { Check, ModelReport } from "../architectures/report.js";

/** Enough for the pretend GPU to take operations over weights in host memory, as CUDA does from 32 rows on. */
const nTokens = 40;

/** Where kernels are the same, so are results; llama.cpp may choose other operations where a device is there. */
const tolerance = 1e-6;

interface Setting {
  name: string;
  devices: string[];
  /** Of n blocks, this many on the devices; n + 1 includes the output head. */
  gpuLayers: (blocks: number) => number;
}

const settings: Setting[] = [
  { name: "whole", devices: ["Pretend0"], gpuLayers: (n) => n + 1 },
  { name: "half", devices: ["Pretend0"], gpuLayers: (n) => Math.ceil(n / 2) },
  { name: "offloaded only", devices: ["Pretend0"], gpuLayers: () => 0 },
  { name: "three devices", devices: ["Pretend0", "Pretend1", "Pretend2"], gpuLayers: (n) => n + 1 },
  { name: "two and the host", devices: ["Pretend0", "Pretend1"], gpuLayers: (n) => n - 1 },
];

interface Numbers {
  /** Everything computed, by what it is. */
  values: Map<string, ArrayLike<number>>;
  refused: string;
  /** Reasons for missing graphs of neurons and heads, or of features. */
  withoutGraph: string[];
  info: Model["info"];
}

/** Features that are active on the processor: elsewhere, one might be on the other side of zero. */
let features: GraphTranscoderUse[] | undefined;
const folder = mkdtempSync(join(tmpdir(), "tapline-device-graphs-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

async function compute(path: string, devices: string[], gpuLayers: number): Promise<Numbers> {
  const model = await Model.open(path, { devices, gpuLayers });
  try {
    // One thread: sums over threads come in another order otherwise.
    const context = await model.createContext({ nCtx: 256, nBatch: 64, maxSequences: 8, threads: 1 });
    const { supported, reason } = context.blockOutputs;
    const values = supported ? await allNumbers(model, context) : new Map();
    const withoutGraph = supported ? await graphNumbers(model, values) : [];
    return { values, refused: supported ? "" : reason, withoutGraph, info: model.info };
  } finally {
    await model.close();
  }
}

async function allNumbers(model: Model, context: Context): Promise<Map<string, ArrayLike<number>>> {
  const { nLayer, nEmbd, nVocab } = model.info;
  const random = randomSource(31);
  const ids = (count: number) => Int32Array.from({ length: count }, () => Math.floor(random() * nVocab));
  const tokens = ids(nTokens);
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const values = new Map<string, ArrayLike<number>>();
  const advance = async (request: Omit<Parameters<Context["advance"]>[0], "tokens">) => {
    await context.reset();
    return context.advance({ tokens, ...request });
  };

  values.set("logits", (await advance({ layers: [], logits: true })).logits!);
  const full = await advance({ layers, logits: true });
  values.set("logits beside a capture", full.logits!);
  for (const { layer, states } of full.layers) values.set(`block ${layer}`, states!.data);
  for (const layer of layers.slice(0, -1)) {
    const early = await advance({ layers: [layer], earlyExit: true });
    values.set(`block ${layer}, left behind it`, early.layers[0]!.states!.data);
  }
  if (context.lens.supported) {
    const { layers: seen } = await advance({ layers: [0], lensTopK: 3, rows: "all" });
    values.set("lens", seen[0]!.lens!.probabilities);
  }
  const middle = layers[nLayer >> 1]!;
  const offset = randomVector(nEmbd, 10, random);
  const positions = [3, 17, nTokens - 1].map((at) => [at, at] as const);
  const edits = [{ layer: middle, scale: 0.5, vector: offset, positions }];
  values.set("logits after edits", (await advance({ layers: [middle], edits, logits: true })).logits!);

  const sequences = [7, 33, 12].map(ids);
  for (const [layer, states] of await context.features({ sequences, layers: [0, middle] })) {
    values.set(`features of block ${layer}`, states.data);
  }
  try {
    const plans = [[{ layer: middle, scale: 0.4 }], [{ layer: middle, vector: offset }]];
    const trials = await context.sweep({ prompts: [ids(36), ids(5)], plans, maxTokens: 3 });
    const rows = trials.flatMap(({ baseline, rows }) => [baseline, ...rows]);
    values.set("sweep", Float64Array.from(rows.map(({ probability }) => probability)));
    values.set("continuations", Float64Array.from(rows.flatMap(({ continuation }) => [...continuation])));
  } catch (error) {
    if (!/does not generate text token by token\.$/.test(String(error))) throw error;
  }
  return values;
}

/** Adds edges and values of graphs of neurons and heads, and of random transcoders' features. @returns why there is one not */
async function graphNumbers(model: Model, values: Map<string, ArrayLike<number>>): Promise<string[]> {
  const { nVocab } = model.info;
  // As in the graph operation. From 32 on, products of the reserved graph are offloaded, and paths cannot be proven.
  const context = await model.createContext({ nCtx: 12, nBatch: 12, threads: 1, keepAttention: true });
  const random = randomSource(32);
  const tokens = Int32Array.from({ length: 12 }, () => Math.floor(random() * nVocab));
  const targets = [
    { position: 11, token: 5 },
    { position: 11, token: 7, minus: 9 },
  ];
  const refused: string[] = [];
  const add = async (what: string, graph: () => Promise<GraphNumbers>) => {
    try {
      const { nodes, edges } = await graph();
      values.set(`${what}: nodes`, [...nodes.layers, ...nodes.tokens, ...nodes.indices]);
      values.set(`${what}: edges`, edges.parts);
      values.set(`${what}: values`, edges.values);
    } catch (error) {
      refused.push(`${what}: ${(error as Error).message}`);
    }
  };
  try {
    await add("neurons", () => context.attributionGraph({ tokens, targets, nodes: 40 }));
    features ??= await randomSet(context, tokens, folder);
    const transcoders = features;
    if (transcoders !== undefined)
      await add("features", () =>
        context.transcoderGraph({ tokens, targets, transcoders, zeros: 1, nodes: 60 }),
      );
  } finally {
    await context.close();
  }
  return refused;
}

interface GraphNumbers {
  nodes: { layers: Int32Array; tokens: Int32Array; indices: Int32Array };
  edges: { parts: Float32Array; values: Float64Array };
}

function compare(name: string, found: Numbers, expected: Numbers): Check {
  const problems: string[] = [];
  let largest = 0;
  for (const [what, values] of expected.values) {
    const there = found.values.get(what);
    const distance =
      there?.length === values.length
        ? relativeDistance(Float64Array.from(there), Float64Array.from(values))
        : Number.POSITIVE_INFINITY;
    largest = Math.max(largest, distance);
    if (!(distance <= tolerance)) problems.push(`${what}: off by ${distance}`);
  }
  return { name, ok: problems.length === 0, detail: problems.slice(0, 3).join("; "), measured: { largest } };
}

const [path = ""] = process.argv.slice(2);
const expected = await compute(path, ["none"], 0);
const checks: Check[] = [];
for (const { name, devices, gpuLayers } of settings) {
  const wanted = gpuLayers(expected.info.nLayer);
  const found = await compute(path, devices, wanted);
  // The output head counts as a layer, and goes first.
  const blocks = Math.max(0, wanted - 1);
  const on = found.info.devices.filter(({ host }) => !host).reduce((sum, { blocks }) => sum + blocks, 0);
  const check = compare(name, found, expected);
  if (on !== blocks) {
    check.ok = false;
    check.detail = `${on} blocks on the devices, ${blocks} wanted; ${check.detail}`;
  }
  if (found.refused !== expected.refused) {
    check.ok = false;
    check.detail = `refused otherwise: ${found.refused}`;
  }
  if (found.withoutGraph.join() !== expected.withoutGraph.join()) {
    check.ok = false;
    check.detail = `without a graph there: ${found.withoutGraph.join("; ") || "none"}; ${check.detail}`;
  }
  checks.push(check);
}
const report: ModelReport = {
  architecture: expected.info.architecture,
  nLayer: expected.info.nLayer,
  tensorNames: [],
  sidePath: "",
  lens: "",
  refused: expected.refused,
  checks,
};
process.stdout.write(`${JSON.stringify(report)}\n`);
