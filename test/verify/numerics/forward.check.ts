import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Context, type Edit, Model } from "../../../src/native/index.js";
import { decompose } from "../../../src/operations/inspect/run-decompose.js";
import { sameBits, softmax, totalVariation } from "../architectures/arithmetic.js";
import { Values } from "../values.js";
import type { Figure, NumericCheck } from "./check.js";
import { runPython } from "./python.js";

const modelPath = fileURLToPath(new URL("../../../models/demo/tapline-demo.gguf", import.meta.url));

const prompts = [
  "The capital of France is",
  "The capital of Japan is",
  "John and Mary went to the shop. John gave a book to",
  "I don't like this film at all. It is",
  "x",
  `${"one two three four five six seven eight nine ten ".repeat(6)}one two three`,
];

const strengths = {
  scale: [0, 0.5, 1, 2],
  ablate: [0.25, 0.5, 1],
  patch: [0.25, 0.5, 1],
  steer: [-100, -10, 10, 100],
  steer_row_norm: [-0.5, 0.5, 2],
  project_out: [0.5, 1],
  clamp: [0.5, 1],
} as const;

type Kind = keyof typeof strengths;

const inner = ["block_in", "attn_out", "mid", "ffn_in", "ffn_out"] as const;

interface Results {
  blocks: number;
  rows: number;
  variation: number;
  points: Record<(typeof inner)[number], number>;
  contributions: number;
  interventions: Record<Kind, number>;
  moved: Record<Kind, number>;
  later: number;
}

/** Each of the contract's interventions as the native core takes it. */
function editOf(kind: Kind, strength: number, vector: Float32Array): Omit<Edit, "layer"> {
  if (kind === "scale") return { scale: strength };
  if (kind === "ablate") return { scale: 1 - strength };
  if (kind === "patch") return { scale: 1 - strength, strength, vector };
  if (kind === "steer") return { strength, unit: "unit", vector };
  if (kind === "steer_row_norm") return { strength, unit: "row_norm", vector };
  if (kind === "clamp") return { kind, strength, unit: "row_norm", min: 0.4, max: 0.6, vector };
  return { kind, strength, vector };
}

async function run(python: string, folder: string): Promise<Figure[]> {
  const model = await Model.open(modelPath, { gpuLayers: 0 });
  const { nLayer, nEmbd, nVocab } = model.info;
  const context = await model.createContext({ nCtx: 512 });
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const values = new Values();
  let differing = 0;
  let lens = 0;

  const captured: Array<{ tokens: Int32Array; states: Float32Array[] }> = [];
  const cases = [];
  for (const prompt of prompts) {
    const tokens = await model.tokenize(prompt);
    const plain = await logits(context, { tokens, layers: [] });
    const watched = await logits(context, { tokens, layers, rows: "last" });
    if (!sameBits(plain, watched)) ++differing;
    await context.reset();
    const result = await context.advance({ tokens, layers, rows: "all", lensTopK: nVocab });
    const states = result.layers.map((layer) => layer.states!.data);
    const last = result.layers.at(-1)!.lens!;
    lens = Math.max(
      lens,
      totalVariation(softmax(plain), {
        tokenIds: last.tokenIds.subarray(-nVocab),
        probabilities: last.probabilities.subarray(-nVocab),
      }),
    );
    captured.push({ tokens, states });
    await context.reset();
    const inside = await context.advance({ tokens, layers, points: inner });
    const parts = await decompose(model, context, tokens, null);
    cases.push({
      points: Object.fromEntries(
        inner.map((point) => [
          point,
          inside.layers
            .filter((found) => found.point === point)
            .map((found) => values.add(found.states!.data, [tokens.length, nEmbd])),
        ]),
      ),
      decomposition: {
        target_token_id: parts.target_token_id,
        parts: [parts.embedding, ...parts.blocks.flatMap(({ attention, mlp }) => [attention, mlp])],
      },
      tokens: [...tokens],
      states: states.map((state) => values.add(state, [tokens.length, nEmbd])),
      logits: values.add(plain, [nVocab]),
    });
  }

  const lastRow = (prompt: number, layer: number) => captured[prompt]!.states[layer]!.subarray(-nEmbd);
  const edits = [];
  for (const kind of Object.keys(strengths) as Kind[]) {
    for (const strength of strengths[kind]) {
      for (const layer of [0, Math.floor(nLayer / 2), nLayer - 1]) {
        const [prompt, donor, minus] = [0, 1, 0];
        const vector =
          kind !== "patch"
            ? lastRow(donor, layer).map((value, i) => value - lastRow(minus, layer)[i]!)
            : lastRow(donor, layer);
        const { tokens } = captured[prompt]!;
        const edit = { layer, ...editOf(kind, strength, vector) };
        await context.reset();
        const result = await context.advance({
          tokens,
          layers: [...new Set([layer, nLayer - 1])],
          rows: "last",
          edits: [edit],
          logits: true,
        });
        edits.push({
          kind,
          strength,
          layer,
          prompt,
          donor,
          minus,
          logits: values.add(result.logits!, [nVocab]),
          last: values.add(result.layers.at(-1)!.states!.data, [nEmbd]),
        });
      }
    }
  }
  await model.close();
  await writeFile(join(folder, "values.f32"), values.bytes());
  await writeFile(join(folder, "cases.json"), JSON.stringify({ model: modelPath, prompts: cases, edits }));
  const script = new URL("./forward.py", import.meta.url);
  const results = (await runPython(python, script, [folder])) as Results;

  const kinds = Object.keys(strengths) as Kind[];
  return [
    { what: "block outputs: relative L2, worst prompt and block", value: results.blocks, bound: 1e-3 },
    { what: "block outputs: relative L2, worst single row", value: results.rows, bound: 5e-3 },
    { what: "next token: total variation, worst prompt", value: results.variation, bound: 0.005 },
    ...inner.map((point) => ({
      what: `${point}: relative L2, worst prompt and block`,
      value: results.points[point],
      bound: 2e-3,
    })),
    {
      what: "contributions to the answer's logit: greatest difference, over the largest logit",
      value: results.contributions,
      bound: 1e-3,
    },
    ...kinds.map((kind) => ({
      what: `${kind} at ${strengths[kind].join(", ")}: total variation, worst block`,
      value: results.interventions[kind],
      bound: 0.005,
    })),
    ...kinds.map((kind) => ({
      what: `${kind}: greatest effect on the next token (total variation)`,
      value: results.moved[kind],
      bound: 0.05,
      atLeast: true,
    })),
    {
      what: "last block's row under an edit of an earlier block: relative L2",
      value: results.later,
      bound: 5e-3,
    },
    { what: "lens of the last block against the model's logits: total variation", value: lens, bound: 1e-5 },
    { what: "prompts whose logits change by a bit when captured", value: differing, bound: 0 },
  ];
}

function logits(context: Context, request: Parameters<Context["advance"]>[0]): Promise<Float32Array> {
  return context.reset().then(async () => (await context.advance({ ...request, logits: true })).logits!);
}

export default {
  title: "Forward pass of the demo model against numpy",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
