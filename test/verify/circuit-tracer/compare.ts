import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Shape } from "../../../bench/models/random-model.js";
import { writeModel } from "../../../bench/models/random-model.js";
import { transpose } from "../../../src/formats/dictionaries/dictionary.js";
import { decodeSafetensors, type Tensor } from "../../../src/formats/safetensors.js";
import { Dictionaries } from "../../../src/library/index.js";
import {
  type Context,
  encodeRows,
  type GraphTranscoderUse,
  type TranscoderGraph,
} from "../../../src/native/index.js";
import { pruneGraph } from "../../../src/operations/graph/run-pruning.js";
import { TestRandom } from "../../support/random.js";
import {
  randomTranscoder,
  writeCrossLayer,
  writeSetConfig,
  writeTranscoder,
} from "../../support/random-transcoders.js";
import { runProgram } from "../../support/real/cache.js";
import { environment } from "../../support/real/environments.js";

/** What trace.py writes. */
export interface Traced {
  nodes: number;
  features: number;
  edges: number;
  targets: number[];
  weights: number[];
  replacement: number;
  completeness: number;
  seconds: number;
  processor: number;
  /** Bytes. */
  peak: number;
}

export interface Setting {
  shape: Pick<Shape, "blocks" | "hidden">;
  skip: boolean;
  /** A cross-layer transcoder, without skip terms. */
  across?: boolean;
  tokens: Int32Array;
  threads: number;
  batch: number;
  maxFeatures?: number;
}

export interface RandomSetting extends Setting {
  shape: Shape;
  /** Per transcoder. */
  features: number;
}

/** Writes a model of Llama's form in F32, and a set of random transcoders of all its blocks. */
export async function writeInputs(
  folder: string,
  { shape, features, skip, across }: RandomSetting,
): Promise<void> {
  const random = new TestRandom(11);
  await writeModel(join(folder, "model.gguf"), "f32", shape, (size, deviation) => {
    const scale = deviation * Math.sqrt(3);
    return Buffer.from(
      Float32Array.from({ length: size / 4 }, () => (2 * random.uniform() - 1) * scale).buffer,
    );
  });
  const set = join(folder, "set");
  mkdirSync(set);
  const output = "mlp.hook_out";
  if (across) return writeCrossLayer(set, { width: shape.hidden, features, blocks: shape.blocks, output });
  writeSetConfig(set, { output });
  for (let layer = 0; layer < shape.blocks; layer++)
    writeTranscoder(set, layer, randomTranscoder(layer + 1, { width: shape.hidden, features, skip }));
}

/**
 * The model itself, and a set that `tapline sae` trained for it (a folder with `layer-N`), in circuit-tracer's layout: SAELens's files
 * have the encoder turned.
 */
export async function writeTrained(
  folder: string,
  model: string,
  trained: string,
  blocks: number,
): Promise<void> {
  symlinkSync(model, join(folder, "model.gguf"));
  const set = join(folder, "set");
  mkdirSync(set);
  writeSetConfig(set, { output: "mlp.hook_out" });
  for (let layer = 0; layer < blocks; layer++) {
    const path = join(trained, `layer-${layer}`, `saelens-layer-${layer}`, "sae_weights.safetensors");
    const { tensors } = decodeSafetensors(readFileSync(path));
    const numbers = (name: string) => (tensors.get(name) as Tensor).data as Float32Array;
    const [width, features] = (tensors.get("W_enc") as Tensor).shape as [number, number];
    const encoder = transpose(numbers("W_enc"), width, features);
    writeTranscoder(set, layer, {
      ...{ width, features, encoder, decoder: numbers("W_dec"), skip: numbers("W_skip") },
      ...{ encoderBias: numbers("b_enc"), decoderBias: numbers("b_dec"), threshold: numbers("threshold") },
    });
  }
}

/** circuit-tracer's graph of the inputs in a folder, which gets its arrays. */
export async function trace(folder: string, setting: Setting): Promise<Traced> {
  const { shape, skip, across = false, tokens, threads, batch, maxFeatures } = setting;
  const config = {
    model: join(folder, "model.gguf"),
    transcoders: { folder: join(folder, "set"), layers: shape.blocks, skip, across },
    ...{ tokens: [...tokens], threads, batch, out: folder },
    ...(maxFeatures !== undefined && { max_features: maxFeatures }),
  };
  const path = join(folder, "config.json");
  writeFileSync(path, JSON.stringify(config));
  const script = fileURLToPath(new URL("./trace.py", import.meta.url));
  await runProgram(await environment("circuit-tracer"), ["-B", script, path], { HF_HUB_OFFLINE: "1" });
  return JSON.parse(readFileSync(join(folder, "result.json"), "utf8"));
}

/** The set's active features in a text, with those of the first token left out, as circuit-tracer does. */
export async function encode(
  context: Context,
  folder: string,
  { shape, tokens, across }: Setting,
): Promise<GraphTranscoderUse[]> {
  const dictionaries = new Dictionaries(join(folder, "home"));
  const layers = Array.from({ length: shape.blocks }, (_, layer) => layer);
  const captures = layers.map((layer) => ({ layer, point: "ffn_in" as const }));
  const { captures: rows } = await context.forward({ sequences: [{ tokens }], captures });
  const uses: GraphTranscoderUse[] = [];
  for (const layer of layers) {
    const name = `set-${layer}`;
    if (!(await dictionaries.names()).includes(name))
      await dictionaries.add(name, join(folder, "set", `${across ? "W_enc" : "layer"}_${layer}.safetensors`));
    const { places } = await dictionaries.open(name);
    const states = (rows[layer]!.values as Float32Array).subarray(shape.hidden);
    const { pointers, indices } = await encodeRows(places, states);
    const at = Int32Array.from(indices);
    for (let row = 0; row + 1 < pointers.length; row++) at.fill(1 + row, pointers[row], pointers[row + 1]);
    uses.push({ layer, point: "ffn_in", dictionary: places, tokens: at, features: indices });
  }
  return uses;
}

/** How far both graphs are apart, and what both keep after pruning. */
export async function compare(
  folder: string,
  { shape, tokens }: Setting,
  traced: Traced,
  ours: TranscoderGraph,
) {
  const bytes = (name: string) => readFileSync(join(folder, name));
  const floats = (data: Buffer) => new Float32Array(data.buffer, data.byteOffset, data.length / 4);
  const adjacency = floats(bytes("adjacency.f32"));
  const listed = bytes("features.i32");
  const features = new Int32Array(listed.buffer, listed.byteOffset, listed.length / 4);
  const kept = bytes("kept.u8");
  const [n, layers, targets] = [tokens.length, shape.blocks, traced.targets.length];
  const { nodes, edges } = ours;
  const count = nodes.layers.length;
  const places = new Map(
    Array.from({ length: traced.features }, (_, i) => [features.subarray(3 * i, 3 * i + 3).join(" "), i]),
  );
  const placeOf = (node: number) =>
    places.get(`${nodes.layers[node]} ${nodes.tokens[node]} ${nodes.indices[node]}`);
  const left = n + count + layers * n;
  const errors = Array.from({ length: layers * n }, (_, i) => i);
  // Each of our columns and rows, and theirs.
  const columns: [number, number][] = [
    ...Array.from({ length: n }, (_, i): [number, number] => [i, traced.features + layers * n + i]),
    ...Array.from({ length: count }, (_, i): [number, number] => [n + i, placeOf(i) ?? -1]),
    ...errors.map((i): [number, number] => [left + i, traced.features + i]),
  ];
  const rows: [number, number][] = [
    ...traced.targets.map((_, i): [number, number] => [i, traced.nodes - targets + i]),
    ...Array.from({ length: count }, (_, i): [number, number] => [targets + i, placeOf(i) ?? -1]),
  ];
  let [difference, size, worst] = [0, 0, 0];
  for (const [row, theirs] of rows) {
    if (theirs < 0) continue;
    let [off, own] = [0, 0];
    for (const [column, other] of columns) {
      if (other < 0) continue;
      const wanted = adjacency[theirs * traced.nodes + other]!;
      off += (edges.parts[row * edges.columns + column]! - wanted) ** 2;
      own += wanted ** 2;
    }
    difference += off;
    size += own;
    worst = Math.max(worst, Math.sqrt(off / own));
  }
  const layout = { targets, tokens: n, nodes: count, layers, groups: ["rest", "error", "rounding"] as const };
  const pruned = await pruneGraph(ours, layout, traced.weights, {
    ...{ nodeThreshold: 0.8, edgeThreshold: 0.98, most: 10 },
  });
  const differ = columns.filter(
    ([column, other]) => pruned.kept[column] !== (other < 0 ? 0 : kept[other]),
  ).length;
  return {
    apart: Math.sqrt(difference / size),
    worst,
    missing:
      Math.max(traced.features, count) - columns.slice(n, n + count).filter(([, other]) => other >= 0).length,
    differ,
    kept: kept.subarray(0, traced.features).reduce((sum, one) => sum + one, 0),
    edges: pruned.all.count / traced.edges,
    replacement: Math.abs(pruned.scores.replacement - traced.replacement),
    completeness: Math.abs(pruned.scores.completeness - traced.completeness),
  };
}
