// Values come from their own files, not from the index: the schemas would cost a worker more than its model.
import type { Progress, Result } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { provenance } from "../../models/provenance.js";
import { resolveModel } from "../../models/resolve.js";
import { Artifacts } from "../artifacts.js";
import { StageClock } from "../stage-clock.js";
import type { WorkerMessage, WorkerTask } from "./messages.js";

/** Runs one job in this process, from model id to result; what goes wrong becomes one sentence. */
export async function runJob(
  task: WorkerTask,
  progress: (progress: Progress) => void,
): Promise<Exclude<WorkerMessage, { type: "progress" }>> {
  try {
    return { type: "result", result: await work(task, throttled(progress)) };
  } catch (error) {
    if (error instanceof UserError || (error as Error | null)?.name === "NativeError") {
      return { type: "failure", message: (error as Error).message };
    }
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    const reason = error instanceof Error ? (error.message.split("\n")[0] as string) : String(error);
    return {
      type: "failure",
      message: `The worker failed: ${reason.replace(/\.$/, "")}; its worker.log has the details.`,
    };
  }
}

async function work(task: WorkerTask, progress: (progress: Progress) => void): Promise<Result> {
  const { config } = task;
  const clock = new StageClock();
  clock.add("process", (Date.now() - task.spawnedAt) / 1000);
  const resolved = await resolveModel(config.model);
  progress({ stage: "addon", done: 0, total: 0 });
  const [native, { runOperation }, backend] = await clock.measure("addon", async () => {
    const binding = await import("../../native/index.js");
    return [binding, await import("../operations/index.js"), binding.backendInfo()] as const;
  });
  const model = await clock.measure("model", () =>
    native.Model.open(resolved.path, {
      onProgress: (fraction) => progress({ stage: "model", done: fraction, total: 1 }),
    }),
  );
  const artifacts = new Artifacts(task.folder);
  const findings = await runOperation({ config, model, artifacts, progress, clock });
  // The process ends here: unmapping the model first would only make the answer late.
  return {
    ...findings,
    artifacts: artifacts.names,
    provenance: provenance(
      { ...config, config, revision: config.revision ?? null },
      { resolved, info: model.info, backend },
      clock.seconds,
    ),
  } as Result;
}

/** Passes on a new stage at once and steps within one at most ten times a second. */
function throttled(progress: (progress: Progress) => void): (progress: Progress) => void {
  let stage = "";
  let last = 0;
  return (next) => {
    const now = performance.now();
    if (next.stage === stage && now - last < 100) return;
    stage = next.stage;
    last = now;
    progress(next);
  };
}
