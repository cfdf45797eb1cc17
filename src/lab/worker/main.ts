import type { WorkerMessage, WorkerTask } from "./messages.js";

// If the service ends, so does this process: its result has nowhere to go, and nothing else would stop native threads
// in a computation. Kills the whole group, whose leader the service made this process.
process.on("disconnect", () => {
  process.kill(process.platform === "win32" ? process.pid : -process.pid, "SIGKILL");
});
// The service handles a closed terminal and Ctrl-C, and ends this process cleanly.
for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});

function send(message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, undefined, undefined, () => resolve());
  });
}

process.once("message", async (task: WorkerTask) => {
  const { runJob } = await import("./run-job.js");
  await send(await runJob(task, (progress) => void send({ type: "progress", progress })));
});
