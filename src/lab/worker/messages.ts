import type { Config, Progress, Result } from "../../contracts/index.js";
import type { RpcServer } from "../../models/rpc.js";

/** How every job of a Lab loads its model. */
export interface LoadSettings {
  /** Servers of llama.cpp that the model's layers are spread over. */
  rpc?: readonly RpcServer[];
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
