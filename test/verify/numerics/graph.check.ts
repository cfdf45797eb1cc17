import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Model } from "../../../src/native/index.js";
import { writeInF32 } from "../../support/f32-model.js";
import type { Figure, NumericCheck } from "./check.js";
import { EdgeCases, edgeFigures } from "./edges.js";

const demo = fileURLToPath(new URL("../../../models/demo/tapline-demo.gguf", import.meta.url));
const prompts = ["The capital of France is", "I don't like this film at all. It is"];

async function run(python: string, folder: string): Promise<Figure[]> {
  const path = join(folder, "f32.gguf");
  writeInF32(demo, path);
  const model = await Model.open(path, { gpuLayers: 0 });
  const { nLayer, nEmbd } = model.info;
  const context = await model.createContext({ nCtx: 64, keepAttention: true });
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const edges = new EdgeCases();
  const { values } = edges;
  let residual = 0;
  const cases = [];
  for (const prompt of prompts) {
    const tokens = await model.tokenize(prompt);
    const position = tokens.length - 1;
    const points = ["block_in", "attention", "head_out", "mid", "block_out"] as const;
    const captures = points.flatMap((point) => layers.map((layer) => ({ layer, point })));
    const { captures: found } = await context.forward({ sequences: [{ tokens }], captures });
    const each = (point: (typeof points)[number]) =>
      layers.map((layer) => {
        const { values: rows, heads, width } = found[points.indexOf(point) * nLayer + layer]!;
        const shape = point === "attention" ? [heads, tokens.length, tokens.length] : [tokens.length, width];
        return values.add(rows as Float32Array, shape);
      });
    const targets = [
      { position, token: 300, minus: 40, weight: 0.7 },
      { position, token: 77, weight: 0.3 },
    ];
    const request = { tokens, targets, nodes: 60 };
    const precise = await context.attributionGraph({ ...request, precise: true });
    const plain = await context.attributionGraph(request);
    residual = Math.max(residual, ...plain.edges.residuals);
    const { heads, layers: blocks, tokens: at, indices } = precise.nodes;
    cases.push({
      targets,
      tokens: [...tokens],
      inputs: each("block_in"),
      patterns: each("attention"),
      heads: each("head_out"),
      mids: each("mid"),
      last: values.add(found.at(-1)!.values as Float32Array, [tokens.length, nEmbd]),
      nodes: Array.from(heads, (head, i) => [head, blocks[i], at[i], indices[i]]),
      columns: precise.edges.columns,
      precise: edges.place(precise.edges.parts),
      plain: edges.place(plain.edges.parts),
      values: edges.place(precise.edges.values),
    });
  }
  await model.close();
  const script = new URL("./graph.py", import.meta.url);
  const worst = await edges.compare(python, script, folder, { model: path, prompts: cases });
  return edgeFigures(worst, residual);
}

export default {
  title: "Attribution graph of the demo model in F32 against numpy in float64",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
