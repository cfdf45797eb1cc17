import type Router from "@koa/router";
import type { Context } from "koa";
import Type, { type Static, type TSchema } from "typebox";
import { ProbeRequest, VectorRequest } from "../../contracts/library.js";
import { limits } from "../../contracts/limits.js";
import { Name } from "../../contracts/live.js";
import { liveLimits } from "../../contracts/live-limits.js";
import { UserError } from "../../contracts/user-error.js";
import { FormatError } from "../../formats/format-error.js";
import { createRouter, HttpError, readBytes, readJson } from "../../http/index.js";
import {
  type FileForm,
  type Probes,
  readProbe,
  readVector,
  type Shelved,
  type Vectors,
  writeProbe,
  writeVector,
} from "../../library/index.js";
import { NativeError } from "../../native/index.js";
import { checked } from "../check-body.js";
import { clientGone } from "../reply.js";
import type { InferenceService } from "../service.js";
import { makeProbe } from "./make-probe.js";
import { makeVector } from "./make-vector.js";
import { captureNpz, captureSafetensors } from "./row-store.js";

/** The user's library on the inference port: vectors and probes that requests name. */
export function libraryRoutes(service: InferenceService): Router {
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
    ctx.body = await refusing(() => make(body, clientGone(ctx).signal));
  };
  captureRoutes(router, service);
  keptRoutes(router, "vector", vectors, writeVector);
  keptRoutes(router, "probe", probes, writeProbe);

  router.post("/lab/vectors", async (context) => {
    await making(context as unknown as Context, VectorRequest, (body, signal) =>
      makeVector(service.engine, service.library, body, signal),
    );
  });
  router.post("/lab/probes", async (context) => {
    await making(context as unknown as Context, ProbeRequest, (body, signal) =>
      makeProbe(service.engine, service.library, body, signal),
    );
  });
  router.put("/lab/vectors/:name", async (context) => {
    const ctx = context as unknown as Context;
    const name = checked(Name, (context.params as { name: string }).name);
    const bytes = await readBytes(ctx, liveLimits.file_bytes);
    ctx.body = await refusing(async () => {
      const { layers, note } = readVector(bytes, {
        model,
        restamp: flag(ctx, "restamp"),
        layer: layerOf(ctx),
      });
      return vectors.put(name, layers, model, { note });
    });
  });
  router.put("/lab/probes/:name", async (context) => {
    const ctx = context as unknown as Context;
    const name = checked(Name, (context.params as { name: string }).name);
    const bytes = await readBytes(ctx, liveLimits.file_bytes);
    ctx.body = await refusing(async () => {
      const { layer, probe, note } = readProbe(bytes, {
        model,
        restamp: flag(ctx, "restamp"),
        layer: layerOf(ctx),
      });
      return probes.put(name, layer, probe, model, { note });
    });
  });
  return router;
}

/** Rows that requests asked to keep. */
function captureRoutes(router: Router, { rows }: InferenceService): void {
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
    ctx.type = "application/octet-stream";
    ctx.body = format === "npz" ? await captureNpz(capture) : captureSafetensors(capture);
  });
  router.delete(`${path}/:id`, (ctx) => {
    const { id } = ctx.params as { id: string };
    if (!rows.remove(id)) throw absent(id);
    ctx.body = { deleted: true };
  });
}

/** What is asked of every kind of stored thing: the list, one of them, its file, its end. */
function keptRoutes(
  router: Router,
  noun: string,
  kept: Pick<Vectors | Probes, "list" | "get" | "file" | "remove">,
  write: (file: Shelved, form: FileForm) => Buffer,
): void {
  const path = `/lab/${noun}s`;
  router.get(path, async (ctx) => {
    ctx.body = { [`${noun}s`]: await kept.list() };
  });
  router.get(`${path}/:name`, async (ctx) => {
    const { name } = ctx.params as { name: string };
    const form = formOf(ctx.query.format);
    const known = await found(() => kept.file(checked(Name, name)));
    if (form === undefined) {
      ctx.body = await kept.get(name);
      return;
    }
    ctx.type = "application/octet-stream";
    ctx.body = await refusing(async () => write(known, form));
  });
  router.delete(`${path}/:name`, async (ctx) => {
    const name = checked(Name, (ctx.params as { name: string }).name);
    if (!(await kept.remove(name))) throw new HttpError(404, `There is no ${noun} named ${name}.`);
    ctx.body = { deleted: true };
  });
}

const Layer = Type.Integer({ minimum: 0, maximum: limits.layer_index });

/** `?layer=N`: the layer of a file that does not say. */
function layerOf(ctx: Context): number | undefined {
  const { layer } = ctx.query;
  if (layer === undefined) return undefined;
  return checked(Layer, typeof layer === "string" && /^\d+$/.test(layer) ? Number(layer) : layer);
}

function flag(ctx: Context, name: string): boolean {
  const value = ctx.query[name];
  if (value === undefined) return false;
  if (value === "" || value === "1" || value === "true") return true;
  throw new HttpError(400, `${name}: 1, or left out.`);
}

function formOf(format: string | string[] | undefined): FileForm | undefined {
  if (format === undefined || format === "json") return undefined;
  if (format === "safetensors" || format === "gguf") return format;
  throw new HttpError(400, "format: json, safetensors or gguf.");
}

async function found<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    throw error instanceof UserError ? new HttpError(404, error.message) : error;
  }
}

/** What a file or a text is refused for is the caller's fault. */
async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const theirs =
      error instanceof UserError ||
      error instanceof FormatError ||
      (error instanceof NativeError &&
        ["TOKEN_LIMIT", "LAYER_OUT_OF_RANGE", "INVALID_ARGUMENT"].includes(error.code));
    throw theirs ? new HttpError(400, error.message) : error;
  }
}
