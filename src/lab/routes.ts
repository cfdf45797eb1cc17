import type { Context } from "koa";
import {
  CancelBody,
  checkSubmission,
  InvalidInput,
  type Job,
  type LabHealth,
  limits,
  operations,
  validate,
  version,
} from "../contracts/index.js";
import { modelPoints } from "../contracts/names.js";
import { createRouter, HttpError, type Routes, readJson, sendFile } from "../http/index.js";
import { openApiDocument } from "./endpoints.js";
import type { Lab } from "./lab.js";

/** The routes under /lab/v1. */
export function labRoutes(lab: Lab, backend: string): Routes {
  const router = createRouter("/lab/v1");
  const body = (ctx: Context, optional: boolean) => readJson(ctx, { limit: limits.job_body_bytes, optional });

  router.get("/health", (ctx) => {
    ctx.body = {
      status: "ok",
      api_version: 1,
      version,
      operations: [...operations],
      points: [...modelPoints],
      limits,
      active_job: lab.activeJob,
      queued: lab.queued,
      queue_capacity: lab.queueCapacity,
      backend,
    } satisfies LabHealth;
  });

  router.get("/openapi.json", (ctx) => {
    ctx.body = openApiDocument(`http://${ctx.host}`);
  });

  router.post("/jobs", async (ctx) => {
    const config = refusing(checkSubmission, await body(ctx, false));
    ctx.body = await lab.submit(config);
    ctx.status = 202;
  });

  router.get("/jobs", (ctx) => {
    ctx.body = { jobs: lab.list() };
  });

  router.get("/jobs/:id", async (ctx) => {
    ctx.body = (await lab.get(ctx.params.id as string)) satisfies Job;
  });

  router.post("/jobs/:id/cancel", async (ctx) => {
    refusing((value) => validate(CancelBody, value), await body(ctx, true));
    ctx.body = await lab.cancel(ctx.params.id as string);
  });

  router.delete("/jobs/:id", async (ctx) => {
    await lab.remove(ctx.params.id as string);
    ctx.body = { deleted: true };
  });

  router.get("/jobs/:id/artifacts/:name", async (ctx) => {
    await sendFile(ctx, lab.artifact(ctx.params.id as string, ctx.params.name as string));
  });

  return router;
}

/** Bad input becomes a 400 with its sentence. */
function refusing<T>(check: (value: unknown) => T, value: unknown): T {
  try {
    return check(value);
  } catch (error) {
    if (error instanceof InvalidInput) throw new HttpError(400, error.message);
    throw error;
  }
}
