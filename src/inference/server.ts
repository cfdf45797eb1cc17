import type { Server } from "node:http";
import { basename } from "node:path";
import { resolveModel } from "../models/resolve.js";
import { threadsFor } from "../models/threads.js";
import { Engine, type EngineOptions } from "../native/engine.js";
import { backendInfo } from "../native/index.js";
import { captureWaitMs } from "./capture.js";
import { createService, type InferenceService } from "./service.js";

export interface ServingOptions
  extends Pick<
    EngineOptions,
    | "gpuLayers"
    | "ctxSize"
    | "parallel"
    | "threads"
    | "batch"
    | "cacheRamMiB"
    | "embeddings"
    | "thinking"
    | "chatTemplate"
  > {
  /** `demo`, a .gguf file, or a directory that holds one model. */
  model: string;
  apiKey?: string;
  /** Requests that may wait for a slot. */
  waiting?: number;
  /** Milliseconds that a capture may wait for its turn; the contract's 60 s unless told otherwise. */
  captureWaitMs?: number;
  onProgress?: (stage: string, fraction: number) => void;
  onFailure?: (sentence: string) => void;
}

/** Loads a model and builds the service around it: everything but the listening socket. */
export async function loadService(options: ServingOptions): Promise<InferenceService> {
  const { model, apiKey, waiting, captureWaitMs: wait, ...engineOptions } = options;
  const resolved = await resolveModel(model);
  const weightBytes = resolved.weights.reduce((sum, { bytes }) => sum + bytes, 0);
  const threads = engineOptions.threads ?? threadsFor(weightBytes);
  const engine = await Engine.open({
    ...engineOptions,
    threads,
    path: resolved.path,
    id: modelId(resolved.path),
  });
  return createService(
    { engine, backend: backendInfo(), resolved, requestedModel: model, apiKey, waiting, captureWaitMs: wait },
    captureWaitMs,
  );
}

/** The stable id under which a file is served: its stem, without the numbers of a split set. */
export function modelId(path: string): string {
  return basename(path)
    .replace(/\.gguf$/i, "")
    .replace(/-\d{5}-of-\d{5}$/, "");
}

/**
 * Ends a service: nobody enters, running answers get a short grace, then connections and engine end.
 * @param server the HTTP server that serves it
 */
export async function endService(service: InferenceService, server: Server, graceMs: number): Promise<void> {
  service.admission.close();
  const deadline = Date.now() + graceMs;
  while (service.stats.requests.active > 0 && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await service.engine.close();
  server.closeAllConnections();
}
