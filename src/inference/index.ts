export { inferenceApp } from "./app.js";
export { endService, loadService, modelId, type ServingOptions } from "./server.js";
export type { InferenceService } from "./service.js";
