import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Model, type TargetParts } from "../../../src/native/index.js";
import { writeInF32 } from "../../support/f32-model.js";
import { Values } from "../values.js";
import type { Figure, NumericCheck } from "./check.js";
import { runPython } from "./python.js";

const demo = fileURLToPath(new URL("../../../models/demo/tapline-demo.gguf", import.meta.url));

const prompts = [
  "The capital of France is",
  "John and Mary went to the shop. John gave a book to",
  "I don't like this film at all. It is",
  "x",
];

async function run(python: string, folder: string): Promise<Figure[]> {
  const path = join(folder, "f32.gguf");
  writeInF32(demo, path);
  const model = await Model.open(path, { gpuLayers: 0 });
  const { nLayer, nEmbd } = model.info;
  const context = await model.createContext({ nCtx: 64, keepAttention: true });
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const values = new Values();
  const parts: number[] = [];
  const place = (list: Iterable<number>) => {
    const at = parts.length;
    parts.push(...list);
    return at;
  };
  const nodes = ({ embeddings, ffn }: TargetParts) => place([...embeddings, ...ffn]);
  let residual = 0;
  let apart = 0;
  const cases = [];
  for (const prompt of prompts) {
    const tokens = await model.tokenize(prompt);
    const position = tokens.length - 1;
    const points = ["block_in", "attention", "ffn_out"] as const;
    const captures = [
      ...points.flatMap((point) => layers.map((layer) => ({ layer, point }))),
      { layer: nLayer - 1, point: "block_out" as const },
    ];
    const { captures: found } = await context.forward({ sequences: [{ tokens }], captures });
    const rows = (at: number, shape: number[]) => values.add(found[at]!.values as Float32Array, shape);
    const each = (point: (typeof points)[number]) =>
      layers.map((layer) => {
        const at = points.indexOf(point) * nLayer + layer;
        const heads = found[at]!.heads;
        return rows(
          at,
          point === "attention" ? [heads, tokens.length, tokens.length] : [tokens.length, nEmbd],
        );
      });
    const direction = Float32Array.from({ length: nEmbd }, (_, k) => Math.sin(k * k));
    const targets = [
      { position, token: 300, minus: 40 },
      { position: Math.floor(position / 2), token: 77 },
      { position, layer: 3, point: "mid" as const, direction },
    ];
    const precise = await context.attribution({ tokens, targets, precise: true });
    const plain = await context.attribution({ tokens, targets });
    residual = Math.max(residual, ...plain.targets.map((target) => target.residual));
    apart = Math.max(apart, ...plain.apart);
    cases.push({
      tokens: [...tokens],
      inputs: each("block_in"),
      patterns: each("attention"),
      ffn: each("ffn_out"),
      last: rows(3 * nLayer, [tokens.length, nEmbd]),
      targets: targets.map((target, i) => ({
        ...target,
        ...("direction" in target ? { direction: [...direction] } : {}),
        precise: nodes(precise.targets[i]!),
        plain: nodes(plain.targets[i]!),
        heads: place(precise.targets[i]!.heads.flatMap((heads) => [...heads])),
      })),
    });
  }
  await model.close();
  await writeFile(join(folder, "values.f32"), values.bytes());
  await writeFile(join(folder, "parts.f64"), Buffer.from(Float64Array.from(parts).buffer));
  await writeFile(join(folder, "cases.json"), JSON.stringify({ model: path, prompts: cases }));
  const script = new URL("./attribution.py", import.meta.url);
  const worst = (await runPython(python, script, [folder])) as Record<string, number>;
  return [
    { what: "parts that were compared", value: worst.parts!, bound: 500, atLeast: true },
    { what: "in float64: relative difference, worst part", value: worst.precise!, bound: 1e-6 },
    { what: "in float32: greatest difference, over the largest part", value: worst.plain!, bound: 1e-6 },
    { what: "heads: greatest difference, over the largest", value: worst.heads!, bound: 1e-5 },
    { what: "with the pass computed in NumPy: over the largest part", value: worst.own!, bound: 1e-4 },
    { what: "sums in float32: relative difference from the value", value: residual, bound: 1e-5 },
    { what: "attention from its linear path: relative L2, worst block", value: apart, bound: 1e-5 },
  ];
}

export default {
  title: "Attribution on the demo model in F32 against numpy in float64",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
