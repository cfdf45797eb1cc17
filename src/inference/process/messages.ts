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

/** What the parent needs to answer a request with an error. */
export interface WaitingRequest {
  path: string;
  origin?: string | undefined;
}

export type ToParent =
  | { type: "progress"; stage: string; fraction: number; download?: DownloadProgress }
  | { type: "ready"; info: EngineInfo; backend: string }
  | { type: "warning"; sentence: string }
  /** The model cannot be served, or no longer; the sentence is for users. */
  | { type: "failed"; sentence: string }
  /** This process has the connection; the parent keeps its own copy. */
  | { type: "taken"; id: number }
  /** A request waits on the connection for the first byte of its answer. */
  | ({ type: "asked"; id: number } & WaitingRequest)
  /** That byte comes next. */
  | { type: "answering"; id: number }
  /** The connection was closed here, so the parent must close its copy. */
  | { type: "closed"; id: number }
  /** An internal error of the service. */
  | { type: "log"; line: string };
