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

/** A model as stored things know it. */
export interface ModelIdentity extends ModelSize {
  id: string;
  fingerprint: string;
}

/** @throws UserError where what a thing reads is not as wide as the model */
export function checkWidth(what: string, width: number, { nEmbd }: ModelSize): void {
  if (width === nEmbd) return;
  throw new UserError(`${what} reads rows of ${width} values; the model's hidden size is ${nEmbd}.`);
}

/** @throws UserError where the model has no such block */
export function checkBlock(what: string, block: number, { nLayer }: ModelSize): void {
  if (block < nLayer) return;
  throw new UserError(`${what} reads block ${block}; the model has ${nLayer}, 0 to ${nLayer - 1}.`);
}

/** What a stored file says of the model that it belongs to; null where it says nothing. */
export function modelOf(metadata: Record<string, string>): { id: string; fingerprint: string } | null {
  const { model_fingerprint: fingerprint, model = "" } = metadata;
  return fingerprint === undefined ? null : { id: model, fingerprint };
}

/** What of a block a stored thing reads, as its file says; files that say nothing are of block outputs. @throws UserError */
export function pointOf(what: string, point: string | undefined): BlockPoint {
  if (point === undefined) return "block_out";
  if (isBlockPoint(point)) return point;
  throw new UserError(`${what} reads ${JSON.stringify(point)}, which is no point that is known here.`);
}

/**
 * Refuses what reads another point where block outputs are read or changed.
 * @param what e.g. `The probe truth`
 */
export function checkBlockOutput(what: string, point: BlockPoint, layer: number): void {
  if (point === "block_out") return;
  throw new UserError(`${what} reads ${point} of block ${layer}; here block outputs are read and changed.`);
}

/**
 * Refuses a thing that was made on another model: its numbers would mean nothing, and look as if they did.
 * @param what e.g. `The vector polite`
 * @throws UserError with both fingerprints
 */
export function checkModel(what: string, metadata: Record<string, string>, model: ModelIdentity): void {
  const own = modelOf(metadata);
  if (own === null || own.fingerprint === model.fingerprint) return;
  throw new UserError(
    `${what} belongs to ${own.id || "another model"} (${own.fingerprint.slice(0, 16)}), not to ${model.id} ` +
      `(${model.fingerprint.slice(0, 16)}).`,
  );
}

/**
 * The model that a file is kept for: the one that the caller names, or else the one that the file states.
 * @param width of the file's vectors: all that is known of a model that only the file names
 * @throws UserError where the two differ, unless the caller knows better (`restamp`), or neither says anything
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
    "Which model the file belongs to has to be said: name it (?model=…), or send the file to the server that serves it.",
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

/** @throws UserError where a number is NaN or infinite */
export function checkFinite(what: string, tensors: ReadonlyMap<string, Tensor>): void {
  for (const [name, { data }] of tensors) {
    if (!data.every(Number.isFinite))
      throw new UserError(`${what}: ${name} holds numbers that are not finite.`);
  }
}
