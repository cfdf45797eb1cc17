import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { decodeSafetensors } from "../../../src/formats/safetensors.js";
import { Dictionaries, type OpenDictionary } from "../../../src/library/index.js";
import { type Context, encodeRows, Model } from "../../../src/native/index.js";
import { openTraining } from "../../lab/demo-training.js";
import { writeInF32 } from "../../support/f32-model.js";
import {
  randomTranscoder,
  writeCrossLayer,
  writeSetConfig,
  writeTranscoder,
} from "../../support/random-transcoders.js";
import type { Values } from "../values.js";
import type { Figure, NumericCheck } from "./check.js";
import { EdgeCases, edgeFigures } from "./edges.js";

const demo = fileURLToPath(new URL("../../../models/demo/tapline-demo.gguf", import.meta.url));
const prompt = "The capital of France is";
const [width, blocks] = [128, 8];

/** Random ones, with skip terms and without, trained ones of blocks 2 and 5, and random ones of all blocks across layers. */
async function sets(folder: string): Promise<Record<string, OpenDictionary[]>> {
  const dictionaries = new Dictionaries(join(folder, "home"));
  const place = join(folder, "set");
  mkdirSync(place);
  writeSetConfig(place);
  for (const layer of [0, 1, 2, 4]) {
    writeTranscoder(
      place,
      layer,
      randomTranscoder(layer, { width, features: 90, skip: layer < 2, jump: layer !== 4 }),
    );
    await dictionaries.add(`random-${layer}`, join(place, `layer_${layer}.safetensors`));
  }
  const training = await openTraining({ points: { point: "ffn_in" }, settings: { target: "ffn_out" } });
  const out = join(folder, "trained");
  await training.extracted({ out: training.rows, target: "ffn_out" });
  await training.train({ layers: [2, 5], skip: true }, out);
  await training.close();
  for (const layer of [2, 5])
    await dictionaries.add(`trained-${layer}`, join(out, `sae-layer-${layer}.safetensors`));
  const across = join(folder, "across");
  mkdirSync(across);
  writeCrossLayer(across, { width, features: 60, blocks });
  for (let layer = 0; layer < blocks; layer++)
    await dictionaries.add(`across-${layer}`, join(across, `W_enc_${layer}.safetensors`));
  const size = { nEmbd: width, nLayer: blocks };
  return {
    random: await dictionaries.transcoders("random", size),
    trained: await dictionaries.transcoders("trained", size),
    across: await dictionaries.transcoders("across", size),
  };
}

/** A dictionary's weights with a subtracted bias folded into the encoder's. */
function weightsOf({ stored, places }: OpenDictionary, values: Values) {
  const { tensors } = decodeSafetensors(readFileSync(places.path));
  const { features } = stored;
  const of = (name: string) => Float32Array.from(tensors.get(name)!.data as Float32Array);
  const [encoder, bias, decoderBias] = [of("W_enc"), of("b_enc"), of("b_dec")];
  if (stored.subtracts_bias) throw new Error("The check has no subtracted bias.");
  return {
    W_enc: values.add(encoder, [features, width]),
    W_dec: values.add(of("W_dec"), [features, stored.writes_blocks ?? 1, width]),
    b_enc: values.add(bias, [1, features]),
    b_dec: values.add(decoderBias, [1, width]),
    ...(stored.skip && { W_skip: values.add(of("W_skip"), [width, width]) }),
  };
}

/** A text's rows, and the graph of all active features in both precisions. */
async function caseOf(
  context: Context,
  tokens: Int32Array,
  set: readonly OpenDictionary[],
  zeros: number,
  edges: EdgeCases,
) {
  const { values } = edges;
  const layers = Array.from({ length: blocks }, (_, layer) => layer);
  const points = ["block_in", "attention", "mid", "ffn_in", "ffn_out", "block_out"] as const;
  const captures = points.flatMap((point) => layers.map((layer) => ({ layer, point })));
  const { captures: found } = await context.forward({ sequences: [{ tokens }], captures });
  const at = (point: (typeof points)[number], layer: number) =>
    found[points.indexOf(point) * blocks + layer]!;
  const each = (point: (typeof points)[number]) =>
    layers.map((layer) => {
      const { values: rows, heads, width: size } = at(point, layer);
      const shape = point === "attention" ? [heads, tokens.length, tokens.length] : [tokens.length, size];
      return values.add(rows as Float32Array, shape);
    });
  const transcoders = [];
  const nodes: [number, number, number][] = [];
  for (const { stored, places } of set) {
    const states = (at("ffn_in", stored.layer).values as Float32Array).subarray(zeros * width);
    const { pointers, indices } = await encodeRows(places, states);
    const rows = Int32Array.from(indices);
    for (let row = 0; row + 1 < pointers.length; row++)
      rows.fill(zeros + row, pointers[row], pointers[row + 1]);
    for (const [i, feature] of indices.entries()) nodes.push([stored.layer, rows[i]!, feature]);
    transcoders.push({
      ...{ layer: stored.layer, point: "ffn_in" as const, dictionary: places },
      ...{ tokens: rows, features: indices },
    });
  }
  const position = tokens.length - 1;
  const targets = [
    { position, token: 300, minus: 40, weight: 0.7 },
    { position: position - 1, token: 77, weight: 0.3 },
  ];
  const request = { tokens, targets, transcoders, zeros, nodes: nodes.length, tried: 10 };
  const precise = await context.transcoderGraph({ ...request, precise: true });
  const plain = await context.transcoderGraph(request);
  return {
    residual: Math.max(...plain.edges.residuals),
    nodes: nodes.length,
    written: {
      ...{ targets, zeros, nodes },
      ...{ inputs: each("block_in"), patterns: each("attention"), mids: each("mid"), ffn: each("ffn_out") },
      last: values.add(at("block_out", blocks - 1).values as Float32Array, [tokens.length, width]),
      transcoders: Object.fromEntries(set.map((one) => [one.stored.layer, weightsOf(one, values)])),
      columns: precise.edges.columns,
      precise: edges.place(precise.edges.parts),
      plain: edges.place(plain.edges.parts),
      values: edges.place(precise.edges.values),
      tried: [...precise.tried],
      frozen: edges.place(precise.frozen),
    },
  };
}

async function run(python: string, folder: string): Promise<Figure[]> {
  const path = join(folder, "f32.gguf");
  writeInF32(demo, path);
  const found = await sets(folder);
  const model = await Model.open(path, { gpuLayers: 0 });
  const context = await model.createContext({ nCtx: 64, keepAttention: true });
  const tokens = await model.tokenize(prompt);
  const edges = new EdgeCases();
  const cases = [
    await caseOf(context, tokens, found.random!, 1, edges),
    await caseOf(context, tokens, found.trained!, 0, edges),
    await caseOf(context, tokens, found.across!, 1, edges),
  ];
  await model.close();
  const prompts = cases.map(({ written }) => written);
  const script = new URL("./graph_transcoders.py", import.meta.url);
  const worst = await edges.compare(python, script, folder, { model: path, prompts });
  return [
    ...edgeFigures(worst, Math.max(...cases.map(({ residual }) => residual))),
    {
      what: "active features: random, trained, across layers; the fewest",
      value: Math.min(...cases.map(({ nodes }) => nodes)),
      bound: 20,
      atLeast: true,
    },
    {
      what: "removals in the frozen model against edges here: over the largest edge",
      value: worst.frozen!,
      bound: 1e-6,
    },
  ];
}

export default {
  title: "Attribution graph with transcoders of the demo model in F32 against numpy in float64",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
