import { join } from "node:path";
import { type Context, type Edit, Model, quantise } from "../native/index.js";
import { checkLive } from "./check-live.js";
import { distance } from "./compare.js";
import { type Expected, type PrintedPass, quantisedForms, readExpected } from "./expected.js";
import { allowed, type Found } from "./found.js";
import { randomRow, writeTinyModel } from "./tiny-model.js";

/** One process's work. */
export interface Task {
  model: string;
  /** Of the expected values and the heads of the models' files. */
  folder: string;
  /** For the model's file; the caller removes it. */
  scratch: string;
  /** A GPU and how much of the model it holds; by default the processor computes. */
  device?: { name: string; index: number; part: "whole" | "half" };
  /** Whether the machine has GPUs at all. */
  gpus: boolean;
  /** Also through the serving engine. */
  live: boolean;
  /** Also quantised. */
  forms: boolean;
}

/** One micro-batch holds a whole text. */
const settings = { nCtx: 512, nBatch: 256, maxSequences: 4 } as const;

/** Runs a task's checks; each compares with values that llama.cpp's own program printed. */
export async function checkModel(task: Task, onCheck: (found: Found) => void): Promise<void> {
  const expected = readExpected(task.model, task.folder);
  const path = join(task.scratch, `${task.model}.gguf`);
  const sha256 = await writeTinyModel(join(task.folder, `${task.model}.head`), path);
  const same = sha256 === expected.sha256;
  const other = `its SHA-256 is ${sha256.slice(0, 12)}…, recorded ${expected.sha256.slice(0, 12)}…`;
  onCheck({ check: "model file", ok: same, distance: 0, allowed: 0, problem: same ? "" : other });
  const bound = task.device === undefined ? allowed.processor : allowed.device;
  await withModel(path, task, async (subject) => {
    onCheck(await blockOutputs(subject, expected, bound));
    onCheck(await edits(subject, expected, bound));
    onCheck(await oneBatch(subject, expected, bound));
  });
  if (task.live) {
    const steer = controlVector(expected.steered.layer, expected.plain.blocks[0]?.width as number);
    const layers = expected.plain.blocks.length + 1;
    const gpu = task.device && { index: task.device.index, layers };
    onCheck(await checkLive(path, expected, steer, { gpus: task.gpus, ...(gpu && { gpu }) }));
  }
  if (!task.forms) return;
  for (const form of quantisedForms) {
    const pass = expected.forms[form];
    if (pass === undefined) continue;
    const to = join(task.scratch, `${task.model}-${form}.gguf`);
    await quantise({ from: path, to, form });
    await withModel(to, task, async (subject) => {
      const worst = worstOf(await passOf(subject, expected.tokens), pass, "plain");
      onCheck(judged(form, [worst], allowed.forms));
    });
  }
}

interface Subject {
  context: Context;
  layers: number[];
  width: number;
}

/** Opens the model where the task computes. @throws Error if a GPU does not get its blocks */
async function withModel(path: string, { device }: Task, work: (subject: Subject) => Promise<void>) {
  let model = await Model.open(path, { devices: ["none"], gpuLayers: 0 });
  try {
    const { nLayer, nEmbd } = model.info;
    if (device !== undefined) {
      await model.close();
      // The output head counts as a layer, and goes first.
      const gpuLayers = 1 + (device.part === "whole" ? nLayer : nLayer >> 1);
      model = await Model.open(path, { devices: [device.name], gpuLayers });
      const there = model.info.devices.find(({ name }) => name === device.name)?.blocks ?? 0;
      if (there !== gpuLayers - 1) throw new Error(`${device.name} has ${there} blocks of ${gpuLayers - 1}`);
    }
    const context = await model.createContext(settings);
    const { supported, reason } = context.blockOutputs;
    if (!supported) throw new Error(reason);
    await work({ context, layers: Array.from({ length: nLayer }, (_, layer) => layer), width: nEmbd });
  } finally {
    await model.close();
  }
}

/** Block outputs and logits of one pass. */
interface Pass {
  blocks: Float32Array[];
  logits: Float32Array;
}

async function passOf(
  { context, layers }: Subject,
  tokens: readonly number[],
  edits: readonly Edit[] = [],
): Promise<Pass> {
  await context.reset();
  const request = { tokens: Int32Array.from(tokens), layers, rows: "all" as const, logits: true };
  const { layers: captured, logits } = await context.advance({ ...request, edits });
  return { blocks: captured.map(({ states }) => states!.data), logits: logits as Float32Array };
}

/** The largest distance in a pass, and where it is. */
interface Worst {
  distance: number;
  place: string;
}

/** @param from blocks before this one are not compared */
function worstOf(pass: Pass, printed: PrintedPass, what: string, from = 0): Worst {
  const all = printed.blocks.map((block, layer) => ({
    distance: layer < from ? 0 : distance(pass.blocks[layer] as Float32Array, block),
    place: `${what}, block ${layer}`,
  }));
  all.push({ distance: distance(pass.logits, printed.logits), place: `${what}, logits` });
  return all.reduce((most, each) => (each.distance > most.distance ? each : most));
}

function judged(check: string, worst: readonly Worst[], bound: number, problems: string[] = []): Found {
  const most = worst.reduce((a, b) => (b.distance > a.distance ? b : a));
  const far = worst
    .filter(({ distance }) => !(distance <= bound))
    .map(({ distance, place }) => `${place}: off by ${distance.toPrecision(2)}`);
  const problem = [...far, ...problems].join("; ");
  return { check, ok: problem === "", distance: most.distance, allowed: bound, problem };
}

/** Every block's output and the logits, of two texts; and capturing them changes no logit. */
async function blockOutputs(subject: Subject, { tokens, plain, donor }: Expected, bound: number) {
  const pass = await passOf(subject, tokens);
  const other = await passOf(subject, donor.tokens);
  await subject.context.reset();
  const bare = { tokens: Int32Array.from(tokens), layers: [], logits: true };
  const { logits } = await subject.context.advance(bare);
  const moved = sameBits(logits as Float32Array, pass.logits) ? [] : ["capturing changes the logits"];
  const worst = [worstOf(pass, plain, "text 1"), worstOf(other, donor.pass, "text 2")];
  return judged("block outputs", worst, bound, moved);
}

/** Steering is llama.cpp's control vector; a block with another text's activations continues that text. */
async function edits(subject: Subject, { tokens, plain, donor, steered }: Expected, bound: number) {
  const { layers, width } = subject;
  const steering = await passOf(subject, tokens, [controlVector(steered.layer, width)]);
  const donors = await passOf(subject, donor.tokens);
  const layer = steered.layer;
  const rows = tokens.map((_, position) => ({
    layer,
    positions: [[position, position]] as const,
    scale: 0,
    vector: (donors.blocks[layer] as Float32Array).slice(position * width, (position + 1) * width),
  }));
  const patched = await passOf(subject, tokens, rows);
  // Rows written back as they are.
  const neutral = layers.map((each) => ({ layer: each, positions: "all" as const, scale: 1 }));
  const written = await passOf(subject, tokens, neutral);
  const unedited = await passOf(subject, tokens);
  const problems = sameBits(written.logits, unedited.logits) ? [] : ["a neutral edit changes the logits"];
  const effect = distance(steering.logits, plain.logits);
  if (!(effect >= allowed.effect)) problems.push(`steering changes the logits by ${effect} only`);
  // A capture at the edited block has the activations before the edit.
  const worst = [
    worstOf(steering, steered.pass, `steered at block ${layer}`, layer + 1),
    worstOf(patched, donor.pass, `patched at block ${layer}`, layer + 1),
  ];
  return judged("edits", worst, bound, problems);
}

/** Three texts in one batch, one of them edited: each is as alone. */
async function oneBatch(subject: Subject, { tokens, plain, donor, steered }: Expected, bound: number) {
  const { context, layers, width } = subject;
  const sequences = [
    { tokens: Int32Array.from(tokens) },
    { tokens: Int32Array.from(tokens), edits: [controlVector(steered.layer, width)] },
    { tokens: Int32Array.from(donor.tokens) },
  ];
  const captures = layers.map((layer) => ({ layer, point: "block_out" as const }));
  const { captures: found, logits } = await context.forward({ sequences, captures, logits: "last" });
  const names = ["plain next to an edited text", "edited next to a plain text", "a different text"];
  const worst = [plain, steered.pass, donor.pass].map((printed, index) => {
    const rows = tokens.length * width;
    const of = (values: Float32Array | Uint16Array) =>
      (values as Float32Array).subarray(index * rows, (index + 1) * rows);
    const size = logits!.shape[1] as number;
    const pass = {
      blocks: found.map(({ values }) => of(values)),
      logits: (logits!.data as Float32Array).subarray(index * size, (index + 1) * size),
    };
    return worstOf(pass, printed, names[index] as string);
  });
  return judged("one batch", worst, bound);
}

/** The control vector of the expected values. */
export function controlVector(layer: number, width: number): Edit {
  return { layer, vector: randomRow("control vector", width, 2), positions: "all" };
}

function sameBits(a: Float32Array, b: Float32Array): boolean {
  const bytes = ({ buffer, byteOffset, byteLength }: Float32Array) =>
    Buffer.from(buffer, byteOffset, byteLength);
  return Buffer.compare(bytes(a), bytes(b)) === 0;
}
