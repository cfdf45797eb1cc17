import type { Config, Progress, Result } from "../../contracts/index.js";
import type { RpcServer } from "../../models/rpc.js";
import type { PartTask } from "../parts/compute.js";

/** How every job of a Lab loads its model. */
export interface LoadSettings {
  /** llama.cpp RPC servers that share the model's layers. */
  rpc?: readonly RpcServer[];
  /** Number of blocks on GPUs; by default as many as fit into their free memory. */
  gpuLayers?: number;
  /** Names of the GPUs to use; by default all. `none`: only the CPU. */
  devices?: readonly string[];
  /** Load models even if they may not fit into memory. */
  force?: boolean;
}

/** The service's only message to a worker. */
export interface WorkerTask {
  config: Config;
  /** Folder for artifacts. */
  folder: string;
  /** When the service started the process, in Unix milliseconds. */
  spawnedAt: number;
  /** Only this part of the experiment, whose file is the only result. */
  part?: PartTask;
  load: LoadSettings;
}

/** A worker's messages to the service: progress, then a result or a failure. */
export type WorkerMessage =
  | { type: "progress"; progress: Progress }
  | { type: "result"; result: Result }
  | { type: "failure"; message: string };
