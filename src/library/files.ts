import { type VectorFormat, vectorFormats } from "../contracts/live-limits.js";
import { UserError } from "../contracts/user-error.js";
import { decodeControlVector, encodeControlVector } from "../formats/control-vector.js";
import { FormatError } from "../formats/format-error.js";
import { decodeNpz, npzWords } from "../formats/npz.js";
import { decodeSafetensors, encodeSafetensors, type Tensor } from "../formats/safetensors.js";
import { looksLikeTorch, readForeignVector } from "./foreign-vectors.js";
import { type ModelIdentity, ownerOf, pointOf, unowned } from "./identity.js";
import { isProbeReport, type ProbeNumbers, type ProbeReport, type ProbeSaid } from "./probes.js";
import type { Shelved } from "./shelf.js";

/** Download formats of a saved object. */
export type FileForm = "safetensors" | "gguf";

export interface Reading {
  /** The model that the caller names; otherwise the file must record it. */
  model: ModelIdentity | undefined;
  /** Accept a file made for a different model. */
  restamp: boolean;
  /** The layer of a file that does not record it. */
  layer: number | undefined;
  /** The project that the file is from. */
  format?: VectorFormat | undefined;
  /** Which vector of a file with several. */
  entry?: string | undefined;
}

/** A vector from a file, and its model. */
export interface ReadVector {
  layers: Map<number, Float32Array>;
  model: ModelIdentity;
  note: string;
}

const unpackedBytes = 512 * 1024 ** 2;
const layerName = /^layer[_.](\d{1,3})$/;

/**
 * Reads a vector: our .safetensors or .npz (`layer_<n>`), a control vector's GGUF, one array whose layer the caller
 * names, or another project's file whose format the caller names.
 * @throws FormatError, UserError
 */
export async function readVector(bytes: Uint8Array, reading: Reading): Promise<ReadVector> {
  const { layers, note, metadata } = await vectorOf(bytes, reading);
  const [first] = layers.values();
  return { layers, note, model: ownerOf(metadata, first?.length ?? 0, reading) };
}

async function vectorOf(bytes: Uint8Array, { model, layer, format, entry }: Reading) {
  if (format !== undefined) {
    if (model === undefined) throw unowned();
    return { ...(await readForeignVector(bytes, format, { model, layer, entry })), metadata: {} };
  }
  if (looksLikeTorch(bytes)) {
    throw new FormatError(
      `A PyTorch file does not record what its rows are: specify the format, one of ${vectorFormats.join(", ")}.`,
    );
  }
  if (starts(bytes, "GGUF")) {
    return {
      layers: await decodeControlVector(bytes),
      note: "From a control vector's GGUF file.",
      metadata: {},
    };
  }
  const { tensors, metadata } = arraysOf(bytes);
  checkOperation(metadata, "add");
  // A file for another point would be silently wrong.
  if (pointOf("The file", metadata.point) !== "block_out") {
    throw new UserError(`The file is for the point ${metadata.point}; only block_out is supported.`);
  }
  const layers = new Map<number, Float32Array>();
  for (const [name, { data }] of tensors) {
    const own = layerName.exec(name)?.[1];
    if (own !== undefined) layers.set(Number(own), data);
  }
  const [only, ...others] = tensors.values();
  if (layers.size === 0 && only !== undefined && others.length === 0 && layer !== undefined) {
    layers.set(layer, only.data);
  }
  if (layers.size === 0) {
    throw new FormatError(
      "The file does not record its layers: name its arrays layer_<n>, or send one array with ?layer=<n>.",
    );
  }
  return { layers, note: metadata.note ?? "", metadata };
}

/**
 * Reads a linear probe: our .safetensors, or the Lab's `probe-layer-<n>.npz`, whose layer the caller names.
 * @throws FormatError, UserError
 */
export function readProbe(
  bytes: Uint8Array,
  reading: Reading,
): { layer: number; probe: ProbeNumbers; model: ModelIdentity } & ProbeSaid {
  const { tensors, metadata } = arraysOf(bytes);
  checkOperation(metadata, "probe");
  const point = pointOf("The file", metadata.point);
  const array = (name: string) => {
    const found = tensors.get(name);
    if (found === undefined)
      throw new FormatError(`The file has no array ${name}; probes have weight, bias, mean and std.`);
    return found.data;
  };
  const own = reading.layer ?? (metadata.layer === undefined ? undefined : Number(metadata.layer));
  if (own === undefined || !Number.isInteger(own) || own < 0) {
    throw new UserError("The file does not record its layer: add ?layer=<n>.");
  }
  const probe = {
    weight: array("weight"),
    mean: array("mean"),
    std: array("std"),
    bias: array("bias")[0] ?? 0,
  };
  const model = ownerOf(metadata, probe.weight.length, reading);
  const report = reportOf(metadata);
  return { layer: own, probe, model, note: metadata.note ?? "", point, ...(report && { report }) };
}

/** The held-out figures that a probe's file records. @throws FormatError if they are invalid */
function reportOf({ report: text }: Record<string, string>): ProbeReport | undefined {
  if (text === undefined) return undefined;
  try {
    const report: unknown = JSON.parse(text);
    if (isProbeReport(report)) return report;
  } catch {}
  throw new FormatError(`The file's report is invalid: ${JSON.stringify(text.slice(0, 80))}.`);
}

/** @throws FormatError if the format cannot express it */
export function writeVector(file: Pick<Shelved, "tensors" | "metadata">, form: FileForm): Buffer {
  if (form === "safetensors") return encodeSafetensors(Object.fromEntries(file.tensors), file.metadata);
  const layers = new Map<number, Float32Array>();
  for (const [name, { data }] of file.tensors) {
    const layer = layerName.exec(name)?.[1];
    if (layer !== undefined) layers.set(Number(layer), data);
  }
  return encodeControlVector(layers, file.metadata.model ?? "");
}

/** @throws FormatError if the format cannot express it */
export function writeProbe(file: Shelved, form: FileForm): Buffer {
  if (form === "gguf") throw new FormatError("Probes have no GGUF format; use safetensors.");
  return encodeSafetensors(Object.fromEntries(file.tensors), file.metadata);
}

function arraysOf(bytes: Uint8Array): { tensors: Map<string, Tensor>; metadata: Record<string, string> } {
  if (starts(bytes, "PK")) {
    return { tensors: decodeNpz(bytes, unpackedBytes), metadata: npzWords(bytes, unpackedBytes) };
  }
  return decodeSafetensors(bytes);
}

/** A file for another operation would be silently wrong here. */
function checkOperation({ operation }: Record<string, string>, wanted: string): void {
  if (operation !== undefined && operation !== wanted) {
    throw new UserError(`The file is for the operation ${operation}, not ${wanted}.`);
  }
}

function starts(bytes: Uint8Array, text: string): boolean {
  return (
    Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(text.length, bytes.length)).toString("latin1") ===
    text
  );
}
