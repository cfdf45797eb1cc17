import { FormatError, quoted } from "../format-error.js";
import { type Dictionary, type DictionaryOrigin, placeOfHook } from "./dictionary.js";

const ofBlock = /^blocks\.(\d{1,3})\.(.{1,40})$/;
const ofModule = /^(?:model\.|language_model\.)*layers\.(\d{1,3})\.(.{1,40}?)(?:\.output)?$/;

/**
 * The point and row scaling of each input hook. `ln2.hook_normalized` is before the norm's weight: the stream divided by its
 * root mean square, in every model. `hook_mlp_in` is the stream itself.
 */
const inputs: Readonly<Record<string, Pick<Dictionary, "rowScaling"> & { point: string }>> = {
  "mlp.hook_in": { point: "ffn_in", rowScaling: "none" },
  "ln2.hook_out": { point: "ffn_in", rowScaling: "none" },
  "ln2.hook_normalized": { point: "mid", rowScaling: "constant_norm" },
  hook_mlp_in: { point: "mid", rowScaling: "none" },
  hook_resid_mid: { point: "mid", rowScaling: "none" },
  pre_feedforward_layernorm: { point: "ffn_in", rowScaling: "none" },
};
/** MLP outputs as they are added to the stream, except that `mlp.hook_out` is before the norm that some models apply to them. */
const outputs = new Set(["hook_mlp_out", "mlp.hook_out", "post_feedforward_layernorm"]);

function split(hook: string): [layer: number | undefined, name: string] {
  const [, layer, name] = ofBlock.exec(hook) ?? ofModule.exec(hook) ?? [];
  return layer === undefined ? [undefined, hook] : [Number(layer), name as string];
}

/**
 * The properties of a transcoder that reads one hook and predicts another. Both hooks may lack the block, if it is not known.
 * @throws FormatError for anything other than a block's MLP input and its output
 */
export function transcoderBetween(
  from: string,
  to: string,
): Pick<Dictionary, "rowScaling"> & { transcoder: true; origin: DictionaryOrigin } {
  const [layer, read] = split(from);
  const [other, written] = split(to);
  const input = Object.hasOwn(inputs, read) ? inputs[read] : undefined;
  if (input === undefined) {
    throw new FormatError(
      `The transcoder reads ${quoted(from)}; supported are MLP inputs: blocks.N.mlp.hook_in, ln2.hook_out, ` +
        "ln2.hook_normalized and hook_mlp_in, and layers.N.pre_feedforward_layernorm.",
    );
  }
  if (!outputs.has(written) || layer !== other) {
    throw new FormatError(
      `The transcoder reads ${quoted(from)} and predicts ${quoted(to)}; only the MLP output of the same block is supported.`,
    );
  }
  return {
    transcoder: true,
    rowScaling: input.rowScaling,
    origin: {
      ...(layer !== undefined && { layer }),
      ...{ point: input.point, hook: from, writes: "ffn_out", hookOut: to },
    },
  };
}

/**
 * The properties of a dictionary that reads one hook and reconstructs it, or predicts another.
 * @throws FormatError for unsupported hooks
 */
export function dictionaryBetween(
  from: string,
  to: string,
): Partial<Pick<Dictionary, "rowScaling" | "transcoder">> & { origin: DictionaryOrigin } {
  return from === to ? { origin: { hook: from, ...placeOfHook(from) } } : transcoderBetween(from, to);
}
