/**
 * The values that `tapline verify` compares with, computed by llama.cpp's own programs: `npm run verify:machine` makes them
 * again and compares them with those of models/verify.
 *   --record   writes them there instead
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildTools } from "../../scripts/build/tools.js";
import { encodeControlVector } from "../../src/formats/control-vector.js";
import { GgufHeaderReader, ggufTypes, sourceOf } from "../../src/formats/gguf.js";
import { Model } from "../../src/native/index.js";
import {
  type Expected,
  expectedFolder,
  type Printed,
  type PrintedPass,
  quantisedForms,
  readExpected,
} from "../../src/verify/expected.js";
import { randomRow, writeTinyModel } from "../../src/verify/tiny-model.js";
import { type EvalCallbackRun, type PrintedTensor, runEvalCallback } from "./architectures/eval-callback.js";
import { deepen, writeModels } from "./architectures/models.js";

/** Ten that differ: attention, norms, positions, experts, a recurrent state. */
const models = [
  "deepseek2-moe",
  "gemma3-dense",
  "gpt2-dense",
  "gptneox-dense",
  "lfm2-dense",
  "llama-dense",
  "olmo2-dense",
  "phi3-dense",
  "qwen3-dense",
  "qwen3moe-moe",
];

/** Those whose quantised forms are computed. */
const quantised = ["llama-dense", "qwen3moe-moe"];

const prompts = {
  plain: "The quick brown fox jumps over the lazy dog",
  donor: "A slow green bird swims below an eager cats",
};

const { values } = parseArgs({ options: { record: { type: "boolean", default: false } } });
const tools = await buildTools([
  "eval-callback-flushed",
  "llama-quantize",
  "test-llama-archs",
  "test-llama-archs-deep",
]);
const folder = mkdtempSync(join(tmpdir(), "tapline-machine-"));
try {
  await writeModels(tools["test-llama-archs"]!, folder);
  await deepen(tools["test-llama-archs-deep"]!, folder);
  const into = values.record ? expectedFolder : join(folder, "expected");
  mkdirSync(into, { recursive: true });
  let different = 0;
  for (const name of models) {
    const model = name.replace(/-[^-]*$/, "");
    const head = join(into, `${model}.head`);
    writeFileSync(head, await headOf(join(folder, `${name}.gguf`)));
    const expected = await expectedOf(model, head, quantised.includes(name));
    if (values.record) {
      writeFileSync(join(into, `${model}.json`), `${JSON.stringify(expected)}\n`);
      console.log(`recorded ${model}`);
      continue;
    }
    const recorded = readExpected(model);
    const same =
      JSON.stringify(rounded(recorded)) === JSON.stringify(rounded(expected)) &&
      readFileSync(head).equals(readFileSync(join(expectedFolder, `${model}.head`)));
    console.log(`${same ? "same   " : "DIFFERS"} ${model}`);
    different += same ? 0 : 1;
  }
  if (different > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Three digits: kernels for other processors add up in another order. */
function rounded(expected: Expected): unknown {
  return JSON.parse(JSON.stringify(expected), (_, value) =>
    typeof value === "number" ? Number(value.toPrecision(3)) : value,
  );
}

/**
 * A model's file up to its weights, which it says to be all in F32, as they are: K and V are then kept in F32, and numbers
 * are exact to seven digits.
 */
async function headOf(path: string): Promise<Buffer> {
  const bytes = withFileType(readFileSync(path));
  const reader = await GgufHeaderReader.open(sourceOf(bytes));
  for await (const _ of reader.pairs());
  for await (const _ of reader.tensors());
  return bytes.subarray(0, reader.position);
}

/** Adds `general.file_type`, which llama.cpp's test program leaves out, as the first pair. */
function withFileType(file: Buffer): Buffer {
  const [magicAndCounts, pairsAt] = [24, 16];
  const key = Buffer.from("general.file_type");
  const pair = Buffer.alloc(8 + key.length + 8);
  pair.writeBigUInt64LE(BigInt(key.length));
  key.copy(pair, 8);
  pair.writeUInt32LE(ggufTypes.uint32, 8 + key.length);
  pair.writeUInt32LE(0, 8 + key.length + 4);
  const start = Buffer.from(file.subarray(0, magicAndCounts));
  start.writeBigUInt64LE(start.readBigUInt64LE(pairsAt) + 1n, pairsAt);
  return Buffer.concat([start, pair, file.subarray(magicAndCounts)]);
}

async function expectedOf(model: string, head: string, withForms: boolean): Promise<Expected> {
  const path = join(folder, "model.gguf");
  const sha256 = await writeTinyModel(head, path);
  const opened = await Model.open(path, { gpuLayers: 0, devices: ["none"] });
  const context = await opened.createContext({ nCtx: 64, threads: 1 });
  const { nLayer, nEmbd, nVocab } = opened.info;
  const names = [...context.blockOutputs.tensorNames];
  await opened.close();
  const layer = Math.max(1, (nLayer >> 1) - 1);
  const vector = join(folder, "vector.gguf");
  writeFileSync(
    vector,
    encodeControlVector(new Map([[layer, randomRow("control vector", nEmbd, 2)]]), model),
  );
  const run = (file: string, prompt: string, flags: string[] = []) =>
    runEvalCallback(tools["eval-callback-flushed"]!, file, prompt, true, flags);
  const pass = ({ tensors }: EvalCallbackRun) => passOf(tensors, names, nVocab);
  const [plain, donor] = [await run(path, prompts.plain), await run(path, prompts.donor)];
  if (plain.tokens.length !== donor.tokens.length) {
    throw new Error(`${model}: ${plain.tokens.length} and ${donor.tokens.length} tokens.`);
  }
  const flags = ["--control-vector", vector, "--control-vector-layer-range", `${layer}`, `${layer}`];
  const steered = await run(path, prompts.plain, flags);
  const forms: Expected["forms"] = {};
  for (const form of withForms ? quantisedForms : []) {
    const [small, whole] = [join(folder, "small.gguf"), join(folder, "whole.gguf")];
    const quantise = (from: string, to: string, type: string) =>
      execFileSync(tools["llama-quantize"]!, ["--allow-requantize", from, to, type], { stdio: "pipe" });
    quantise(path, small, form);
    quantise(small, whole, "F32");
    forms[form] = pass(await run(whole, prompts.plain));
  }
  return {
    ...{ model, sha256, tokens: plain.tokens, plain: pass(plain) },
    donor: { tokens: donor.tokens, pass: pass(donor) },
    steered: { layer, pass: pass(steered) },
    forms,
  };
}

function passOf(tensors: PrintedTensor[], names: string[], nVocab: number): PrintedPass {
  const named = (name: string) => {
    const found = tensors.filter((tensor) => tensor.name === name);
    if (found.length !== 1) throw new Error(`${name} is printed ${found.length} times.`);
    return printedOf(found[0]!);
  };
  const logits = named("result_output");
  if (logits.width !== nVocab) throw new Error(`result_output has rows of ${logits.width}.`);
  return { blocks: names.map(named), logits };
}

function printedOf({ shape, values: printed, sum }: PrintedTensor): Printed {
  return {
    ...{ rows: shape[1] * shape[2] * shape[3], width: shape[0] },
    values: printed.map(({ row, column, value }) => [row, column, value]),
    sum,
  };
}
