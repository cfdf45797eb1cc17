import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../contracts/user-error.js";
import { normalNumbers } from "../findings/random.js";
import { dictionaryFiles, readDictionary } from "../formats/dictionaries/index.js";
import { encodeSafetensors } from "../formats/safetensors.js";
import { asUserError, type FromHub, filesAt } from "./layout-files.js";

/** Hooks of the points that a transcoder may read, in circuit-tracer's names. */
const inputHooks: Readonly<Record<string, string>> = { ffn_in: "mlp.hook_in", mid: "hook_resid_mid" };

/**
 * Writes a transcoder like another one whose features are random, in circuit-tracer's layout: encoder and decoder rows point in
 * random directions and have the other's norms, and the k strongest features are active. Its bias and skip term are the other's,
 * so that they differ in their features only.
 * @param place of the other one
 * @param folder an existing folder; gets `config.yaml` and `layer_N.safetensors`
 * @returns the path of the weights
 * @throws UserError if the other one is not a transcoder of one block that records the block
 */
export async function writeRandomLike(
  place: string,
  folder: string,
  { k, seed }: { k: number; seed: number },
  fromHub?: FromHub,
): Promise<string> {
  const { files } = await filesAt(place, dictionaryFiles, fromHub);
  const dictionary = await readDictionary(files).catch(asUserError);
  const { features, hidden, encoder, decoder, decoderBias, skip, origin, transcoder, rowScaling } =
    dictionary;
  const { layer, point = "" } = origin;
  const hook = inputHooks[point];
  if (!transcoder || layer === undefined || !(decoder instanceof Float32Array) || hook === undefined) {
    throw new UserError(`${place} is not a transcoder of one block that records the block and the point.`);
  }
  if (k > features) throw new UserError(`k is ${k}; ${place} has ${features} features.`);
  const arrays = {
    W_enc: { shape: [features, hidden], data: redrawn(encoder, features, seed + 2 * layer) },
    W_dec: { shape: [features, hidden], data: redrawn(decoder, features, seed + 2 * layer + 1) },
    b_enc: { shape: [features], data: new Float32Array(features) },
    b_dec: { shape: [hidden], data: decoderBias },
    ...(skip && { W_skip: { shape: [hidden, hidden], data: skip } }),
  };
  const input = rowScaling === "constant_norm" ? "ln2.hook_normalized" : hook;
  const config = [
    "model_kind: transcoder_set",
    ...[`feature_input_hook: "${input}"`, 'feature_output_hook: "hook_mlp_out"'],
    ...["activation: topk", `k: ${k}`, ""],
  ];
  await writeFile(join(folder, "config.yaml"), config.join("\n"));
  const path = join(folder, `layer_${layer}.safetensors`);
  await writeFile(path, encodeSafetensors(arrays));
  return path;
}

/** Rows of the same norms in random directions. @param rows [count, width] */
function redrawn(rows: Float32Array, count: number, seed: number): Float32Array {
  const width = rows.length / count;
  const out = Float32Array.from({ length: rows.length }, normalNumbers(seed));
  for (let row = 0; row < count; row++) {
    const [from, end] = [row * width, (row + 1) * width];
    const scale = normOf(rows, from, end) / normOf(out, from, end);
    for (let i = from; i < end; i++) out[i] = (out[i] as number) * scale;
  }
  return out;
}

function normOf(values: Float32Array, from: number, end: number): number {
  let sum = 0;
  for (let i = from; i < end; i++) sum += (values[i] as number) ** 2;
  return Math.sqrt(sum);
}
