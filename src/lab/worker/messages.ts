import type { Config, Progress, Result } from "../../contracts/index.js";

/** The one thing that the service tells a worker. */
export interface WorkerTask {
  config: Config;
  /** Where artifacts go. */
  folder: string;
  /** When the service started the process, in Unix milliseconds. */
  spawnedAt: number;
}

/** What a worker tells the service: progress, then a result or a failure. */
export type WorkerMessage =
  | { type: "progress"; progress: Progress }
  | { type: "result"; result: Result }
  | { type: "failure"; message: string };
