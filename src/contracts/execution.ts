import Type, { type Static } from "typebox";
import { limits } from "./limits.js";
import { oneOf, orNull } from "./optional.js";

export const ExecutionStatus = oneOf("running", "completed", "failed", "cancelled");
export type ExecutionStatus = Static<typeof ExecutionStatus>;

/** One step of a request: a run of text of one kind, or an event. Times are Unix seconds. */
export const ExecutionEvent = Type.Object({
  id: Type.Integer(),
  kind: oneOf("thinking", "output", "tool", "error", "lifecycle"),
  text: Type.String(),
  time: Type.Number(),
  updated: Type.Number({ description: "When text was last added." }),
  choice: Type.Integer({ description: "Index of the choice this text belongs to." }),
});
export type ExecutionEvent = Static<typeof ExecutionEvent>;

const summary = {
  id: Type.String({ pattern: "^[0-9a-f]{32}$" }),
  parent_id: orNull(Type.String()),
  endpoint: Type.String(),
  started: Type.Number(),
  ended: orNull(Type.Number()),
  status: ExecutionStatus,
  model: Type.String(),
  thinking: orNull(Type.Boolean()),
  stream: Type.Boolean(),
  truncated: Type.Boolean({
    description:
      "Whether limits cut the record short; a lifecycle event marks where the recorded answer ends.",
  }),
  finish_reason: orNull(Type.String()),
  output_tokens: Type.Integer(),
  usage: orNull(Type.Record(Type.String(), Type.Unknown())),
  preview: Type.String({ maxLength: limits.execution_preview_characters }),
};

export const ExecutionSummary = Type.Object(summary, { title: "ExecutionSummary" });
export type ExecutionSummary = Static<typeof ExecutionSummary>;

export const Execution = Type.Object(
  {
    ...summary,
    input: Type.Unknown(),
    events: Type.Array(ExecutionEvent, { maxItems: limits.execution_events }),
  },
  { title: "Execution" },
);
export type Execution = Static<typeof Execution>;

export const ExecutionList = Type.Object(
  {
    executions: Type.Array(ExecutionSummary, { description: "Newest first." }),
    capacity: Type.Literal(limits.execution_history),
    text_limit: Type.Literal(limits.execution_text_bytes),
    dropped: Type.Integer({
      description: "Requests that were not recorded because every slot of the history was active.",
    }),
  },
  { title: "ExecutionList" },
);
export type ExecutionList = Static<typeof ExecutionList>;
