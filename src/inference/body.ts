import type { Static, TSchema } from "typebox";
import { inferenceLimits } from "../contracts/inference-limits.js";
import type { Unsupported } from "../contracts/unsupported.js";
import { HttpError, type RouteContext, readJson } from "../http/index.js";
import { checkBody } from "./check-body.js";
import type { InferenceService } from "./service.js";

/** A body's schema and its handler. */
export interface Taking {
  schema: TSchema;
  answer(service: InferenceService, ctx: RouteContext): unknown;
}

/** Makes a handler that validates the bodies of OpenAI's and llama-server's endpoints. */
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

/** Reads and validates a body, and checks that it names the served model. */
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

/** Whether a name is the served model's id or an alias. */
export function isServed({ engine, aliases }: InferenceService, model: string): boolean {
  return model === engine.info.id || aliases.includes(model);
}
