import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type CompareConfig, checkSubmission } from "../../../src/contracts/index.js";
import { Artifacts } from "../../../src/lab/artifacts.js";
import { StageClock } from "../../../src/lab/stage-clock.js";
import { Lenses } from "../../../src/library/lenses.js";
import { Model } from "../../../src/native/index.js";
import { compare } from "../../../src/operations/compare/run.js";
import type { Figure, NumericCheck } from "./check.js";
import { runPython } from "./python.js";

const demo = (name: string) => fileURLToPath(new URL(`../../../models/demo/${name}`, import.meta.url));
const modelPath = demo("tapline-demo.gguf");
const lensPath = demo("tapline-demo_jacobian_lens.pt");

/** Blocks alone and in bands, the last one, earlier tokens, half of the way and beyond. */
const asked = [
  { layers: [5], strengths: [1] },
  { layers: [7], strengths: [1] },
  { layers: [3, 4, 5, 6], strengths: [0.5, 1, 2] },
  { layers: [2, 3], strengths: [1], positions: "prompt" },
  { layers: [1, 4], strengths: [1], positions: [[-3, -1]] },
];
const prompt = "The capital of France is";
const swap = [" Paris", " Tokyo"];

async function run(python: string, folder: string): Promise<Figure[]> {
  process.env.TAPLINE_HOME = folder;
  await new Lenses(folder).add("demo", lensPath);
  const model = await Model.open(modelPath, { gpuLayers: 0 });
  const tokens = await model.tokenize(prompt);
  const ids: number[] = [];
  for (const token of swap) ids.push((await model.tokenize(token, { special: false }))[0] as number);
  const cases = [];
  for (const [index, more] of asked.entries()) {
    const body = { operation: "compare", model: "demo", prompt, intervention: "swap", swap, lens: "demo" };
    const config = checkSubmission({
      ...body,
      target_token: " Tokyo",
      max_tokens: 1,
      ...more,
    }) as CompareConfig;
    const openOther = () => Promise.reject(new Error("One model is enough."));
    const artifacts = new Artifacts(join(folder, String(index)));
    const input = { config, model, artifacts, openOther, clock: new StageClock(), progress: () => {} };
    const { trials } = await compare(input);
    const all = Array.from(tokens.keys());
    const positions =
      more.positions === undefined ? all.slice(-1) : more.positions === "prompt" ? all : all.slice(-3);
    for (const { strength, probability } of trials) {
      cases.push({
        ...{ tokens: [...tokens], swap: ids, target: ids[1], layers: more.layers },
        ...{ positions, strength, probability },
      });
    }
  }
  await model.close();
  await writeFile(join(folder, "cases.json"), JSON.stringify({ model: modelPath, lens: lensPath, cases }));
  const results = (await runPython(python, new URL("./swap.py", import.meta.url), [folder])) as {
    probability: number;
    effect: number;
  };
  return [
    { what: "probability of the other token: greatest difference", value: results.probability, bound: 0.01 },
    { what: "greatest effect on it", value: results.effect, bound: 0.5, atLeast: true },
  ];
}

export default {
  title: "Coordinates of two tokens exchanged along the demo model's Jacobian lens, against numpy",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
