import { FormatError, told } from "../format-error.js";
import { Arrays, checkedK, type Dictionary, scaleRows, type TensorSource } from "./dictionary.js";

/**
 * Reads an autoencoder that the Lab trained: `sae-layer-<n>.safetensors` and its `sae-normalization-<n>.npz`. It works
 * on (x - mean) / scale; both are folded in.
 * @throws FormatError
 */
export async function readLabSae(
  metadata: Readonly<Record<string, string>>,
  source: TensorSource,
  normalisation: TensorSource | undefined,
): Promise<Dictionary> {
  if (normalisation === undefined) {
    throw new FormatError(
      "The Lab's autoencoder works on scaled activations: its sae-normalization-<layer>.npz must lie beside it.",
    );
  }
  const arrays = new Arrays(source, "tapline's Lab");
  const [features, hidden] = arrays.matrix("encoder.weight");
  const scaling = new Arrays(normalisation, "the Lab's normalisation");
  const mean = await scaling.read("mean", hidden);
  const scale = await scaling.scalar("scale");
  if (!(scale > 0)) throw new FormatError(`The scale of the Lab's normalisation is ${scale}.`);
  const encoder = await arrays.read("encoder.weight", features, hidden);
  const encoderBias = await arrays.read("encoder.bias", features);
  const decoder = await arrays.transposed("decoder.weight", features, hidden);
  const decoderBias = await arrays.read("decoder.bias", hidden);
  scaleRows(encoder, new Float64Array(features).fill(1 / scale));
  for (let feature = 0; feature < features; feature++) {
    let sum = 0;
    for (let i = 0; i < hidden; i++) sum += (encoder[feature * hidden + i] as number) * (mean[i] as number);
    encoderBias[feature] = (encoderBias[feature] as number) - sum;
  }
  scaleRows(decoder, new Float64Array(features).fill(scale));
  const layer = Number(metadata.layer);
  return {
    layout: "tapline's Lab",
    ...(await activationOf(arrays, metadata, features)),
    hidden,
    features,
    encoder,
    encoderBias,
    decoder,
    decoderBias: decoderBias.map((value, i) => value * scale + (mean[i] as number)),
    rowScaling: "none",
    subtractBias: false,
    origin: {
      ...(metadata.layer !== undefined && Number.isInteger(layer) && { layer }),
      point: metadata.point ?? "block_out",
      ...(metadata.model !== undefined && { model: metadata.model }),
    },
    notes: [],
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
        `The architecture ${told(architecture)} of the Lab's file is not read; relu, topk, batchtopk and jumprelu are.`,
      );
  }
}
