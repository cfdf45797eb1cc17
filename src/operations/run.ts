import type { Progress } from "../contracts/index.js";
import type { Artifacts } from "../lab/artifacts.js";
import type { StageClock } from "../lab/stage-clock.js";
import type { Model } from "../native/index.js";
import type { Config, ConfigOf, Operation, Result, ResultOf } from "./contracts.js";

/** What an operation works with. An operation is independent of HTTP, processes and paths on disk. */
export interface OperationInput<C extends Config> {
  config: C;
  model: Model;
  artifacts: Artifacts;
  progress: (progress: Progress) => void;
  /** Opens another model in the same process, for operations that compare two. Also records what the id resolved to. */
  openOther: (id: string, revision?: string) => Promise<Model>;
  /** Ends the operation between and inside native calls. The Lab kills its worker instead. */
  signal?: AbortSignal;
  /** Measures time spent in "compute" and "artifact". */
  clock: StageClock;
}

/** An operation's result without artifact names and provenance, which the worker adds. */
export type Findings<R extends Result> = Omit<R, "artifacts" | "provenance">;

/** How an operation is carried out in a worker. */
export interface Run<O extends Operation> {
  run(input: OperationInput<ConfigOf<O>>): Promise<Findings<ResultOf<O>>>;
  /** Number of tokens that it generates after a text, for the memory estimate; 0 by default. */
  generated?(config: ConfigOf<O>): number;
  /** The blocks that a result is about, for operations whose configuration does not list them. */
  layers?(found: Findings<ResultOf<O>>): number[];
}
