import type { Config, Progress, Result } from "../../contracts/index.js";
import type { RpcServer } from "../../models/rpc.js";

/** How every job of a Lab loads its model. */
export interface LoadSettings {
  /** Servers of llama.cpp that the model's layers are spread over. */
  rpc?: readonly RpcServer[];
  /** Blocks kept on GPUs; as many as their free memory takes when it is not given. */
  gpuLayers?: number;
  /** Names of the GPUs that may hold blocks; all when it is not given. `none` alone: the processor only. */
  devices?: readonly string[];
  /** Loads what does not seem to fit into memory all the same. */
  force?: boolean;
}

/** The one thing that the service tells a worker. */
export interface WorkerTask {
  config: Config;
  /** Where artifacts go. */
  folder: string;
  /** When the service started the process, in Unix milliseconds. */
  spawnedAt: number;
  load: LoadSettings;
}

/** What a worker tells the service: progress, then a result or a failure. */
export type WorkerMessage =
  | { type: "progress"; progress: Progress }
  | { type: "result"; result: Result }
  | { type: "failure"; message: string };
