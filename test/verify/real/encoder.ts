import { fileURLToPath } from "node:url";
import { NativeError } from "../../../src/native/error.js";
import { Model } from "../../../src/native/index.js";
import { startServer } from "../../inference/support/serving.js";
import { runProgram } from "../../support/real/cache.js";
import { environment } from "../../support/real/environments.js";
import type { Figure } from "../numerics/check.js";
import { passage } from "./passage.js";

const script = fileURLToPath(new URL("./encoder.py", import.meta.url));

const texts = [
  "A dog runs across the beach.",
  "x",
  "Das Meer liest keine Zeitung.",
  "naïve café, 1,234.5 €: «quotes» and (parentheses)!",
  ...passage.split(/(?<=[.:?!])\s+/).slice(0, 12),
  passage.slice(0, 900),
];

/** `/v1/embeddings` of a real encoder against its own package, and what the experiments say about it. */
export async function encoder({ f32, folder }: { f32: string; folder: string }): Promise<Figure[]> {
  const server = await startServer({ model: f32, parallel: 1, threads: 1 });
  let ours: number[][];
  try {
    const { status, body } = await server.post("/v1/embeddings", { input: texts });
    if (status !== 200) throw new Error(`/v1/embeddings answered ${status}: ${JSON.stringify(body)}`);
    ours = body.data.map(({ embedding }: { embedding: number[] }) => embedding);
  } finally {
    await server.close();
  }
  const python = await environment("transformers");
  const said = await runProgram(python, ["-B", script, folder, JSON.stringify(texts)], {
    HF_HUB_OFFLINE: "1",
  });
  const theirs = JSON.parse(said.trim().split("\n").at(-1) as string) as number[][];
  const cosines = ours.map((each, i) => cosine(each, theirs[i] as number[]));
  return [
    {
      what: "embeddings of 17 texts: smallest cosine",
      value: Math.min(...cosines),
      bound: 0.9999,
      atLeast: true,
    },
    {
      what: "cosine of two different texts (the check can fail)",
      value: cosine(ours[0] as number[], theirs[2] as number[]),
      bound: 0.9,
    },
    { what: "texts refused without a sentence by the tap", value: await refusals(f32), bound: 0 },
  ];
}

/** inspect, probe and sae take block outputs, or say in a sentence why there are none. */
async function refusals(path: string): Promise<number> {
  const model = await Model.open(path, { gpuLayers: 0 });
  try {
    const context = await model.createContext({ nCtx: 256, threads: 1 });
    const tokens = await model.tokenize(texts[0] as string);
    const found = await context.features({ sequences: [tokens], layers: [0, 5] });
    return found.size === 2 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof NativeError) || !/^[A-Z].*\.$/s.test(error.message)) return 1;
    console.log(`  refused: ${error.message}`);
    return 0;
  } finally {
    await model.close();
  }
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
  return dot / (Math.hypot(...a) * Math.hypot(...b));
}
