import { HttpError } from "../http/index.js";
import type { InferenceService } from "./service.js";

/** Whether a name is the served model's id or an alias. */
export function isServed({ engine, aliases }: InferenceService, model: string): boolean {
  return model === engine.info.id || aliases.includes(model);
}

/** The answer to a request for a model that is not served. */
export function notServed({ engine }: InferenceService, model: string): HttpError {
  return new HttpError(404, `The model ${model.slice(0, 200)} is not served here; ${engine.info.id} is.`, {
    ...{ param: "model", code: "model_not_found" },
  });
}
