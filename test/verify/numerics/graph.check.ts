import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Model } from "../../../src/native/index.js";
import { writeInF32 } from "../../support/f32-model.js";
import { Values } from "../values.js";
import type { Figure, NumericCheck } from "./check.js";
import { runPython } from "./python.js";

const demo = fileURLToPath(new URL("../../../models/demo/tapline-demo.gguf", import.meta.url));
const prompts = ["The capital of France is", "I don't like this film at all. It is"];

async function run(python: string, folder: string): Promise<Figure[]> {
  const path = join(folder, "f32.gguf");
  writeInF32(demo, path);
  const model = await Model.open(path, { gpuLayers: 0 });
  const { nLayer, nEmbd } = model.info;
  const context = await model.createContext({ nCtx: 64, keepAttention: true });
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const values = new Values();
  const numbers: number[] = [];
  const place = (list: Iterable<number>) => {
    const at = numbers.length;
    for (const value of list) numbers.push(value);
    return at;
  };
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
      precise: place(precise.edges.parts),
      plain: place(plain.edges.parts),
      values: place(precise.edges.values),
    });
  }
  await model.close();
  await writeFile(join(folder, "values.f32"), values.bytes());
  await writeFile(join(folder, "edges.f64"), Buffer.from(Float64Array.from(numbers).buffer));
  await writeFile(join(folder, "cases.json"), JSON.stringify({ model: path, prompts: cases }));
  const script = new URL("./graph.py", import.meta.url);
  const worst = (await runPython(python, script, [folder])) as Record<string, number>;
  return [
    { what: "edges that were compared", value: worst.edges!, bound: 3000, atLeast: true },
    {
      what: "in float64: relative difference, worst edge (of less than a thousandth of its row: over that)",
      value: worst.precise!,
      bound: 1e-6,
    },
    {
      what: "in float32: greatest difference, over the largest edge of its row",
      value: worst.plain!,
      bound: 1e-5,
    },
    { what: "values of nodes: relative difference", value: worst.values!, bound: 1e-6 },
    { what: "sums in float32: relative difference from the value", value: residual, bound: 1e-5 },
  ];
}

export default {
  title: "Attribution graph of the demo model in F32 against numpy in float64",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
