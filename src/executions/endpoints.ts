import { type Endpoint, HttpError } from "../http/index.js";
import type { ExecutionRecorder } from "./recorder.js";

const unlisted = "an inspector for people: records have no schema";

/** Recorded requests: list, get one, clear. For programs on this machine only: guard it with localAccess. */
export const executionEndpoints: readonly Endpoint<ExecutionRecorder>[] = [
  { at: "GET /executions", unlisted, answer: (executions) => executions.list() },
  {
    at: "GET /executions/{id}",
    unlisted,
    answer(executions, { params }) {
      const execution = executions.find(params.id as string);
      if (execution === undefined) throw new HttpError(404, "There is no such execution.");
      return execution;
    },
  },
  {
    at: "DELETE /executions",
    unlisted,
    answer(executions) {
      executions.clear();
      return { cleared: true };
    },
  },
];
