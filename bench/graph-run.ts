/**
 * One graph in a separate process, for bench/graph.ts: `graph-run.ts CONFIG.json` prints a JSON line.
 * The model is loaded before the clock starts, as in the peer.
 */
import { readFileSync } from "node:fs";
import { Dictionaries } from "../src/library/index.js";
import { encodeRows, type GraphTranscoderUse, Model } from "../src/native/index.js";
import { pruneGraph } from "../src/operations/graph/run-pruning.js";

export interface GraphRun {
  model: string;
  /** Folder of the library, with the set `set`. */
  home: string;
  tokens: number[];
  threads: number;
  nodes: number;
  targets?: { token: number; weight: number }[];
}

export interface GraphRunResult {
  seconds: number;
  processor: number;
  /** Bytes, of the whole process. */
  peak: number;
  /** Of rows from the first to the last, without encoding. */
  propagation: number;
  /** Multiplications and additions of the products with values and outputs. */
  flops: number;
  active: number;
  bytes: number;
  worst: number;
}

const config = JSON.parse(readFileSync(process.argv[2] as string, "utf8")) as GraphRun;
const tokens = Int32Array.from(config.tokens);
const model = await Model.open(config.model, { gpuLayers: 0 });
const { nLayer, nEmbd } = model.info;
const context = await model.createContext({
  ...{ nCtx: tokens.length, nBatch: tokens.length, keepAttention: true, threads: config.threads },
});
const set = await new Dictionaries(config.home).transcoders("set", model.info);
const [start, used] = [performance.now(), process.cpuUsage()];
const captures = set.map(({ stored: { layer } }) => ({ layer, point: "ffn_in" as const }));
const { captures: rows } = await context.forward({ sequences: [{ tokens }], captures });
const transcoders: GraphTranscoderUse[] = [];
for (const [i, { stored, places }] of set.entries()) {
  const states = (rows[i]!.values as Float32Array).subarray(nEmbd);
  const { pointers, indices } = await encodeRows(places, states, { threads: config.threads });
  const at = Int32Array.from(indices);
  for (let row = 0; row + 1 < pointers.length; row++) at.fill(1 + row, pointers[row], pointers[row + 1]);
  transcoders.push({
    layer: stored.layer,
    point: "ffn_in",
    dictionary: places,
    tokens: at,
    features: indices,
  });
}
const position = tokens.length - 1;
const given = config.targets ?? Array.from({ length: 10 }, (_, i) => ({ token: 100 + i, weight: 0.1 }));
const targets = given.map((target) => ({ ...target, position }));
let first = 0;
const found = await context.transcoderGraph({
  ...{ tokens, targets, transcoders, zeros: 1, nodes: config.nodes },
  onProgress: () => {
    if (first === 0) first = performance.now();
  },
});
const end = performance.now();
const layout = {
  ...{ targets: targets.length, tokens: tokens.length, nodes: found.nodes.layers.length, layers: nLayer },
  groups: ["rest", "error", "rounding"] as const,
};
const weights = targets.map(({ weight }) => weight);
pruneGraph(found, layout, weights, { nodeThreshold: 0.8, edgeThreshold: 0.98, most: 100_000 });
const seconds = (performance.now() - start) / 1000;
const processor = process.cpuUsage(used);
const kv = context.points.head_out.widths[0] as number;
const values = (config as GraphRun & { valueWidth?: number }).valueWidth ?? kv;
const each = 2 * nEmbd * (kv + values) * tokens.length;
const result: GraphRunResult = {
  ...{ seconds, processor: (processor.user + processor.system) / 1e6 },
  peak: process.resourceUsage().maxRSS * 1024,
  propagation: (end - first) / 1000,
  flops: found.nodes.layers.reduce((sum, layer) => sum + (layer + 1) * each, 0),
  active: transcoders.reduce((sum, { features }) => sum + features.length, 0),
  bytes: found.bytes,
  worst: Math.max(...found.edges.residuals),
};
await model.close();
console.log(JSON.stringify(result));
