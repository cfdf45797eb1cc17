import { createRouter, HttpError, type Routes } from "../http/index.js";
import type { ExecutionRecorder } from "./recorder.js";

/** What requests did: the list, one record, forgetting. Programs on this machine only: guard it with localAccess. */
export function executionRoutes(executions: ExecutionRecorder): Routes {
  const router = createRouter();
  router.get("/executions", (ctx) => {
    ctx.body = executions.list();
  });
  router.get("/executions/:id", (ctx) => {
    const execution = executions.find(ctx.params.id as string);
    if (execution === undefined) throw new HttpError(404, "There is no such execution.");
    ctx.body = execution;
  });
  router.delete("/executions", (ctx) => {
    executions.clear();
    ctx.body = { cleared: true };
  });
  return router;
}
