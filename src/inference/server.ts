import type { Server } from "node:http";
import { basename } from "node:path";
import type { SamplingDefaults } from "../contracts/chat.js";
import { UserError } from "../contracts/user-error.js";
import type { DownloadProgress } from "../models/hub/index.js";
import { judgeMemory } from "../models/memory.js";
import { type ResolvedModel, resolveModel } from "../models/resolve.js";
import { awaitRpcServers, type RpcServer, reachRpcServers } from "../models/rpc.js";
import { Engine, type EngineOptions } from "../native/engine.js";
import { backendInfo, connectRemotes, estimateMemory, NativeError, threadsFor } from "../native/index.js";
import { captureWaitMs } from "./capture.js";
import { checkFinite } from "./finite.js";
import { openLibrary } from "./live/library.js";
import { createService, type InferenceService } from "./service.js";

type OfEngineAlone = "path" | "id" | "mmap" | "captureTokens" | "twin" | "onProgress";

export interface ServingOptions extends Omit<EngineOptions, OfEngineAlone> {
  /** `demo`, a .gguf file, a directory with one model, or a hub id. */
  model: string;
  /** Pins a revision of a hub model. */
  revision?: string;
  /** A smaller draft model with the same vocabulary, specified like `model`. */
  draft?: string;
  /** The model's image encoder, specified like `model`, or a file. */
  mmproj?: string;
  /** Names of the model instead of its id; the first is used in answers, all are accepted. */
  aliases?: readonly string[];
  /** Profiles that other machines may use, by name. */
  profiles?: readonly string[];
  /** Sampling defaults of requests. */
  sampling?: SamplingDefaults;
  /** llama.cpp RPC servers that share the model's layers. */
  rpc?: readonly RpcServer[];
  /** Waits for the rpc-servers instead of failing. */
  patient?: boolean;
  /** Load models even if they may not fit into memory. */
  force?: boolean;
  apiKey?: string;
  /** Origins whose pages may use /v1; by default none. */
  cors?: readonly string[];
  /** Requests that may wait for a slot. */
  waiting?: number;
  /** Folder of the user's library; TAPLINE_HOME, else ~/.tapline. */
  home?: string;
  /** Maximum wait of a queued capture, in milliseconds; by default the contract's 60 s. */
  captureWaitMs?: number;
  onProgress?: (stage: string, fraction: number, download?: DownloadProgress) => void;
  /** Reports a non-fatal problem. */
  onWarning?: (sentence: string) => void;
}

/** Loads a model and builds the service around it: everything but the listening socket. */
export async function loadService(options: ServingOptions): Promise<InferenceService> {
  const { model, revision, draft, rpc, patient, force, mmproj, onWarning, home, ...rest } = options;
  const {
    apiKey,
    cors,
    aliases = [],
    profiles = [],
    sampling,
    waiting,
    captureWaitMs: wait,
    ...engineOptions
  } = rest;
  const resolved = await resolveModel(model, {
    ...(revision !== undefined && { revision }),
    onDownload: (download) => options.onProgress?.("download", download.done / download.total, download),
  });
  if (rpc !== undefined) {
    await connectRemotes(
      await (patient ? awaitRpcServers(rpc, (sentence) => onWarning?.(sentence)) : reachRpcServers(rpc)),
    );
  }
  const guessing = draft === undefined ? undefined : await resolveModel(draft);
  const weightBytes = resolved.weights.reduce((sum, { bytes }) => sum + bytes, 0);
  const threads = engineOptions.threads ?? threadsFor(weightBytes);
  const opening = {
    ...engineOptions,
    threads,
    path: resolved.path,
    ...(guessing && { draft: guessing.path }),
    ...(mmproj !== undefined && { mmproj: (await resolveModel(mmproj)).path }),
  };
  await checkMemory(opening, force === true, onWarning);
  const spread = (["splitMode", "tensorSplit", "mainGpu"] as const).some(
    (name) => opening[name] !== undefined,
  );
  if (spread && backendInfo().devices.every(({ kind }) => kind === "cpu")) {
    onWarning?.("--split-mode, --tensor-split and --main-gpu have no effect, because no GPU is used.");
  }
  const engine = await Engine.open({ ...opening, id: aliases[0] ?? modelId(model, resolved) });
  await checkFinite(engine);
  const { slotContext, templateCapabilities } = engine.info;
  if (templateCapabilities.supports_tools !== true) {
    onWarning?.(
      "Requests with tools will be refused, because this model's chat template does not support them.",
    );
  }
  if (engineOptions.ctxSize !== undefined && slotContext < engineOptions.ctxSize) {
    onWarning?.(
      `--ctx-size ${engineOptions.ctxSize} exceeds this model's training context: a slot holds ${slotContext} tokens.`,
    );
  }
  const library = await openLibrary(engine.info, home);
  for (const name of profiles) await library.profiles.fitting(name, library.model);
  return createService(
    {
      engine,
      backend: backendInfo(),
      resolved,
      requestedModel: model,
      requestedRevision: revision ?? null,
      drafts: guessing !== undefined,
      library,
      ...{ apiKey, cors, aliases, offered: profiles, sampling, waiting, home, captureWaitMs: wait },
    },
    captureWaitMs,
  );
}

/** Refuses models that cannot fit, unless forced, and warns about tight fits. */
async function checkMemory(
  opening: Omit<EngineOptions, "id">,
  force: boolean,
  onWarning: ServingOptions["onWarning"],
): Promise<void> {
  const devices = await estimateMemory(opening).catch((error: unknown) => {
    // Loading will give a better error for the file.
    if (error instanceof NativeError && error.code === "MODEL_LOAD") return undefined;
    throw error;
  });
  if (devices === undefined) return;
  const { fits, sentence } = judgeMemory(devices);
  if (fits === "no" && !force) throw new UserError(sentence);
  if (fits !== "yes") onWarning?.(sentence);
}

/**
 * The stable id under which a model is served: the requested hub id, or for a file its stem without the numbers of a
 * split set.
 */
export function modelId(
  model: string,
  { path, repository }: Pick<ResolvedModel, "path" | "repository">,
): string {
  if (repository !== null) return model;
  return basename(path)
    .replace(/\.gguf$/i, "")
    .replace(/-\d{5}-of-\d{5}$/, "");
}

/**
 * Shuts a service down: refuses new requests, gives running answers a short grace period, then ends the engine and
 * connections.
 * @param server the HTTP server that serves it
 */
export async function endService(service: InferenceService, server: Server, graceMs: number): Promise<void> {
  service.admission.close();
  const deadline = Date.now() + graceMs;
  while (service.admission.inside > 0 && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await service.engine.close();
  service.files.close();
  server.closeAllConnections();
}
