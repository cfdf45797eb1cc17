import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type CompletedJob, Lab, ServingModel } from "../../client/index.js";
import { writeWhole } from "../../client/whole-file.js";
import type { Capabilities, CaptureResult } from "../../contracts/index.js";
import { limits } from "../../contracts/limits.js";
import { spread, spreadLayers } from "../../findings/layers.js";
import { unwritable } from "../output.js";
import { serveHere } from "../own-server.js";
import { makeFolder } from "../run-experiment.js";

export interface DemoOptions {
  model: string;
  prompt: string;
  question: string;
  /** Blocks to inspect; evenly spread by default. */
  layers?: number[];
  /** Output folder. */
  out: string;
  signal: AbortSignal;
  onStage: (stage: string) => void;
}

/** The demo's results, as printed by `--json`. */
export interface DemoReport {
  services: { inference: string; lab: string };
  model: Capabilities;
  chat: {
    question: string;
    thinking: string;
    answer: string;
    finish_reason: string | null;
    seconds: number;
  };
  capture: CaptureResult;
  /** Whether the resident model was captured between the question and the end of its answer. */
  captured_while_answering: boolean;
  job: CompletedJob<"inspect">;
  /** Largest difference between the norms of the resident model and of the job's copy, relative to the job's. */
  largest_norm_difference: number;
  /** Null if they could not be written. */
  files: { activations: string; report: string } | null;
  seconds: number;
}

export interface Demonstrated {
  report: DemoReport;
  /** Why files are missing. */
  unwritten?: unknown;
}

/** Limit for models that think at length. */
const answerTokens = 256;
const captureAttempts = 5;

/**
 * Starts both services on free ports, asks the model, captures it while it answers, runs an inspect job, and
 * writes the results. Services and jobs have ended when the promise settles, even after an error.
 */
export async function runDemo(options: DemoOptions): Promise<{ report: DemoReport; unwritten?: unknown }> {
  const started = performance.now();
  // Checks that the folder is writable before computing anything.
  const folder = await makeFolder(resolve(options.out));
  const closers: Array<() => Promise<unknown>> = [];
  let done = false;
  try {
    const home = await mkdtemp(join(tmpdir(), "tapline-demo-"));
    closers.push(() => rm(home, { recursive: true, force: true }));
    const { inference, lab } = await startServices(options, home, closers);
    const serving = new ServingModel(inference);
    const model = await serving.capabilities({ signal: options.signal });
    const layers = options.layers ?? spreadLayers(model.n_layer ?? 0, limits.layers);

    options.onStage(`asking ${model.model} and capturing its activations`);
    const [{ chat, capture, duringAnswer }, { job, download }] = await Promise.all([
      askAndCapture(serving, model.model as string, spread(layers, limits.capture_layers), options),
      inspect(new Lab(lab), layers, options),
    ]);
    const files = {
      activations: join(folder.path, "activations.npz"),
      report: join(folder.path, "report.json"),
    };
    const report: DemoReport = {
      services: { inference, lab },
      model,
      chat,
      capture,
      captured_while_answering: duringAnswer,
      job,
      largest_norm_difference: largestDifference(capture, job),
      files,
      seconds: (performance.now() - started) / 1000,
    };
    done = true;
    return await write(report, files, download, options.signal);
  } finally {
    if (!done) await folder.undo();
    options.onStage("stopping the services");
    for (const close of closers.reverse()) await close();
  }
}

async function startServices(
  { model, signal, onStage }: DemoOptions,
  home: string,
  closers: Array<() => Promise<unknown>>,
): Promise<{ inference: string; lab: string }> {
  onStage("starting the services");
  const starting = serveHere(model, onStage, { signal });
  // The Lab's modules load while the serving process loads the model.
  const [serving, { startLab }] = await Promise.all([starting, import("../../lab/index.js")]);
  closers.push(() => serving.close());
  const lab = await startLab({ port: 0, home, backend: serving.backend });
  closers.push(() => lab.close());
  return { inference: serving.url, lab: lab.url };
}

/**
 * Sends the question, then the capture, which runs on the generation thread between two steps of the answer. A tiny model
 * may finish its answer before that; then both are sent again, the capture first.
 */
async function askAndCapture(
  serving: ServingModel,
  model: string,
  layers: number[],
  { prompt, question, signal }: DemoOptions,
) {
  const timed = async <T>(work: Promise<T>) => ({ value: await work, at: performance.now() });
  for (let attempt = 1; ; attempt++) {
    const asking = () => timed(ask(serving, question, signal));
    const capturing = () => timed(serving.inspect(prompt, { model, layers, signal }));
    const ahead = attempt > 1 ? capturing() : undefined;
    const chat = asking();
    const capture = ahead ?? capturing();
    const [answer, states] = await Promise.all([chat, capture]);
    const duringAnswer = states.at < answer.at;
    if (duringAnswer || attempt === captureAttempts) {
      return { chat: answer.value, capture: states.value, duringAnswer };
    }
  }
}

async function ask(
  serving: ServingModel,
  question: string,
  signal: AbortSignal,
): Promise<DemoReport["chat"]> {
  const asked = performance.now();
  const chat = { question, thinking: "", answer: "", finish_reason: null as string | null };
  const request = {
    temperature: 0,
    max_tokens: answerTokens,
    chat_template_kwargs: { enable_thinking: true },
  };
  for await (const delta of serving.chat([{ role: "user", content: question }], { request, signal })) {
    chat.thinking += delta.reasoning;
    chat.answer += delta.content;
    chat.finish_reason = delta.finishReason ?? chat.finish_reason;
  }
  return { ...chat, seconds: (performance.now() - asked) / 1000 };
}

async function inspect(lab: Lab, layers: number[], { model, prompt, signal }: DemoOptions) {
  const submitted = await lab.inspect(model, prompt, { layers }, { signal });
  const job = await lab.wait(submitted, { intervalMs: 25, signal });
  const download = (destination: string) => lab.artifact(job.id, "activations.npz", destination, { signal });
  return { job, download };
}

/** Writes the results; the demo can also be shown if that fails. */
async function write(
  report: DemoReport,
  files: NonNullable<DemoReport["files"]>,
  download: (destination: string) => Promise<unknown>,
  signal: AbortSignal,
): Promise<Demonstrated> {
  let path = files.activations;
  try {
    await download(path);
    path = files.report;
    await writeWhole(path, [Buffer.from(`${JSON.stringify(report, null, 2)}\n`)]);
    return { report };
  } catch (error) {
    signal.throwIfAborted();
    return { report: { ...report, files: null }, unwritten: unwritable(path, error) };
  }
}

/** Largest relative difference between corresponding norms. */
function largestDifference(capture: CaptureResult, job: CompletedJob<"inspect">): number {
  let largest = 0;
  for (const { layer, norms } of capture.layers) {
    const own = job.result.layers.find((candidate) => candidate.layer === layer)?.norms ?? [];
    own.forEach((norm, index) => {
      largest = Math.max(largest, Math.abs((norms[index] ?? Number.NaN) - norm) / norm);
    });
  }
  return largest;
}
