import type { Static, TSchema } from "typebox";
import { ProbeRequest, VectorRequest } from "../../contracts/library.js";
import { liveLimits } from "../../contracts/live-limits.js";
import { checked, clientGone, HttpError, type RouteContext, readJson } from "../../http/index.js";
import { refusing } from "../../library/shelf-endpoints.js";
import type { Engine } from "../../native/engine.js";
import { NativeError } from "../../native/index.js";
import type { Taking } from "../body.js";
import type { InferenceService } from "../service.js";
import type { LiveLibrary } from "./library.js";
import { makeProbe } from "./make-probe.js";
import { makeVector } from "./make-vector.js";
import { captureFeatures, mostFeatures } from "./row-features.js";
import { captureNpz, captureSafetensors } from "./row-store.js";

/** Makes an object from texts on the resident model and saves it under a name. */
function making<S extends TSchema>(
  schema: S,
  make: (engine: Engine, library: LiveLibrary, body: Static<S>, signal: AbortSignal) => Promise<object>,
): Taking {
  return {
    schema,
    async answer({ engine, library }, ctx) {
      const body = checked(schema, await readJson(ctx, { limit: liveLimits.file_bytes }));
      const { captures, noCaptureReason } = engine.info;
      if (!captures) throw new HttpError(400, noCaptureReason);
      return refusing(() => make(engine, library, body, clientGone(ctx).signal).catch(theirs));
    },
  };
}

export const newVector = making(VectorRequest, makeVector);
export const newProbe = making(ProbeRequest, makeProbe);

/** Lists captured activations. */
export function listRows({ rows }: InferenceService) {
  return {
    captures: rows.list().map(({ id, bytes, created, rows: kept, layers, point, heads }) => ({
      id,
      bytes,
      created,
      rows: kept.length,
      layers: layers.map(({ layer }) => layer),
      ...(point && { point }),
      ...(heads && { heads }),
    })),
  };
}

const absent = (id: string) => new HttpError(404, `No capture ${id.slice(0, 80)}; old captures are evicted.`);

/** Captured activations as a file. */
export async function rowFile({ rows }: InferenceService, { params, query }: RouteContext): Promise<Buffer> {
  const { id } = params as { id: string };
  const { format = "safetensors" } = query;
  const capture = rows.get(id);
  if (capture === undefined) throw absent(id);
  if (format !== "safetensors" && format !== "npz") {
    throw new HttpError(400, "format: must be safetensors or npz.");
  }
  return format === "npz" ? captureNpz(capture) : captureSafetensors(capture);
}

/** The active features in captured activations. */
export async function rowFeatures({ rows, library }: InferenceService, ctx: RouteContext) {
  const { id } = ctx.params as { id: string };
  const { dictionary, top = "10" } = ctx.query;
  const capture = rows.get(id);
  if (capture === undefined) throw absent(id);
  if (typeof dictionary !== "string") {
    throw new HttpError(400, "dictionary: the name of a saved dictionary is required.");
  }
  if (typeof top !== "string" || !/^\d{1,3}$/.test(top) || Number(top) < 1 || Number(top) > mostFeatures) {
    throw new HttpError(400, `top: must be a number from 1 to ${mostFeatures}.`);
  }
  const { signal } = clientGone(ctx);
  return refusing(() => captureFeatures(capture, library, dictionary, Number(top), signal));
}

export function forgetRows({ rows }: InferenceService, { params }: RouteContext) {
  const { id } = params as { id: string };
  if (!rows.remove(id)) throw absent(id);
  return { deleted: true };
}

/** Answers 400 for texts that the engine refuses. */
function theirs(error: unknown): never {
  const refused =
    error instanceof NativeError &&
    ["TOKEN_LIMIT", "LAYER_OUT_OF_RANGE", "INVALID_ARGUMENT"].includes(error.code);
  throw refused ? new HttpError(400, error.message) : error;
}
