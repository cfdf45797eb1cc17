import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureSource } from "../../../scripts/build/source.js";
import { buildTools } from "../../../scripts/build/tools.js";
import { pythonWith } from "../python.js";
import { locked, realFolder, runProgram, whole } from "./cache.js";
import { environment } from "./environments.js";
import { fetchSource } from "./fetch.js";
import { gemma3, miniLm, smolLm2 } from "./sources.js";

/** The real chat model in all its forms; the dequantised Q4_1 weights are what all of them describe. */
export interface SmolLm2 {
  /** As its package carries it. */
  q4_1: string;
  /** The same weights, dequantised by llama-quantize. */
  f32: string;
  f16: string;
  q8_0: string;
  /** Blocks of 256 do not divide rows of 576, so llama-quantize takes Q5_0, Q5_1 and Q8_0 for most of them. */
  q4_k_m: string;
  /** For transformers: safetensors in F32, configuration, tokenizer. */
  folder: string;
}

/** SmolLM2-135M-Instruct; missing files are downloaded and built, about 1.2 GB. */
export function smolLm2Model(): Promise<SmolLm2> {
  return locked(async () => {
    const q4_1 = await fetchSource(smolLm2);
    const at = (name: string) => join(realFolder, smolLm2.name, name);
    const f32 = at("SmolLM2-135M-Instruct.F32.gguf");
    await quantize(q4_1, f32, "F32");
    const made = { f16: "F16", q8_0: "Q8_0", q4_k_m: "Q4_K_M" } as const;
    const paths = { f16: "", q8_0: "", q4_k_m: "" };
    for (const [key, type] of Object.entries(made)) {
      const path = at(`SmolLM2-135M-Instruct.${type}.gguf`);
      await quantize(f32, path, type);
      paths[key as keyof typeof made] = path;
    }
    return { q4_1, f32, ...paths, folder: await huggingFaceFolder(smolLm2.name, f32, q4_1) };
  });
}

/** The second real model, of another family: norms after both halves of a block, GELU, sliding windows, a long BOS. */
export interface Gemma3 {
  /** As its packages carry it. Its rows of 640 are in Q5_0 and Q8_0, those of 2048 in Q4_K and Q6_K. */
  q4_k_m: string;
  /** The same weights, dequantised by llama-quantize. */
  f32: string;
  /** For transformers: safetensors in F32, configuration, tokenizer. */
  folder: string;
}

/** Gemma 3 270M; missing files are downloaded and built, about 2.5 GB. */
export function gemma3Model(): Promise<Gemma3> {
  return locked(async () => {
    const q4_k_m = await fetchSource(gemma3);
    const f32 = join(realFolder, gemma3.name, "gemma-3-270m.F32.gguf");
    await quantize(q4_k_m, f32, "F32");
    return { q4_k_m, f32, folder: await huggingFaceFolder(gemma3.name, f32, q4_k_m) };
  });
}

/** A model's folder for transformers, from its weights in F32 and as they came. */
async function huggingFaceFolder(name: string, f32: string, original: string): Promise<string> {
  const folder = join(realFolder, name, "hugging-face");
  if (await exists(folder)) return folder;
  const python = pythonWith("numpy") ?? (await environment("transformers"));
  const script = fileURLToPath(new URL("./hugging_face.py", import.meta.url));
  await whole(folder, (part) => runProgram(python, ["-B", script, f32, original, part]));
  return folder;
}

/** The real encoder: F32 as GGUF by llama.cpp's own converter, and the folder that its package carries. */
export function miniLmModel(): Promise<{ f32: string; folder: string }> {
  return locked(async () => {
    const folder = join(await fetchSource(miniLm), "..");
    const f32 = join(realFolder, miniLm.name, "all-MiniLM-L6-v2.F32.gguf");
    if (!(await exists(f32))) {
      const python = await environment("transformers");
      const { dir } = await ensureSource({});
      const converter = join(dir, "convert_hf_to_gguf.py");
      const options = ["--outtype", "f32", "--outfile"];
      await whole(f32, (part) => runProgram(python, ["-B", converter, folder, ...options, part]));
    }
    return { f32, folder };
  });
}

async function quantize(from: string, to: string, type: string): Promise<void> {
  if (await exists(to)) return;
  const { "llama-quantize": program } = await buildTools(["llama-quantize"]);
  await whole(to, (part) => runProgram(program as string, ["--allow-requantize", from, part, type]));
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
