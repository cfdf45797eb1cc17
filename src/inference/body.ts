import type { Static, TSchema } from "typebox";
import { inferenceLimits } from "../contracts/inference-limits.js";
import type { Unsupported } from "../contracts/unsupported.js";
import { HttpError, type RouteContext, readJson } from "../http/index.js";
import { checkBody } from "./check-body.js";
import type { InferenceService } from "./service.js";

/** What a body is checked with, and what answers it. */
export interface Taking {
  schema: TSchema;
  answer(service: InferenceService, ctx: RouteContext): unknown;
}

/** Takes the bodies of the OpenAI-style endpoints and llama-server's. */
export function taking<S extends TSchema>(
  schema: S,
  unsupported: Unsupported,
  answer: (service: InferenceService, ctx: RouteContext, body: Static<S>) => unknown,
): Taking {
  return {
    schema,
    answer: async (service, ctx) => answer(service, ctx, await readBody(service, ctx, schema, unsupported)),
  };
}

/** Reads and checks a body, and that it asks for the served model. */
async function readBody<S extends TSchema>(
  service: InferenceService,
  ctx: RouteContext,
  schema: S,
  unsupported: Unsupported,
): Promise<Static<S>> {
  const body = checkBody(schema, await readJson(ctx, { limit: inferenceLimits.body_bytes }), unsupported);
  const { model } = body as { model?: string };
  if (model !== undefined && !isServed(service, model)) {
    throw new HttpError(
      404,
      `The model ${model.slice(0, 200)} is not served here; ${service.engine.info.id} is.`,
      { param: "model", code: "model_not_found" },
    );
  }
  return body;
}

/** Whether a name is the served model's id or one of its other names. */
export function isServed({ engine, aliases }: InferenceService, model: string): boolean {
  return model === engine.info.id || aliases.includes(model);
}
