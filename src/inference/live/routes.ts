import type { Context } from "koa";
import type { Static, TSchema } from "typebox";
import { ProbeRequest, VectorRequest } from "../../contracts/library.js";
import { liveLimits } from "../../contracts/live-limits.js";
import { checked, clientGone, createRouter, HttpError, type Routes, readJson } from "../../http/index.js";
import { keptRoutes, refusing } from "../../library/endpoints.js";
import { NativeError } from "../../native/index.js";
import { isServed } from "../generate.js";
import type { InferenceService } from "../service.js";
import { makeProbe } from "./make-probe.js";
import { makeVector } from "./make-vector.js";
import { captureFeatures, mostFeatures } from "./row-features.js";
import { captureNpz, captureSafetensors } from "./row-store.js";

/** The user's library on the inference port: vectors and probes that requests name. */
export function libraryRoutes(service: InferenceService): Routes {
  const router = createRouter();
  const { vectors, probes, model } = service.library;
  const making = async <S extends TSchema, T>(
    ctx: Context,
    schema: S,
    make: (body: Static<S>, signal: AbortSignal) => Promise<T>,
  ) => {
    const body = checked(schema, await readJson(ctx, { limit: liveLimits.file_bytes }));
    const { captures, noCaptureReason } = service.engine.info;
    if (!captures) throw new HttpError(400, noCaptureReason);
    ctx.status = 201;
    ctx.body = await refusing(() => make(body, clientGone(ctx).signal).catch(theirs));
  };
  captureRoutes(router, service);
  // What is sent to this port is for the model that it serves.
  keptRoutes(router, { vectors, probes }, async (named) => {
    if (named === undefined || isServed(service, named)) return model;
    throw new HttpError(400, `model: ${model.id} is served here, not ${named.slice(0, 200)}.`);
  });

  router.post("/lab/vectors", async (context) => {
    await making(context, VectorRequest, (body, signal) =>
      makeVector(service.engine, service.library, body, signal),
    );
  });
  router.post("/lab/probes", async (context) => {
    await making(context, ProbeRequest, (body, signal) =>
      makeProbe(service.engine, service.library, body, signal),
    );
  });
  return router;
}

/** Rows that requests asked to keep. */
function captureRoutes(router: Routes, { rows, library }: InferenceService): void {
  const path = "/lab/captures";
  const absent = (id: string) =>
    new HttpError(404, `There is no capture ${id.slice(0, 80)}; the oldest make room for new ones.`);
  router.get(path, (ctx) => {
    ctx.body = {
      captures: rows.list().map(({ id, bytes, created, rows: kept, layers }) => ({
        id,
        bytes,
        created,
        rows: kept.length,
        layers: layers.map(({ layer }) => layer),
      })),
    };
  });
  router.get(`${path}/:id`, async (ctx) => {
    const { id } = ctx.params as { id: string };
    const { format = "safetensors" } = ctx.query;
    const capture = rows.get(id);
    if (capture === undefined) throw absent(id);
    if (format !== "safetensors" && format !== "npz") {
      throw new HttpError(400, "format: safetensors or npz.");
    }
    ctx.body = format === "npz" ? await captureNpz(capture) : captureSafetensors(capture);
  });
  router.get(`${path}/:id/features`, async (ctx) => {
    const { id } = ctx.params as { id: string };
    const { dictionary, top = "10" } = ctx.query;
    const capture = rows.get(id);
    if (capture === undefined) throw absent(id);
    if (typeof dictionary !== "string") {
      throw new HttpError(400, "dictionary: the name of a dictionary that is kept here is needed.");
    }
    if (typeof top !== "string" || !/^\d{1,3}$/.test(top) || Number(top) < 1 || Number(top) > mostFeatures) {
      throw new HttpError(400, `top: a number from 1 to ${mostFeatures}.`);
    }
    const { signal } = clientGone(ctx);
    ctx.body = await refusing(() => captureFeatures(capture, library, dictionary, Number(top), signal));
  });
  router.delete(`${path}/:id`, (ctx) => {
    const { id } = ctx.params as { id: string };
    if (!rows.remove(id)) throw absent(id);
    ctx.body = { deleted: true };
  });
}

/** What the engine refuses a text for is the caller's fault. */
function theirs(error: unknown): never {
  const refused =
    error instanceof NativeError &&
    ["TOKEN_LIMIT", "LAYER_OUT_OF_RANGE", "INVALID_ARGUMENT"].includes(error.code);
  throw refused ? new HttpError(400, error.message) : error;
}
