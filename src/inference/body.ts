import type { Static, TSchema } from "typebox";
import { inferenceLimits } from "../contracts/inference-limits.js";
import type { Unsupported } from "../contracts/unsupported.js";
import { HttpError, type RouteContext, readJson } from "../http/index.js";
import { checkBody } from "./check-body.js";
import { findProfile } from "./profiles.js";
import { isServed } from "./served-model.js";
import type { InferenceService } from "./service.js";

/** A body's schema and its handler. */
export interface Taking {
  schema: TSchema;
  answer(service: InferenceService, ctx: RouteContext): unknown;
}

/** Fields that an endpoint refuses, and whether it runs with the edits of a profile or needs none (to count tokens). */
export interface Rules {
  unsupported?: Unsupported;
  profiles?: "run" | "not needed";
}

/** Makes a handler that validates the bodies of OpenAI's and llama-server's endpoints. */
export function taking<S extends TSchema>(
  schema: S,
  rules: Rules,
  answer: (service: InferenceService, ctx: RouteContext, body: Static<S>) => unknown,
): Taking {
  return {
    schema,
    answer: async (service, ctx) => answer(service, ctx, await readBody(service, ctx, schema, rules)),
  };
}

/** Reads and validates a body, and checks that it names the served model, possibly with a profile. */
async function readBody<S extends TSchema>(
  service: InferenceService,
  ctx: RouteContext,
  schema: S,
  { unsupported = {}, profiles }: Rules,
): Promise<Static<S>> {
  const body = checkBody(schema, await readJson(ctx, { limit: inferenceLimits.body_bytes }), unsupported);
  const { model } = body as { model?: string };
  if (model === undefined || isServed(service, model)) return body;
  const chosen = await findProfile(service, ctx, model);
  if (profiles === undefined) {
    throw new HttpError(400, `model: ${ctx.path} does not run with a profile, got ${model.slice(0, 200)}.`, {
      param: "model",
    });
  }
  ctx.state.profile = chosen;
  return body;
}
