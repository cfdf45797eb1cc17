import Type, { type Static } from "typebox";
import {
  type ConfigOf,
  contracts,
  type Operation,
  operations,
  type Result,
  type ResultOf,
  type SubmissionOf,
} from "../operations/contracts.js";
import { PatchGrowth } from "../operations/patch_sweep/contract.js";
import { limits } from "./limits.js";
import { optional, orNull } from "./optional.js";

export const jobIdPattern = "^[0-9a-f]{32}$";

export const statuses = ["queued", "running", "completed", "failed", "cancelled", "interrupted"] as const;
export type JobStatus = (typeof statuses)[number];

/** Final states. */
export const terminalStatuses: readonly JobStatus[] = ["completed", "failed", "cancelled", "interrupted"];

const seconds = (description: string) => Type.Number({ description: `${description}, in Unix seconds.` });

export const Progress = Type.Object(
  {
    stage: Type.String({ description: "Current stage of the job." }),
    done: Type.Number(),
    total: Type.Number({ description: "0 if unknown." }),
    growth: Type.Optional(PatchGrowth),
  },
  { title: "Progress" },
);
export type Progress = Static<typeof Progress>;

const summaryFields = {
  id: Type.String({ pattern: jobIdPattern }),
  created: seconds("When it was submitted"),
  started: orNull(Type.Number(), {
    description: "When its worker started; null until then.",
  }),
  ended: orNull(Type.Number(), {
    description: "When it reached a final state; null until then.",
  }),
  status: Type.Enum([...statuses]),
  operation: Type.Enum([...operations]),
  model: Type.String(),
  progress: Progress,
};

const error = optional.String({ description: "One sentence: why it failed or ended early." });

export const JobSummary = Type.Object({ ...summaryFields, error }, { title: "JobSummary" });
export type JobSummary = Static<typeof JobSummary>;

const union = (part: "submission" | "result") => operations.map((operation) => contracts[operation][part]);

export const Submission = Type.Unsafe<SubmissionOf<Operation>>(
  Type.Union(union("submission"), {
    title: "Submission",
    description: "The experiment to run; the operation determines which fields apply.",
  }),
);

export const Job = Type.Object(
  {
    ...summaryFields,
    config: Submission,
    result: Type.Optional(Type.Unsafe<Result>(Type.Union(union("result")))),
    error,
  },
  { title: "Job", description: "One experiment: `result` when completed, `error` when failed." },
);
/** A job as the service stores it: defaults filled in, with the configuration and result of its operation. */
export type JobOf<O extends Operation> = {
  [K in O]: Omit<Static<typeof Job>, "operation" | "config" | "result"> & {
    operation: K;
    config: ConfigOf<K>;
    result?: ResultOf<K>;
  };
}[O];
export type Job = JobOf<Operation>;

export const JobList = Type.Object(
  { jobs: Type.Array(JobSummary, { maxItems: limits.job_list, description: "Newest first." }) },
  { title: "JobList" },
);
export const Deleted = Type.Object({ deleted: Type.Literal(true) }, { title: "Deleted" });
export const CancelBody = Type.Object({}, { additionalProperties: false, title: "CancelBody" });
export const ErrorBody = Type.Object(
  { error: Type.String({ description: "One sentence." }) },
  { title: "Error" },
);
