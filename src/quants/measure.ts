import { divergence, logSoftmax } from "../card/measure.js";
import { estimateMemory, Model } from "../native/index.js";
import { findTargets, type RefusedLine, type TargetLine, type TargetsTask } from "./targets.js";

/** One text in the reference and in a form. */
export interface TextLine {
  text: number;
  /** Predicted tokens: all but the first. */
  tokens: number;
  /** Sums over them: KL(reference || form), equal most probable tokens, and negative log-probabilities. */
  divergence: number;
  agreed: number;
  loss: [reference: number, form: number];
}

/** One round of one model: tokens per second. */
export interface SpeedLine {
  round: number;
  model: number;
  prompt: number;
  generation: number;
}

export interface TextTask {
  kind: "texts";
  reference: string;
  form: string;
  texts: readonly string[];
  /** Texts before this one are done. */
  from: number;
  mostTokens: number;
}

export interface SpeedTask {
  kind: "speed";
  models: readonly string[];
  rounds: number;
  /** Measurements before this one are done. */
  from: number;
  promptTokens: number;
  generatedTokens: number;
}

export interface MemoryTask {
  kind: "memory";
  model: string;
}

export type Task = TextTask | SpeedTask | MemoryTask | TargetsTask;

export type Line = TextLine | SpeedLine | TargetLine | RefusedLine | { memory: number };

/** Runs a task; lines come in order. @throws Error with a sentence for users */
export async function runTask(task: Task, onLine: (line: Line) => Promise<void>): Promise<void> {
  if (task.kind === "texts") return compareTexts(task, onLine);
  if (task.kind === "speed") return timeModels(task, onLine);
  if (task.kind === "targets") return findTargets(task, onLine);
  const devices = await estimateMemory({ path: task.model });
  const bytes = devices.reduce((sum, { weights, context, compute }) => sum + weights + context + compute, 0);
  await onLine({ memory: bytes });
}

async function compareTexts(task: TextTask, onLine: (line: TextLine) => Promise<void>): Promise<void> {
  const models = [await Model.open(task.reference), await Model.open(task.form)] as const;
  try {
    const options = { nCtx: task.mostTokens, nBatch: Math.min(256, task.mostTokens) };
    const contexts = [
      await models[0].createContext(options),
      await models[1].createContext(options),
    ] as const;
    for (const [text, words] of [...task.texts.entries()].slice(task.from)) {
      const [tokens, others] = [await models[0].tokenize(words), await models[1].tokenize(words)];
      if (tokens.length !== others.length || tokens.some((token, at) => token !== others[at])) {
        throw new Error(`The models tokenize text ${text + 1} differently (different vocabularies).`);
      }
      if (tokens.length < 2 || tokens.length > task.mostTokens) {
        throw new Error(
          `texts: 2 to ${task.mostTokens} tokens are possible, text ${text + 1} has ${tokens.length}.`,
        );
      }
      const request = { sequences: [{ tokens }], logits: "all" as const };
      const [one, two] = [await contexts[0].forward(request), await contexts[1].forward(request)];
      await onLine({ text, ...compared(tokens, one.logits!.data, two.logits!.data) });
    }
  } finally {
    await models[0].close();
    await models[1].close();
  }
}

/** @param one logits of the reference after each token, [tokens, vocabulary] @param two of the form */
export function compared(
  tokens: Int32Array,
  one: ArrayLike<number>,
  two: ArrayLike<number>,
): Omit<TextLine, "text"> {
  const width = one.length / tokens.length;
  const found = { tokens: tokens.length - 1, divergence: 0, agreed: 0 };
  const loss: [number, number] = [0, 0];
  for (let row = 0; row + 1 < tokens.length; row++) {
    const of = (logits: ArrayLike<number>) =>
      (logits as Float32Array).subarray(row * width, (row + 1) * width);
    const [a, b] = [logSoftmax(of(one)), logSoftmax(of(two))];
    found.divergence += divergence(a, b);
    found.agreed += Number(greatest(a) === greatest(b));
    const next = tokens[row + 1] as number;
    loss[0] -= a[next] as number;
    loss[1] -= b[next] as number;
  }
  return { ...found, loss };
}

function greatest(values: Float64Array): number {
  let at = 0;
  for (const [index, value] of values.entries()) if (value > (values[at] as number)) at = index;
  return at;
}

/** Round by round, one model after another: what else the machine does then falls on all of them. */
async function timeModels(task: SpeedTask, onLine: (line: SpeedLine) => Promise<void>): Promise<void> {
  const { models, rounds, promptTokens, generatedTokens } = task;
  for (let at = task.from; at < rounds * models.length; at++) {
    const [round, index] = [Math.floor(at / models.length), at % models.length];
    const model = await Model.open(models[index] as string);
    try {
      const { nVocab } = model.info;
      const tokens = Int32Array.from({ length: promptTokens }, (_, place) => (7919 * place + 13) % nVocab);
      const context = await model.createContext({
        nCtx: promptTokens + generatedTokens + 1,
        nBatch: promptTokens,
      });
      const pass = async (part: Int32Array) => {
        await context.advance({ tokens: part, layers: [], logits: true });
      };
      await pass(tokens); // pages of the file, and threads
      await context.reset();
      const began = performance.now();
      await pass(tokens);
      const prompted = performance.now();
      for (let step = 0; step < generatedTokens; step++) await pass(tokens.subarray(step, step + 1));
      const ended = performance.now();
      await onLine({
        ...{ round, model: index },
        prompt: (1000 * promptTokens) / (prompted - began),
        generation: (1000 * generatedTokens) / (ended - prompted),
      });
    } finally {
      await model.close();
    }
  }
}
