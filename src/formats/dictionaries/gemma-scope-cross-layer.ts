import { FormatError, quoted } from "../format-error.js";
import { zeroPositionsOf } from "./circuit-tracer.js";
import {
  Arrays,
  type ReadLayout,
  type Settings,
  settingsOf,
  type TensorSource,
  textOf,
} from "./dictionary.js";
import { mapped, type RowStream } from "./row-stream.js";
import { transcoderBetween } from "./transcoder.js";

const layout = "Gemma Scope 2's cross-layer transcoder";
/** The weights of a block, and its number. */
export const crossLayerFile = /^params_layer_(\d{1,3})\.safetensors$/;

/**
 * Reads one block of a cross-layer transcoder of Gemma Scope 2, `params_layer_N.safetensors`: w_enc [d, F], b_enc, threshold,
 * b_dec, and w_dec [F, L, d], what each feature writes into every block of the model; that of blocks below N is zero. JumpReLU.
 * `affine_skip_connection` [d, d] leads from the block's own input to its output. (Layout: JumpReLUMultiLayerSAE of the
 * publisher's tutorial; google/gemma-scope-2.)
 * @param config of `config.json`; undefined if there is none
 * @throws FormatError
 */
export async function readGemmaScopeCrossLayer(
  config: unknown,
  source: TensorSource,
  file: string,
): Promise<ReadLayout> {
  const layer = Number(crossLayerFile.exec(file)?.[1]);
  const settings = config === undefined ? {} : settingsOf(config, "config.json");
  const kind = textOf(settings, "type") ?? "";
  if (/crosscoder/i.test(kind)) {
    throw new FormatError(
      `The files are those of a ${quoted(kind)}, which reads several blocks; it is not supported.`,
    );
  }
  const architecture = textOf(settings, "architecture") ?? "jump_relu";
  if (!architecture.startsWith("jump_relu")) {
    throw new FormatError(
      `The architecture ${quoted(architecture)} is not supported in this layout; only jump_relu is.`,
    );
  }
  const place = transcoderBetween(
    hookOf(settings, "hf_hook_point_in", layer) ?? `model.layers.${layer}.pre_feedforward_layernorm.output`,
    hookOf(settings, "hf_hook_point_out", layer) ?? `model.layers.${layer}.post_feedforward_layernorm.output`,
  );
  if (place.origin.layer !== layer) {
    throw new FormatError(
      `According to config.json the transcoder reads block ${place.origin.layer}, but the file is that of block ${layer}.`,
    );
  }
  const arrays = new Arrays(source, layout);
  const [hidden, features] = arrays.matrix("w_enc");
  const written = arrays.shape("w_dec");
  const [, all = 0] = written;
  if (written.length !== 3 || all <= layer) {
    throw new FormatError(
      `w_dec has the shape [${written.join(", ")}]; expected [${features}, blocks, ${hidden}] with more than ${layer} blocks.`,
    );
  }
  const model = textOf(settings, "model_name");
  return {
    ...{ layout, hidden, features, blocks: all - layer, activation: "jumprelu" },
    encoder: await arrays.transposed("w_enc", features, hidden),
    encoderBias: await arrays.read("b_enc", features),
    decoder: fromBlock(arrays.stream("w_dec", features, all, hidden), { layer, all, hidden }),
    decoderBias: await arrays.read("b_dec", hidden),
    threshold: await arrays.read("threshold", features),
    // Applied as x @ affine_skip_connection: a column per output.
    ...(arrays.has("affine_skip_connection") && {
      skip: await arrays.transposed("affine_skip_connection", hidden, hidden),
    }),
    ...place,
    origin: {
      ...place.origin,
      ...(model !== undefined && { model }),
      prependBos: true,
      zeroPositions: zeroPositionsOf(model),
    },
  };
}

/** A hook in the settings: a text, possibly with a placeholder for the block, or a list of one per block. */
function hookOf(settings: Settings, name: string, layer: number): string | undefined {
  const value = settings[name];
  const own = Array.isArray(value) ? { [name]: value[layer] as unknown } : settings;
  return textOf(own, name)?.replace(/\{\w{0,20}\}/, String(layer));
}

/** What features write into blocks from their own on. @throws FormatError if they write into lower ones */
function fromBlock(
  stream: RowStream,
  { layer, all, hidden }: { layer: number; all: number; hidden: number },
): RowStream {
  const [whole, below] = [all * hidden, layer * hidden];
  return mapped(stream, (piece) => {
    const count = piece.length / whole;
    const left = new Float32Array(count * (whole - below));
    for (let row = 0; row < count; row++) {
      const lower = piece.subarray(row * whole, row * whole + below);
      const at = lower.findIndex((value) => value !== 0);
      if (at >= 0) {
        throw new FormatError(
          `Features of block ${layer} write into block ${Math.floor(at / hidden)} below it, which a cross-layer transcoder does not.`,
        );
      }
      left.set(piece.subarray(row * whole + below, (row + 1) * whole), row * (whole - below));
    }
    return left;
  });
}
