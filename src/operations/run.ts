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

/** Values of computed items. */
export interface Computed<Head, Item> {
  /** What all items share: everything besides the configuration that a result needs, equal in every part. */
  head: Head;
  items: Item[];
}

/**
 * How an operation's work divides into items that are computed independently, and how their values become its result. Statistics
 * (means, intervals) belong to `finish`, so that merged parts give the numbers of one machine. Plain data, numbers
 * and typed arrays only: parts are stored in files.
 */
export interface Split<C extends Config, R extends Result, Head = unknown, Item = unknown> {
  /** Number of items. */
  count(config: C): number;
  /** Computes some of the items, in the given order. */
  compute(input: OperationInput<C>, own: readonly number[]): Promise<Computed<Head, Item>>;
  /** The result of all items, in order. Needs no model. Writes the operation's artifacts. */
  finish(config: C, all: Computed<Head, Item>, artifacts: Artifacts): Promise<Findings<R>>;
}

/** How an operation is carried out in a worker. */
export interface Run<O extends Operation> {
  run(input: OperationInput<ConfigOf<O>>): Promise<Findings<ResultOf<O>>>;
  /** How the work divides into parts, for operations that can run on several machines. */
  split?: Split<ConfigOf<O>, ResultOf<O>>;
  /** Number of tokens that it generates after a text, for the memory estimate; 0 by default. */
  generated?(config: ConfigOf<O>): number;
  /** The blocks that a result is about, for operations whose configuration does not list them. */
  layers?(found: Findings<ResultOf<O>>): number[];
}
