import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Lenses } from "../../../src/library/lenses.js";
import { Model } from "../../../src/native/index.js";
import { Values } from "../values.js";
import type { Figure, NumericCheck } from "./check.js";
import { runPython } from "./python.js";

const demo = (name: string) => fileURLToPath(new URL(`../../../models/demo/${name}`, import.meta.url));
const modelPath = demo("tapline-demo.gguf");
const lensPath = demo("tapline-demo_jacobian_lens.pt");

const prompts = [
  "The capital of France is",
  "The language of the country of Osaka is",
  "John and Mary went to the shop. John gave a book to",
  "x",
];

interface Results {
  variation: number;
  entropy: number;
  divergence: number;
  moved: number;
}

async function run(python: string, folder: string): Promise<Figure[]> {
  const lenses = new Lenses(folder);
  await lenses.add("demo", lensPath);
  const model = await Model.open(modelPath, { gpuLayers: 0 });
  const { nLayer, nEmbd, nVocab } = model.info;
  const lens = await lenses.fitting("demo", model.info);
  const context = await model.createContext({ nCtx: 512 });
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const values = new Values();
  const cases = [];
  for (const prompt of prompts) {
    const tokens = await model.tokenize(prompt);
    await context.reset();
    const captured = await context.advance({ tokens, layers });
    const states = captured.layers.map((layer) => layer.states!.data);
    const readings = await context.readLens({
      places: layers
        .slice(0, -1)
        .map((layer) => ({ states: states[layer]!, translator: lens.translator(layer)! })),
      output: states.at(-1)!,
      top: nVocab,
      entropy: true,
    });
    cases.push({
      tokens: [...tokens],
      layers: readings.map(({ tokenIds, probabilities, entropies, divergences }) => {
        const byToken = new Float32Array(tokens.length * nVocab);
        for (let i = 0; i < tokenIds.length; i++) {
          byToken[Math.floor(i / nVocab) * nVocab + tokenIds[i]!] = probabilities[i]!;
        }
        return {
          probabilities: values.add(byToken, [tokens.length, nVocab]),
          entropy: values.add(entropies!, [tokens.length]),
          divergence: values.add(divergences!, [tokens.length]),
        };
      }),
    });
  }
  await context.close();
  await model.close();
  await writeFile(join(folder, "values.f32"), values.bytes());
  const given = { model: modelPath, lens: lensPath, width: nEmbd, prompts: cases };
  await writeFile(join(folder, "cases.json"), JSON.stringify(given));
  const results = (await runPython(python, new URL("./lens.py", import.meta.url), [folder])) as Results;
  return [
    { what: "probabilities: total variation, worst token and block", value: results.variation, bound: 0.005 },
    { what: "entropy: greatest difference, nats", value: results.entropy, bound: 0.02 },
    {
      what: "KL of the output from the reading: greatest difference, nats",
      value: results.divergence,
      bound: 0.02,
    },
    {
      what: "greatest effect of the lens (total variation from the logit lens)",
      value: results.moved,
      bound: 0.5,
      atLeast: true,
    },
  ];
}

export default {
  title: "Jacobian lens of the demo model against numpy",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
