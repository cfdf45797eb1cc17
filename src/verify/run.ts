import { mkdtemp, rm } from "node:fs/promises";
import { arch, availableParallelism, cpus, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../contracts/version.js";
import { addonInUse, type BackendInfo, backendInfo } from "../native/index.js";
import { startTask, type TaskMessage } from "../native/task-process.js";
import type { Task } from "./check-model.js";
import { expectedFolder, modelNames } from "./expected.js";
import type { Found } from "./found.js";

/** One check of one model, at one place. */
export interface Check extends Found {
  model: string;
  /** The kernels' level of the processor, or the GPU that computed. */
  place: string;
}

/** A machine's result. */
export interface Verification {
  kind: "tapline verification";
  schema_version: 1;
  tapline: string;
  created: number;
  addon: { llama_cpp: string; backend: string; variant: string };
  machine: { platform: string; arch: string; processor: string; threads: number; devices: string[] };
  models: string[];
  /** Levels of the processor and GPUs. */
  places: string[];
  checks: Check[];
  seconds: number;
}

export interface VerifyOptions {
  /** Of the expected values; default: the package's. */
  folder?: string;
  /** Default: all. */
  models?: readonly string[];
  signal?: AbortSignal;
  onProgress?: (what: string, done: number, total: number) => void;
  onCheck?: (check: Check) => void;
}

export interface Place {
  name: string;
  env: NodeJS.ProcessEnv;
  task: Pick<Task, "device" | "gpus" | "live" | "forms">;
}

/** A hang, not slowness: a model takes about a second. */
const timeoutMs = 120_000;

/** Checks tiny models of ten architectures on this machine against values that llama.cpp's own program printed. */
export async function verifyMachine(options: VerifyOptions = {}): Promise<Verification> {
  const began = performance.now();
  const folder = options.folder ?? expectedFolder;
  const models = options.models ?? modelNames(folder);
  const places = placesOf(backendInfo(), addonInUse().levels);
  const checks: Check[] = [];
  const total = models.length * places.length;
  let done = 0;
  for (const place of places) {
    for (const model of models) {
      options.signal?.throwIfAborted();
      options.onProgress?.(`${model}, ${place.name}`, done++, total);
      for (const found of await runTask(model, folder, place, options.signal)) {
        const check = { ...found, model, place: place.name };
        checks.push(check);
        options.onCheck?.(check);
      }
    }
  }
  const { llamaCpp, backend, devices } = backendInfo();
  return {
    ...{ kind: "tapline verification", schema_version: 1, tapline: version, created: Date.now() / 1000 },
    addon: { llama_cpp: llamaCpp, backend, variant: addonInUse().variant },
    machine: {
      ...{ platform: platform(), arch: arch(), processor: cpus()[0]?.model.trim() ?? "unknown" },
      threads: availableParallelism(),
      devices: devices.filter(({ kind }) => kind !== "cpu").map(({ description }) => description),
    },
    ...{ models: [...models], places: places.map(({ name }) => name), checks },
    seconds: (performance.now() - began) / 1000,
  };
}

/** Every level of the processor's kernels that runs here, the one in use first, then each GPU, whole and half. */
export function placesOf(
  { level, devices }: Pick<BackendInfo, "level" | "devices">,
  levels: readonly string[] = [],
): Place[] {
  const cards = devices.filter(({ kind }) => kind !== "cpu");
  const gpus = cards.length > 0;
  const first: Place = { name: level ?? "processor", env: {}, task: { gpus, live: true, forms: true } };
  // Levels are sorted, the best first, and a processor that runs one runs all after it.
  const lower = level === undefined ? [] : levels.slice(levels.indexOf(level) + 1);
  const others = lower.map((name): Place => {
    return { name, env: { TAPLINE_LEVEL: name }, task: { gpus, live: false, forms: true } };
  });
  const parts = cards.flatMap(({ name }, index): Place[] =>
    (["whole", "half"] as const).map((part) => {
      const whole = part === "whole";
      const task = { device: { name, index, part }, gpus, live: whole, forms: whole };
      return { name: whole ? name : `half on ${name}`, env: {}, task };
    }),
  );
  return [first, ...others, ...parts];
}

/** Runs one model's checks in a process; its crash or hang is a failed check. */
async function runTask(
  model: string,
  folder: string,
  { env, task }: Place,
  signal: AbortSignal | undefined,
): Promise<Found[]> {
  const scratch = await mkdtemp(join(tmpdir(), "tapline-verify-"));
  const found: Found[] = [];
  const { child, lastLines, kill, release } = startTask(import.meta.url, env, signal);
  try {
    const end = await new Promise<string>((resolve) => {
      const timer = setTimeout(() => {
        resolve(`it did not end within ${timeoutMs / 1000} s`);
        kill();
      }, timeoutMs);
      let last: string | undefined;
      child.on("message", (message: TaskMessage<{ found: Found }>) => {
        if ("found" in message) found.push(message.found);
        else last = "failed" in message ? message.failed : "";
      });
      child.on("error", (error) => resolve(error.message));
      child.on("close", (code, signalName) => {
        clearTimeout(timer);
        const lines = lastLines(2).join(" ");
        resolve(last ?? `its process ended with ${signalName ?? code}${lines && `: ${lines}`}`);
      });
      const whole: Task = { model, folder, scratch, ...task };
      child.send(whole);
    });
    signal?.throwIfAborted();
    if (end !== "") found.push({ check: "run", ok: false, distance: 0, allowed: 0, problem: end });
    return found;
  } finally {
    release();
    await rm(scratch, { recursive: true, force: true });
  }
}
