import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundledData } from "../../../src/card/data/index.js";
import { divergence, logSoftmax } from "../../../src/card/measure.js";
import { Lab } from "../../../src/client/index.js";
import { readWeightPlaces } from "../../../src/models/gguf-header.js";
import { Model } from "../../../src/native/index.js";
import type { Quants } from "../../../src/quants/result.js";
import { runQuants } from "../../../src/quants/run.js";
import { quantsMarkdown } from "../../../src/quants/tables.js";
import { openHarness } from "../../lab/harness.js";
import { runProgram } from "../../support/real/cache.js";
import { environment } from "../../support/real/environments.js";
import type { SmolLm2 } from "../../support/real/models.js";
import type { Figure } from "../numerics/check.js";

const script = fileURLToPath(new URL("./nf4.py", import.meta.url));

/** The matrices that transformers has as linear layers; bitsandbytes leaves the rest in 16 bits. */
const linear = /^blk\.\d+\.(attn_(q|k|v|output)|ffn_(gate|up|down))\.weight$/;
/** Per block of 64 weights: a constant in 32 bits; or in 8 bits, with one in 32 bits per 256 constants. */
const bitsPerWeight = { nf4: 4 + 32 / 64, "nf4, double": 4 + 8 / 64 + 32 / (64 * 256) };
const layers = [0, 4, 9, 14, 19, 24, 29];
const text =
  "The committee met on Tuesday to discuss the budget for the coming year, and the members agreed to repair the old bridge.";

/**
 * nf4 as nnsight's `dtype="nf4"` loads it (bitsandbytes, constants per 64 weights, linear layers alone), next to K-quants of
 * about the same size, measured by `tapline quants` on the same texts. bitsandbytes quantizes on this CPU; the dequantized
 * weights are written into copies of the F32 file, and bitsandbytes' own layers give the same logits.
 */
export async function nf4(model: SmolLm2, folder: string): Promise<Figure[]> {
  const { weights } = await readWeightPlaces([model.f32]);
  const places = [...weights]
    .filter(([name]) => linear.test(name))
    .map(([name, { offset, shape }]) => ({ name, offset, shape: shape.toReversed() }));
  const files = { nf4: join(folder, "nf4.gguf"), double: join(folder, "nf4-double.gguf") };
  const tokens = await tokensOf(model.f32);
  const logits = join(folder, "logits.f32");
  const request = { model: model.f32, places, folder: model.folder, tokens, ...files, logits };
  await writeFile(join(folder, "nf4.json"), JSON.stringify(request));
  const python = await environment("bitsandbytes");
  const said = await runProgram(python, ["-B", script, join(folder, "nf4.json")], { HF_HUB_OFFLINE: "1" });
  const found = JSON.parse(said.trim().split("\n").at(-1) as string) as Found;
  const apart = await distances([files.nf4, model.f32], tokens, logits);
  const quants = await measureForms(model.f32, Object.values(files), folder);
  const [single, double, q4] = quants.forms as [Form, Form, Form, Form];
  describe(quants, found);
  return [
    { what: "nf4: weights that NumPy rounds differently, share", value: found.different, bound: 1e-6 },
    { what: "nf4: linear layers in bitsandbytes", value: found.replaced, bound: 210, atLeast: true },
    { what: "nf4: logits of bitsandbytes' own layers, KL per token", value: apart[0] as number, bound: 1e-6 },
    {
      what: "nf4: the same against F32 (the check can fail)",
      value: apart[1] as number,
      bound: 1e-3,
      atLeast: true,
    },
    { what: "nf4: KL, nats per token", value: single.divergence.value, bound: 0.2 },
    { what: "nf4, double: KL, nats per token", value: double.divergence.value, bound: 0.2 },
    { what: "Q4_K_M: KL, nats per token", value: q4.divergence.value, bound: 0.2 },
  ];
}

type Form = Quants["forms"][0];

interface Found {
  different: number;
  weights: number;
  replaced: number;
  versions: Record<string, string>;
}

async function tokensOf(path: string): Promise<number[]> {
  const model = await Model.open(path);
  const tokens = [...(await model.tokenize(text))];
  await model.close();
  return tokens;
}

/** Mean KL per token from the logits in a file to those that tapline computes with models. */
async function distances(
  models: readonly string[],
  tokens: readonly number[],
  logits: string,
): Promise<number[]> {
  const bytes = await readFile(logits);
  const theirs = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  const width = theirs.length / tokens.length;
  const of = async (file: string) => {
    const model = await Model.open(file);
    const context = await model.createContext({ nCtx: tokens.length, nBatch: tokens.length });
    const { logits: own } = await context.forward({
      sequences: [{ tokens: Int32Array.from(tokens) }],
      logits: "all",
    });
    const rows = tokens.map((_, row) => {
      const part = (values: Float32Array) => logSoftmax(values.subarray(row * width, (row + 1) * width));
      return divergence(part(theirs), part(own!.data as Float32Array));
    });
    await model.close();
    return rows.reduce((sum, value) => sum + value, 0) / rows.length;
  };
  const found: number[] = [];
  for (const path of models) found.push(await of(path));
  return found;
}

async function measureForms(reference: string, forms: readonly string[], folder: string): Promise<Quants> {
  const lab = await openHarness();
  try {
    const { quants } = await runQuants(
      {
        ...{ reference, forms, make: ["Q4_K_M", "Q5_K_M"], round: [], keepForms: false, mostTokens: 256 },
        ...{ texts: bundledData.texts, layers, examples: [], prompts: [], seed: 0 },
        ...{ rounds: 2, promptTokens: 16, generatedTokens: 4 },
      },
      {
        ...{ lab: new Lab(lab.lab.url), folder: join(folder, "work"), signal: new AbortController().signal },
        onProgress: () => {},
      },
    );
    return quants;
  } finally {
    await lab.close();
  }
}

/** The table of docs/quants.md, with the sizes that nf4 takes when it is stored as such. */
function describe(quants: Quants, { weights, versions }: Found): void {
  console.log(`  ${Object.entries(versions).join(" ").replaceAll(",", " ")}`);
  const others = quants.reference.types.reduce((sum, each) => sum + each.weights, 0) - weights;
  for (const [name, bits] of Object.entries(bitsPerWeight)) {
    const bytes = (weights * bits + others * 16) / 8;
    console.log(
      `  ${name}: ${(bytes / 1e6).toFixed(1)} MB of weights, ${((8 * bytes) / (weights + others)).toFixed(2)} bits`,
    );
  }
  console.log(quantsMarkdown(quants).replace(/^/gm, "  "));
}
