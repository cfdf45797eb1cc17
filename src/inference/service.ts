import type { SamplingDefaults } from "../contracts/chat.js";
import { ExecutionRecorder } from "../executions/index.js";
import { Admission } from "./admission.js";
import { type Captured, Captures } from "./capture.js";
import { Forwards } from "./forward.js";
import type { LiveLibrary } from "./live/library.js";
import { RowStore } from "./live/row-store.js";
import { PromptScores } from "./prompt-scores.js";
import { SharedFiles } from "./shared-files.js";
import { ServingStats } from "./stats.js";
import { Weights } from "./weights.js";

/** Shared state of an inference server's routes. */
export interface InferenceService extends Captured {
  /** Whether there is a draft model. */
  readonly drafts: boolean;
  /** Vectors and probes for requests. */
  readonly library: LiveLibrary;
  /** Captures of the resident model. */
  readonly captures: Captures;
  /** Forward passes of texts. */
  readonly forwards: Forwards;
  /** Their results in shared memory. */
  readonly files: SharedFiles;
  /** The model's weights as arrays. */
  readonly weights: Weights;
  /** Captured activations. */
  readonly rows: RowStore;
  readonly apiKey: string | undefined;
  /** Origins whose pages may use /v1. */
  readonly cors: readonly string[];
  /** Alternative names of the model. */
  readonly aliases: readonly string[];
  /** Profiles that other machines may use and list. */
  readonly offered: readonly string[];
  /** Sampling defaults of requests. */
  readonly sampling: SamplingDefaults;
  /** Scores of prompts. */
  readonly scores: PromptScores;
  readonly admission: Admission;
  readonly executions: ExecutionRecorder;
  /** Unix seconds. */
  readonly startedAt: number;
}

type Optional = "drafts" | "apiKey" | "cors" | "aliases" | "offered" | "sampling" | "captureWaitMs";

export type ServiceParts = Pick<
  InferenceService,
  "engine" | "backend" | "resolved" | "requestedModel" | "requestedRevision" | "library"
> & { [part in Optional]?: InferenceService[part] | undefined } & {
  waiting?: number | undefined;
  home?: string | undefined;
};

export function createService(parts: ServiceParts, defaultCaptureWaitMs: number): InferenceService {
  const { waiting, home, drafts = false, apiKey, cors = [], aliases = [], offered = [], ...others } = parts;
  const { sampling = {}, ...rest } = others;
  const files = new SharedFiles();
  const service: Omit<InferenceService, "captures"> = {
    ...rest,
    ...{ drafts, apiKey, cors, aliases, offered, sampling },
    files,
    forwards: new Forwards(parts.engine, parts.library, files),
    weights: new Weights(parts.resolved, parts.library.model, home),
    rows: new RowStore(),
    scores: new PromptScores(parts.engine),
    stats: new ServingStats(),
    admission: new Admission(parts.engine.info.slots, waiting),
    executions: new ExecutionRecorder(),
    startedAt: Math.floor(Date.now() / 1000),
    captureWaitMs: parts.captureWaitMs ?? defaultCaptureWaitMs,
  };
  return Object.assign(service, { captures: new Captures(service) });
}
