// Values are imported from their own files, not the index: loading the schemas would take longer than the model.
import type { Progress, Result } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { hostMemory, judgeMemory } from "../../models/memory.js";
import { provenance } from "../../models/provenance.js";
import { type ResolvedModel, resolveModel } from "../../models/resolve.js";
import type { Model } from "../../native/index.js";
import { Artifacts } from "../artifacts.js";
import { StageClock } from "../stage-clock.js";
import type { LoadSettings, WorkerMessage, WorkerTask } from "./messages.js";

/** Runs one job in this process, from model id to result; failures become one sentence. */
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
  clock.add("process", Math.max(0, Date.now() - task.spawnedAt) / 1000); // the clock may have been set back
  const started = performance.now();
  const resolved = await resolveModel(config.model, {
    ...(config.revision !== undefined && { revision: config.revision }),
    onDownload: ({ done, total }) => progress({ stage: "download", done, total }),
  });
  if (resolved.repository !== null) clock.add("download", (performance.now() - started) / 1000);
  progress({ stage: "addon", done: 0, total: 0 });
  const [native, run, tokens, backend] = await clock.measure("addon", async () => {
    const binding = await import("../../native/index.js");
    const { runOf } = await import("../../operations/runs.js");
    const run = runOf(config.operation);
    const tokens = config.max_input_tokens + (run.generated?.(config as never) ?? 0);
    await prepareMemory(binding, resolved, tokens, task.load);
    return [binding, run, tokens, binding.backendInfo()] as const;
  });
  const { gpuLayers, devices } = task.load;
  const provenanceOf = (model: Model, findings: unknown, seconds: Record<string, number>) =>
    provenance(
      {
        ...config,
        config,
        revision: config.revision ?? null,
        layers:
          ("layers" in config ? config.layers : undefined) ??
          (findings === undefined ? undefined : run.layers?.(findings as never)) ??
          [],
      },
      { resolved, info: model.info, backend },
      seconds,
    );
  const { model, findings } = await withDeviceMemory(native, async () => {
    const model = await clock.measure("model", () =>
      native.Model.open(resolved.path, {
        gpuLayers,
        devices,
        onProgress: (fraction) => progress({ stage: "model", done: fraction, total: 1 }),
      }),
    );
    const artifacts = new Artifacts(task.folder);
    const openOther = async (id: string, revision?: string) => {
      const other = await resolveModel(id, {
        ...(revision !== undefined && { revision }),
        onDownload: ({ done, total }) => progress({ stage: "download", done, total }),
      });
      await prepareMemory(native, other, tokens, { ...task.load, rpc: undefined });
      return clock.measure("model", () => native.Model.open(other.path, { gpuLayers, devices }));
    };
    const input = { config, model, artifacts, progress, clock, openOther };
    if (task.part !== undefined) {
      const { computePart } = await import("../parts/compute.js");
      const facts = { provenance: provenanceOf(model, undefined, {}), versions: versionsOf(backend) };
      const file = await computePart(run.split, input, task.part, facts);
      return { model, findings: { artifacts: [file] } as never };
    }
    const findings = await run.run(input as never);
    return { model, findings: { ...(findings as object), artifacts: artifacts.names } };
  });
  // The process ends after this: unmapping the model first would only delay the answer.
  return {
    ...findings,
    provenance: provenanceOf(model, task.part === undefined ? findings : undefined, clock.seconds),
  } as Result;
}

/** Software that determines the numbers. */
const versionsOf = ({ llamaCpp, backend }: { llamaCpp: string; backend: string }) => ({
  "llama.cpp": llamaCpp,
  backend,
});

/**
 * Connects to the RPC servers, then checks that the model fits with a context of that many tokens. @throws UserError
 * if it does not
 */
async function prepareMemory(
  native: typeof import("../../native/index.js"),
  resolved: ResolvedModel,
  tokens: number,
  load: LoadSettings,
): Promise<void> {
  if (load.rpc !== undefined) {
    const { reachRpcServers } = await import("../../models/rpc.js");
    await native.connectRemotes(await reachRpcServers(load.rpc));
  }
  const weights = resolved.weights.reduce((sum, { bytes }) => sum + bytes, 0);
  if (load.force || weights < hostMemory().free / 4) return; // contexts of experiments are small
  const asked = { path: resolved.path, ctxSize: tokens, parallel: 1, embeddings: false };
  const gpuLayers = load.devices?.[0] === "none" ? 0 : load.gpuLayers;
  const layout = await native.estimateMemory({ ...asked, gpuLayers }).catch(() => []); // loading will report what is wrong
  const usable = layout.map((device) =>
    device.host || load.devices === undefined || load.devices.includes(device.name)
      ? device
      : { ...device, free: 0, total: 0 },
  );
  const { fits, sentence } = judgeMemory(usable);
  if (fits === "no") throw new UserError(sentence);
  if (fits === "tight") process.stderr.write(`${sentence}\n`); // to worker.log
}

/**
 * Adds each GPU's free memory to out-of-memory failures: other servers may use the rest.
 * @throws the errors of `run`
 */
async function withDeviceMemory<T>(
  native: typeof import("../../native/index.js"),
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const gpus = native.backendInfo().devices.filter(({ kind }) => kind === "gpu" || kind === "igpu");
    const memory =
      error instanceof native.NativeError && (error.code === "OUT_OF_MEMORY" || error.code === "MODEL_LOAD");
    if (!memory || gpus.length === 0) throw error;
    const free = gpus.map(
      ({ name, memoryFree, memoryTotal }) => `${name} ${freeText(memoryFree, memoryTotal)}`,
    );
    throw new UserError(
      `${error.message} Free on the GPUs: ${free.join(", ")}; start the Lab with a smaller --gpu-layers, or 0, to use less GPU memory.`,
    );
  }
}

function freeText(free: number, total: number): string {
  return `${Math.floor(free / 1e6)} of ${Math.floor(total / 1e6)} MB`;
}

/** Passes on new stages immediately, and steps within a stage at most ten times per second. */
export function throttled(progress: (progress: Progress) => void): (progress: Progress) => void {
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
