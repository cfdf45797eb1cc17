import { fileURLToPath } from "node:url";
import { startServer } from "../../inference/support/serving.js";
import { openHarness } from "../../lab/harness.js";
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
    {
      what: "inspect, probe and sae: neither done nor refused with a sentence",
      value: await unanswered(f32),
      bound: 0,
    },
  ];
}

/** How many of the Lab's operations neither give finite block outputs nor say in a sentence why there are none. */
async function unanswered(model: string): Promise<number> {
  const examples = texts.slice(0, 16).map((text, i) => ({
    ...{ text, label: Math.floor(i / 2) % 2 },
    split: i % 2 === 0 ? "train" : "test",
  }));
  const lab = await openHarness({ backend: "cpu" });
  let wrong = 0;
  try {
    for (const request of [
      { operation: "inspect", prompt: texts[0] },
      { operation: "probe", examples },
      { operation: "sae", examples, features: 8, steps: 5 },
    ]) {
      const { id } = await lab.submit({ ...request, model, layers: [0, 5] });
      const { status, error } = await lab.finished(id);
      if (status === "failed" && /^[A-Z].*'bert'.*\.$/s.test(error ?? "")) {
        console.log(`  ${request.operation} refused: ${error}`);
      } else if (status !== "completed") {
        console.log(`  ${request.operation} ${status}: ${error}`);
        wrong++;
      }
    }
  } finally {
    await lab.close();
  }
  return wrong;
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
  return dot / (Math.hypot(...a) * Math.hypot(...b));
}
