import { createHash } from "node:crypto";
import { limits } from "../contracts/limits.js";
import { type BlockPoint, isBlockPoint } from "../contracts/names.js";
import { UserError } from "../contracts/user-error.js";
import { bytesOf } from "../formats/float.js";
import type { Tensor } from "../formats/safetensors.js";

export interface ModelSize {
  nEmbd: number;
  nLayer: number;
}

/** The identity of a model, as recorded in saved objects. */
export interface ModelIdentity extends ModelSize {
  id: string;
  fingerprint: string;
}

/** @throws UserError if the width differs from the model's */
export function checkWidth(what: string, width: number, { nEmbd }: ModelSize): void {
  if (width === nEmbd) return;
  throw new UserError(`${what} reads activations of ${width} values; the model's hidden size is ${nEmbd}.`);
}

/** @throws UserError if the model has no such block */
export function checkBlock(what: string, block: number, { nLayer }: ModelSize): void {
  if (block < nLayer) return;
  throw new UserError(`${what} reads block ${block}; the model has blocks 0 to ${nLayer - 1}.`);
}

/** The model recorded in a saved file; null if there is none. */
export function modelOf(metadata: Record<string, string>): { id: string; fingerprint: string } | null {
  const { model_fingerprint: fingerprint, model = "" } = metadata;
  return fingerprint === undefined ? null : { id: model, fingerprint };
}

/** The point that a saved object reads, as recorded in its file; by default the block output. @throws UserError */
export function pointOf(what: string, point: string | undefined): BlockPoint {
  if (point === undefined) return "block_out";
  if (isBlockPoint(point)) return point;
  throw new UserError(`${what} reads the unknown point ${JSON.stringify(point)}.`);
}

/**
 * Refuses objects that read another point where block outputs are read or edited.
 * @param what e.g. `The probe truth`
 */
export function checkBlockOutput(what: string, point: BlockPoint, layer: number): void {
  if (point === "block_out") return;
  throw new UserError(`${what} reads ${point} of block ${layer}; only block outputs are supported here.`);
}

/**
 * Refuses objects made on another model: their numbers would look plausible but be meaningless.
 * @param what e.g. `The vector polite`
 * @throws UserError with both fingerprints
 */
export function checkModel(what: string, metadata: Record<string, string>, model: ModelIdentity): void {
  const own = modelOf(metadata);
  if (own === null || own.fingerprint === model.fingerprint) return;
  throw new UserError(
    `${what} was made for ${own.id || "another model"} (${own.fingerprint.slice(0, 16)}), not for ${model.id} ` +
      `(${model.fingerprint.slice(0, 16)}).`,
  );
}

/**
 * The model of a file: the one that the caller names, otherwise the one recorded in the file.
 * @param width of the file's vectors, the only known size of a model named just by the file
 * @throws UserError if the two differ (unless `restamp`), or neither is given
 */
export function ownerOf(
  metadata: Record<string, string>,
  width: number,
  { model, restamp }: { model: ModelIdentity | undefined; restamp: boolean },
): ModelIdentity {
  if (model !== undefined) {
    if (!restamp) checkModel("The file", metadata, model);
    return model;
  }
  const own = modelOf(metadata);
  if (own === null || restamp) throw unowned();
  return { ...own, nEmbd: width, nLayer: limits.layer_index + 1 };
}

export function unowned(): UserError {
  return new UserError(
    "The file does not record its model: add ?model=…, or send the file to the server that serves the model.",
  );
}

/** SHA-256 over the numbers of all tensors, in the order of their names. */
export function hashTensors(tensors: ReadonlyMap<string, Tensor>): string {
  const hash = createHash("sha256");
  for (const [name, { shape, data }] of [...tensors].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${name}[${shape.join(",")}]\n`);
    hash.update(bytesOf(data));
  }
  return hash.digest("hex");
}

/** @throws UserError if a number is NaN or infinite */
export function checkFinite(what: string, tensors: ReadonlyMap<string, Tensor>): void {
  for (const [name, { data }] of tensors) {
    if (!data.every(Number.isFinite))
      throw new UserError(`${what}: ${name} contains numbers that are not finite.`);
  }
}
