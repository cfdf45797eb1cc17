/**
 * Quantises one model in several ways, and checks what is computed on those weights against the same weights written
 * back as F32; prints a ModelReport. llama-eval-callback cannot decide this: it computes with the same kernels.
 *   node --import tsx test/verify/architectures/check-quantised.ts MODEL LLAMA_QUANTIZE
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Engine } from "../../../src/native/engine.js";
import { type Context, Model } from "../../../src/native/index.js";
import { randomSource, relativeDistance } from "./arithmetic.js";
import { settings } from "./eval-callback.js";
import { type Check, type ModelReport, quantisations, tolerances } from "./report.js";

const run = promisify(execFile);

/** So many rows that repacked products take several at once, and a rest that they take one by one. */
const nTokens = 14;

interface Outputs {
  architecture: string;
  blocks: Float32Array[];
  logits: Float32Array;
  /** Of a block, how far rows of packed sequences are from those of each alone, at most. */
  packed: number;
}

async function outputsOf(model: Model, context: Context): Promise<Outputs> {
  const { nLayer, nEmbd, nVocab } = model.info;
  const random = randomSource(13);
  const ids = (length: number) => Int32Array.from({ length }, () => Math.floor(random() * nVocab));
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const pass = async (tokens: Int32Array) => {
    await context.reset();
    const { layers: captured, logits } = await context.advance({ tokens, layers, logits: true });
    return { blocks: captured.map(({ states }) => states!.data), logits: logits! };
  };
  const whole = await pass(ids(nTokens));
  const sequences = [7, 3, 12, 1].map(ids);
  const together = await context.features({ sequences, layers });
  let packed = 0;
  for (const [i, tokens] of sequences.entries()) {
    const { blocks } = await pass(tokens);
    for (const layer of layers) {
      const row = together.get(layer)!.data.subarray(i * nEmbd, (i + 1) * nEmbd);
      packed = Math.max(packed, relativeDistance(row, blocks[layer]!.subarray(-nEmbd)));
    }
  }
  return { ...whole, packed, architecture: model.info.architecture };
}

/** @returns the sentence of a refusal instead, where the file or its architecture is refused */
async function compute(path: string): Promise<Outputs | string> {
  let model: Model;
  try {
    model = await Model.open(path, { gpuLayers: 0 });
  } catch (error) {
    return (error as Error).message;
  }
  try {
    const context = await model.createContext({ ...settings, maxSequences: 8 });
    const { supported, reason } = context.blockOutputs;
    return supported ? await outputsOf(model, context) : reason;
  } finally {
    await model.close();
  }
}

function compare(type: string, found: Outputs, expected: Outputs): Check {
  const distances = found.blocks.map((states, layer) => relativeDistance(states, expected.blocks[layer]!));
  const block = Math.max(...distances);
  const logits = relativeDistance(found.logits, expected.logits);
  const cycles = found.architecture === "hrm_text";
  const bound = cycles ? tolerances.quantisedCycles : tolerances.quantised;
  const problems = distances.flatMap((distance, layer) =>
    distance <= bound ? [] : [`block ${layer} is off by ${distance}`],
  );
  if (!(found.packed <= (cycles ? bound : tolerances.quantisedPacked)))
    problems.push(`packed rows are off by ${found.packed}`);
  return {
    name: type,
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { block, logits, packed: found.packed },
  };
}

async function checkQuantised(path: string, tool: string): Promise<ModelReport> {
  const folder = await mkdtemp(join(tmpdir(), "tapline-quantised-"));
  const checks: Check[] = [];
  try {
    const plain = await compute(path);
    const refused = typeof plain === "string" ? plain : "";
    for (const type of refused === "" ? quantisations : []) {
      const [quantised, dequantised] = [join(folder, `${type}.gguf`), join(folder, `${type}-f32.gguf`)];
      await run(tool, ["--pure", path, quantised, type]).catch(() => run(tool, [path, quantised, type]));
      await run(tool, ["--allow-requantize", quantised, dequantised, "F32"]);
      const found = await compute(quantised);
      if (typeof found === "string") {
        checks.push(refusal(type, found), await checkServing(type, quantised, found));
        continue;
      }
      if (found.architecture === "minimax-01") checks.push(await checkServing(type, quantised, undefined));
      const expected = await compute(dequantised);
      if (typeof expected === "string") throw new Error(expected);
      checks.push(compare(type, found, expected));
    }
    if (refused !== "") checks.push(refusal("all", refused));
    return { architecture: "", nLayer: 0, tensorNames: [], sidePath: "", lens: "", refused, checks };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Whether a server takes the file: models refused when opened are refused when served, with the same
 * sentence, and quantised weights of minimax-01 are served to one request at a time.
 */
async function checkServing(type: string, path: string, refused: string | undefined): Promise<Check> {
  const serving = (parallel: number) =>
    Engine.open({ path, id: "x", parallel, ctxSize: 256 * parallel, threads: 1 }).then(
      async (engine) => {
        const { status } = await engine.request("native-completion", { prompt: [1, 2, 3], n_predict: 2 });
        await engine.close();
        return status === 200 ? "served" : `answered ${status}`;
      },
      (error: Error) => error.message,
    );
  const wanted = refused ?? "served";
  const [one, two] = [await serving(1), await serving(2)];
  const alone =
    /is served with 2 slots, .* several texts of a quantised minimax-01 at the same time; .* --parallel 1\.$/;
  const ok = one === wanted && (refused === undefined ? alone.test(two) : two === wanted);
  return { name: `${type} served`, ok, detail: ok ? "" : `one slot: ${one}; two slots: ${two}` };
}

function refusal(type: string, reason: string): Check {
  const ok = /^The architecture '[^']+' .{20,}\.$|multiplies '[^']+attn_k_b.*wrong rows.*\.$/.test(reason);
  return { name: type, ok, detail: ok ? "" : `refused as "${reason}"`, note: reason };
}

const [path = "", tool = ""] = process.argv.slice(2);
checkQuantised(path, tool).then(
  (report) => process.stdout.write(`${JSON.stringify(report)}\n`),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
