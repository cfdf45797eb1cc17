import type { DownloadProgress } from "../../models/hub/index.js";
import type { EngineInfo } from "../../native/engine.js";
import type { ServingOptions } from "../server.js";

/** What the serving process needs to start; callbacks become messages. */
export type StartOptions = Omit<ServingOptions, "onProgress" | "onFailure" | "onWarning">;

export type ToChild =
  | { type: "start"; options: StartOptions }
  /** Comes with a socket. */
  | { type: "connection"; id: number }
  | { type: "end"; graceMs: number };

/** A request as the parent needs it for a refusal. */
export interface Asked {
  path: string;
  origin?: string | undefined;
}

export type ToParent =
  | { type: "progress"; stage: string; fraction: number; download?: DownloadProgress }
  | { type: "ready"; info: EngineInfo; backend: string }
  | { type: "warning"; sentence: string }
  /** The model cannot be served, or not any more; the sentence is for a person. */
  | { type: "failed"; sentence: string }
  /** This process has the connection; the parent keeps its own copy. */
  | { type: "taken"; id: number }
  /** A request waits on the connection for the first byte of its answer. */
  | ({ type: "asked"; id: number } & Asked)
  /** That byte comes next. */
  | { type: "answering"; id: number }
  /** The connection has ended here, so that the parent's copy has to end. */
  | { type: "closed"; id: number }
  /** A fault of the service itself. */
  | { type: "log"; line: string };
