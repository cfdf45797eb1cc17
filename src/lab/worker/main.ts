import type { WorkerMessage, WorkerTask } from "./messages.js";

// The service's end is this process's end: no result has anywhere to go, and native threads may be deep in a
// computation that nothing else would stop.
// The whole group goes: the service made this process the leader of its own.
process.on("disconnect", () => {
  process.kill(process.platform === "win32" ? process.pid : -process.pid, "SIGKILL");
});
// A closed terminal or Ctrl-C is the service's business; it ends this process in order.
for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});

function tell(message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, undefined, undefined, () => resolve());
  });
}

process.once("message", async (task: WorkerTask) => {
  const { runJob } = await import("./run-job.js");
  await tell(await runJob(task, (progress) => void tell({ type: "progress", progress })));
});
