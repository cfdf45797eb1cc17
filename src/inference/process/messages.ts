import type { DownloadProgress } from "../../models/hub/index.js";
import type { EngineInfo } from "../../native/engine.js";
import type { ServingOptions } from "../server.js";

/** Start options of the serving process; callbacks become messages. */
export type StartOptions = Omit<ServingOptions, "onProgress" | "onFailure" | "onWarning">;

export type ToChild =
  | { type: "start"; options: StartOptions }
  /** Comes with a socket. */
  | { type: "connection"; id: number }
  | { type: "end"; graceMs: number };

export type ToParent =
  | { type: "progress"; stage: string; fraction: number; download?: DownloadProgress }
  | { type: "ready"; info: EngineInfo; backend: string }
  | { type: "warning"; sentence: string }
  /** The model cannot be served, or no longer; the sentence is for users. */
  | { type: "failed"; sentence: string }
  /** These connections were closed here, so the parent must close its copies. */
  | { type: "closed"; ids: number[] }
  /** An internal error of the service. */
  | { type: "log"; line: string };
