import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LiveIntervention } from "../../../src/contracts/live.js";
import { encodeSafetensors } from "../../../src/formats/safetensors.js";
import { editOf } from "../../../src/library/index.js";
import { Model } from "../../../src/native/index.js";
import { startServer, user } from "../../inference/support/serving.js";
import { TestRandom } from "../../support/random.js";
import type { Figure, NumericCheck } from "./check.js";
import { runPython } from "./python.js";

const chats = ["What is the capital of France?", "Where is Kyoto?", "Hello!"];
const steps = 12;

/** Every kind, every unit, every place in a text; a list is one request's, in its order. */
const cases: LiveIntervention[][] = [
  [{ kind: "scale", layer: 3, strength: 0.7 }],
  [{ kind: "ablate", layer: 2, strength: 0.5, positions: "prompt" }],
  [{ kind: "patch", vector: "wave", layer: 5, strength: 0.5, positions: "last" }],
  [{ kind: "steer", vector: "wave", layer: 4, strength: 40, strength_unit: "unit", positions: "generated" }],
  [{ kind: "steer", vector: "wave", layers: [3, 5], strength: -0.4, strength_unit: "row_norm" }],
  [
    {
      kind: "steer",
      vector: "wave",
      layer: 2,
      strength_unit: "vector",
      positions: [
        [0, 3],
        [-3, -2],
      ],
    },
  ],
  [{ kind: "project_out", vector: "other", layer: 4 }],
  [
    {
      kind: "clamp",
      vector: "wave",
      layer: 6,
      min: 0.4,
      max: 0.6,
      strength_unit: "row_norm",
      positions: "last",
    },
  ],
  [
    { kind: "scale", layer: 4, strength: 1.3, positions: "last" },
    {
      kind: "steer",
      vector: "other",
      layer: 4,
      strength: 0.3,
      strength_unit: "row_norm",
      positions: "generated",
    },
    { kind: "steer", vector: "wave", layer: 7, strength: 0.5, strength_unit: "row_norm" },
  ],
];

interface Entry {
  id: number;
  logprob: number;
  top_logprobs: Entry[];
}

/** Edited greedy chats against numpy's pass of the same tokens under the same edits, and against the Lab's `compare`. */
async function run(python: string, folder: string): Promise<Figure[]> {
  const home = await mkdtemp(join(tmpdir(), "tapline-live-numerics-"));
  const server = await startServer({ parallel: 4, home });
  const model = await Model.open(server.service.resolved.path, { gpuLayers: 0 });
  const context = await model.createContext({ nCtx: 1024, maxSequences: 4 });
  const answers: unknown[] = [];
  const compared = { probability: 0, texts: 0 };
  try {
    const random = new TestRandom(15);
    const { nEmbd } = server.service.engine.info;
    const vectors: Record<string, Float32Array> = {};
    for (const name of ["wave", "other"]) {
      const vector = random.normals(nEmbd).map((value) => 5 * value);
      vectors[name] = vector;
      const tensors = Array.from({ length: 8 }, (_, layer) => [
        `layer_${layer}`,
        { shape: [nEmbd], data: vector },
      ]);
      const put = await server.put(
        `/lab/vectors/${name}`,
        encodeSafetensors(Object.fromEntries(tensors), {}),
      );
      if (put.status !== 200) throw new Error(JSON.stringify(put.body));
    }
    const asked = cases.flatMap((interventions) => chats.map((content) => ({ interventions, content })));
    await Promise.all(
      asked.map(async ({ interventions, content }) => {
        const messages = user(content);
        const { status, body } = await server.post("/v1/chat/completions", {
          ...{ messages, temperature: 0, max_tokens: steps, logprobs: true, top_logprobs: 5 },
          tapline: { interventions },
        });
        if (status !== 200) throw new Error(JSON.stringify(body));
        const { prompt } = (await server.post("/apply-template", { messages })).body;
        const { tokens } = (
          await server.post("/tokenize", { content: prompt, add_special: true, parse_special: true })
        ).body;
        const plain = ({ id, logprob }: Entry) => ({ id, logprob });
        const told: Entry[] = body.choices[0].logprobs.content;
        answers.push({
          prompt: tokens,
          interventions,
          steps: told.map((entry) => ({ ...plain(entry), top: entry.top_logprobs.map(plain) })),
        });
      }),
    );
    for (const answer of answers as {
      prompt: number[];
      interventions: LiveIntervention[];
      steps: Step[];
    }[]) {
      const plan = answer.interventions.flatMap((written) =>
        (written.layers ?? [written.layer as number]).map((layer) =>
          editOf({ ...written, strength: written.strength ?? 1 }, layer, vectors[String(written.vector)]),
        ),
      );
      const [first] = answer.steps as [Step];
      const trials = await context.sweep({
        prompts: first.top.map(() => Int32Array.from(answer.prompt)),
        plans: [plan],
        targets: Int32Array.from(first.top, ({ id }) => id),
        maxTokens: steps,
      });
      for (const [place, { logprob }] of first.top.entries()) {
        const off = Math.abs(Math.exp(logprob) - trials[place]!.rows[0]!.probability);
        compared.probability = Math.max(compared.probability, off);
      }
      // Where the model ends its text, the Lab leaves that token out.
      const { continuation } = trials[0]!.rows[0]!;
      const other = answer.steps.findIndex(
        ({ id }, place) => place < continuation.length && id !== continuation[place],
      );
      // Behind a tie the two may go separate ways.
      if (other >= 0 && answer.steps[other]!.top[0]!.logprob - answer.steps[other]!.top[1]!.logprob > 1e-3)
        compared.texts++;
    }
    await writeFile(
      join(folder, "answers.json"),
      JSON.stringify({
        model: server.service.resolved.path,
        vectors: Object.fromEntries(Object.entries(vectors).map(([name, vector]) => [name, [...vector]])),
        answers,
      }),
    );
  } finally {
    await context.close();
    await model.close();
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
  const script = new URL("./live.py", import.meta.url);
  const results = (await runPython(python, script, [folder])) as Record<string, number>;
  const figure = (name: string) => results[name] ?? Number.NaN;
  return [
    {
      what: "edited chats: logprobs against numpy, greatest difference",
      value: figure("worst"),
      bound: 0.02,
    },
    { what: "steps whose most probable token is another", value: figure("wrong_order"), bound: 0 },
    { what: "probabilities compared", value: figure("compared"), bound: 1000, atLeast: true },
    {
      what: "the effect of the edits, the least of any case",
      value: figure("moved"),
      bound: 0.05,
      atLeast: true,
    },
    {
      what: "against the Lab's compare: a first token's probability",
      value: compared.probability,
      bound: 1e-4,
    },
    { what: "chats whose greedy text is not the Lab's, ties apart", value: compared.texts, bound: 0 },
  ];
}

interface Step {
  id: number;
  top: { id: number; logprob: number }[];
}

export default {
  title: "Edited chats in the serving batch, against numpy and against the Lab",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
