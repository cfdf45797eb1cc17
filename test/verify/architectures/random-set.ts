import { join } from "node:path";
import { Dictionaries } from "../../../src/library/index.js";
import { type Context, encodeRows, type GraphTranscoderUse } from "../../../src/native/index.js";
import { randomTranscoder, writeSetConfig, writeTranscoder } from "../../support/random-transcoders.js";

/**
 * Random transcoders of all blocks, every second one with a skip term, and their active features in a text after its first
 * token; undefined where blocks lack the points.
 * @param folder for the files, which the graph reads
 */
export async function randomSet(
  context: Context,
  tokens: Int32Array,
  folder: string,
): Promise<GraphTranscoderUse[] | undefined> {
  const { ffn_in: input, ffn_out: output } = context.points;
  const point = input.supported ? "ffn_in" : "mid";
  if (!context.points[point].supported || !output.supported) return undefined;
  writeSetConfig(folder, { input: point === "ffn_in" ? "mlp.hook_in" : "hook_resid_mid" });
  const dictionaries = new Dictionaries(join(folder, "home"));
  const { layers, widths } = context.points[point];
  const captures = layers.map((layer) => ({ layer, point }) as const);
  const { captures: rows } = await context.forward({ sequences: [{ tokens }], captures });
  const transcoders: GraphTranscoderUse[] = [];
  for (const [i, layer] of layers.entries()) {
    const width = widths[i] as number;
    const one = randomTranscoder(layer, { width, features: 40, skip: layer % 2 === 0, jump: false });
    writeTranscoder(folder, layer, one);
    await dictionaries.add(`set-${layer}`, join(folder, `layer_${layer}.safetensors`));
    const { places } = await dictionaries.open(`set-${layer}`);
    const states = (rows[i]!.values as Float32Array).subarray(width);
    const { pointers, indices } = await encodeRows(places, states);
    const at = Int32Array.from(indices);
    for (let row = 0; row + 1 < pointers.length; row++) at.fill(1 + row, pointers[row], pointers[row + 1]);
    transcoders.push({ layer, point, dictionary: places, tokens: at, features: indices });
  }
  return transcoders;
}
