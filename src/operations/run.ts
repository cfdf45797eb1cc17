import type { Progress } from "../contracts/index.js";
import type { Artifacts } from "../lab/artifacts.js";
import type { StageClock } from "../lab/stage-clock.js";
import type { Model } from "../native/index.js";
import type { Config, ConfigOf, Operation, Result, ResultOf } from "./contracts.js";

/** What an operation works with. It knows no HTTP, no process and no place of its own on disk. */
export interface OperationInput<C extends Config> {
  config: C;
  model: Model;
  artifacts: Artifacts;
  progress: (progress: Progress) => void;
  /** Opens another model in the same process, for what compares two; what was resolved comes with it. */
  openOther: (id: string, revision?: string) => Promise<Model>;
  /** Ends the operation between and inside native calls; a worker is rather killed. */
  signal?: AbortSignal;
  /** Books time under "compute" and "artifact". */
  clock: StageClock;
}

/** What an operation finds out; names of artifacts and provenance are added by whoever runs it. */
export type Findings<R extends Result> = Omit<R, "artifacts" | "provenance">;

/** How an operation is carried out in a worker. */
export interface Run<O extends Operation> {
  run(input: OperationInput<ConfigOf<O>>): Promise<Findings<ResultOf<O>>>;
  /** Tokens that it generates after a text, for the memory that it needs; none unless told otherwise. */
  generated?(config: ConfigOf<O>): number;
  /** The blocks that it was about, where its configuration lists none. */
  layers?(found: Findings<ResultOf<O>>): number[];
}
