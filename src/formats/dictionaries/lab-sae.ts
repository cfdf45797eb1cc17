import { FormatError, quoted } from "../format-error.js";
import {
  Arrays,
  checkedK,
  type Dictionary,
  linearMaps,
  type ReadLayout,
  scaleRows,
  type TensorSource,
} from "./dictionary.js";

/**
 * Reads an autoencoder or transcoder that the Lab trained: `sae-layer-<n>.safetensors` and its
 * `sae-normalization-<n>.npz`. It works on (x - mean) / scale, and a transcoder predicts (y - target_mean) / target_scale;
 * both are folded in.
 * @throws FormatError
 */
export async function readLabSae(
  metadata: Readonly<Record<string, string>>,
  source: TensorSource,
  normalisation: TensorSource | undefined,
): Promise<ReadLayout> {
  if (normalisation === undefined) {
    throw new FormatError(
      "The Lab's autoencoder uses scaled activations: its sae-normalization-<layer>.npz must be in the same folder.",
    );
  }
  const arrays = new Arrays(source, "tapline's Lab");
  const weights = await arrays.weights(linearMaps);
  const { features, hidden, encoder, encoderBias, decoder, decoderBias } = weights;
  const scaling = new Arrays(normalisation, "the Lab's normalisation");
  const mean = await scaling.read("mean", hidden);
  const scale = await scaling.scalar("scale");
  const { target } = metadata;
  const targetMean = target === undefined ? mean : await scaling.read("target_mean", hidden);
  const targetScale = target === undefined ? scale : await scaling.scalar("target_scale");
  for (const each of [scale, targetScale])
    if (!(each > 0)) throw new FormatError(`The scale of the Lab's normalisation is ${each}.`);
  scaleRows(encoder, new Float64Array(features).fill(1 / scale));
  for (let feature = 0; feature < features; feature++) {
    let sum = 0;
    for (let i = 0; i < hidden; i++) sum += (encoder[feature * hidden + i] as number) * (mean[i] as number);
    encoderBias[feature] = (encoderBias[feature] as number) - sum;
  }
  scaleRows(decoder, new Float64Array(features).fill(targetScale));
  const skip = arrays.has("skip.weight") ? await arrays.read("skip.weight", hidden, hidden) : undefined;
  if (skip !== undefined && target === undefined)
    throw new FormatError("The file has a skip term, but does not record what it predicts.");
  if (skip !== undefined) scaleRows(skip, new Float64Array(hidden).fill(targetScale / scale));
  const layer = Number(metadata.layer);
  const first = Number(metadata.first_position);
  return {
    layout: "tapline's Lab",
    ...(await activationOf(arrays, metadata, features)),
    ...weights,
    decoderBias: decoderBias.map((value, i) => {
      let sum = value * targetScale + (targetMean[i] as number);
      if (skip !== undefined)
        for (let j = 0; j < hidden; j++) sum -= (skip[i * hidden + j] as number) * (mean[j] as number);
      return sum;
    }),
    ...(target !== undefined && { transcoder: true }),
    ...(skip && { skip }),
    origin: {
      ...(metadata.layer !== undefined && Number.isInteger(layer) && { layer }),
      point: metadata.point ?? "block_out",
      ...(target !== undefined && { writes: target }),
      ...(metadata.model !== undefined && { model: metadata.model }),
      ...(Number.isInteger(first) && first > 0 && { zeroPositions: first }),
    },
  };
}

async function activationOf(
  arrays: Arrays,
  { architecture = "relu", k }: Readonly<Record<string, string>>,
  features: number,
): Promise<Pick<Dictionary, "activation" | "k" | "threshold">> {
  switch (architecture) {
    case "relu":
      return { activation: "relu", k: 0 };
    case "topk":
      return { activation: "topk", k: checkedK(Number(k), features) };
    case "batchtopk":
    case "jumprelu":
      return { activation: "jumprelu", k: 0, threshold: await arrays.read("threshold", features) };
    default:
      throw new FormatError(
        `The architecture ${quoted(architecture)} of the Lab's file is not supported; relu, topk, batchtopk and jumprelu are.`,
      );
  }
}
