/**
 * Checks one model and prints the result as JSON. A separate process, because a crash is a result, too:
 *   node --import tsx test/verify/architectures/check-model.ts MODEL LLAMA_EVAL_CALLBACK
 */
import { type Context, type Edit, Model } from "../../../src/native/index.js";
import {
  absoluteSum,
  allFinite,
  floatSum,
  randomSource,
  randomVector,
  relativeDistance,
  sameBits,
  softmax,
  totalVariation,
} from "./arithmetic.js";
import { attribution } from "./attribution.js";
import { attention, blockPoints } from "./block-points.js";
import { type PrintedTensor, runEvalCallback, settings } from "./eval-callback.js";
import { explain } from "./explain.js";
import { generate } from "./generate.js";
import { type Check, type ModelReport, reportOf, tolerances } from "./report.js";
import { routing } from "./routing.js";
import { wiringOf } from "./wiring.js";

export const prompt = "The quick brown fox jumps over the lazy dog and then it sleeps";

export interface Subject {
  model: Model;
  context: Context;
  tokens: Int32Array;
  layers: number[];
  /** Logits after the last token of a pass that captures nothing. */
  plain: Float32Array;
  /** The first output of the same pass, every layer and every row: Float32Array [tokens, hidden] a layer. */
  states: Float32Array[];
}

async function checkModel(path: string, tool: string): Promise<ModelReport> {
  const model = await Model.open(path, { gpuLayers: 0 });
  const context = await model.createContext({ ...settings, maxSequences: 8 });
  const report = reportOf(model, context);
  report.wiring = await wiringOf(path, report.form ?? []);
  // Flash attention keeps no weights: whether there are any is seen without it.
  const keeping = await model.createContext({ ...settings, keepAttention: true });
  report.points!.attention = keeping.points.attention.reason;
  await keeping.close();
  const tokens = await model.tokenize(prompt, { parseSpecial: true });
  if (!context.blockOutputs.supported) {
    report.checks.push(await refusesCapture(context, tokens));
  } else {
    const layers = Array.from({ length: model.info.nLayer }, (_, i) => i);
    const plain = await logitsOf(context, { tokens, layers: [] });
    const states = await statesOf(context, tokens, layers);
    const subject: Subject = { model, context, tokens, layers, plain, states };
    for (const check of [
      printedValues,
      undisturbed,
      blockPoints,
      attention,
      attribution,
      routing,
      prefixes,
      causal,
      sufficient,
      packed,
      chunked,
      lens,
      sweep,
      patches,
      explain,
      recovers,
    ]) {
      report.checks.push(await check(subject, tool, path));
    }
  }
  await model.close();
  return report;
}

type Advance = Parameters<Context["advance"]>[0];

export async function logitsOf(context: Context, request: Advance): Promise<Float32Array> {
  await context.reset();
  const { logits } = await context.advance({ ...request, logits: true });
  if (!logits) throw new Error("A pass with logits: true returned none.");
  return logits;
}

async function statesOf(context: Context, tokens: Int32Array, layers: number[]): Promise<Float32Array[]> {
  await context.reset();
  const result = await context.advance({ tokens, layers, rows: "all", logits: true });
  return result.layers.map(({ states }) => states!.data);
}

/** An unsupported architecture says why, in a sentence, and captures nothing. */
async function refusesCapture(context: Context, tokens: Int32Array): Promise<Check> {
  const sentence = /^The architecture '[^']+' .{20,}\.$/.test(context.blockOutputs.reason);
  const code = await context.advance({ tokens, layers: [0] }).then(
    () => "it captured",
    (error) => (error.message === context.blockOutputs.reason ? error.code : error.message),
  );
  const ok = sentence && code === "UNSUPPORTED_ARCHITECTURE";
  return { name: "refusal", ok, detail: ok ? "" : `${code}: "${context.blockOutputs.reason}"` };
}

/** Every block output, and the logits, against what llama.cpp's own tool prints for the same tokens. */
async function printedValues(subject: Subject, tool: string, path: string): Promise<Check> {
  const exact = subject.model.info.quantization === "all F32";
  const run = await runEvalCallback(tool, path, prompt, exact);
  const problems: string[] = [];
  if (run.tokens.join() !== subject.tokens.join()) problems.push("other tokens");
  const measured = { sum: 0, sumOfAbsolute: 0, value: 0 };
  const compare = (name: string, ours: Float32Array, width: number) => {
    const found = run.tensors.filter((tensor) => tensor.name === name);
    if (found.length !== 1 || !found[0]) {
      problems.push(`${name} is printed ${found.length} times`);
      return;
    }
    problems.push(...differences(found[0], ours, width, measured));
  };
  const width = subject.model.info.nEmbd;
  const { tensorNames } = subject.context.blockOutputs;
  subject.states.forEach((states, layer) => {
    compare(tensorNames[layer] ?? "", states, width);
  });
  compare(logitsName(run.tensors, subject.model.info.nVocab), subject.plain, subject.model.info.nVocab);
  return { name: "values", ok: problems.length === 0, detail: problems.slice(0, 3).join("; "), measured };
}

/** The logits by name, or the last tensor as wide as the vocabulary where an architecture names nothing. */
function logitsName(tensors: PrintedTensor[], nVocab: number): string {
  const named = tensors.find(({ name }) => name === "result_output");
  return (named ?? tensors.filter(({ shape }) => shape[0] === nVocab).at(-1))?.name ?? "result_output";
}

function differences(
  printed: PrintedTensor,
  ours: Float32Array,
  width: number,
  measured: { sum: number; sumOfAbsolute: number; value: number },
): string[] {
  const rows = printed.shape[1] * printed.shape[2] * printed.shape[3];
  const problems: string[] = [];
  if (printed.shape[0] !== width) return [`${printed.name} has rows of ${printed.shape[0]}`];
  // The tool's batch asks for the last token's logits only, and most architectures drop the other rows in
  // their last block. Where it prints all rows and we have one (the logits), the last one counts.
  const held = ours.length / width;
  const common = Math.min(rows, held);
  if (rows !== held && common !== 1) return [`${printed.name} has ${rows} rows where we have ${held}`];
  const last = ours.subarray((held - common) * width);
  for (const { row, column, value } of printed.values) {
    if (row < rows - common) continue;
    const mine = last[(row - (rows - common)) * width + column]!;
    const error = Math.max(0, Math.abs(mine - value) - tolerances.printedDigit);
    const relative = error / Math.max(Math.abs(value), Math.abs(mine));
    if (error > 0) measured.value = Math.max(measured.value, relative);
    if (!(error === 0 || relative <= tolerances.value)) {
      problems.push(`${printed.name}[${row}, ${column}] is ${mine}, printed ${value}`);
    }
  }
  if (rows === common) {
    const size = absoluteSum(last);
    const sum = floatSum(last);
    const error = Math.abs(sum - printed.sum);
    measured.sum = Math.max(measured.sum, error / Math.abs(printed.sum));
    measured.sumOfAbsolute = Math.max(measured.sumOfAbsolute, error / size);
    const allowed = tolerances.sum * Math.abs(printed.sum) + tolerances.sumOfAbsolute * size;
    if (!(error <= allowed)) problems.push(`the sum of ${printed.name} is ${sum}, printed ${printed.sum}`);
  }
  return problems;
}

/** Captures and edits that change nothing leave no trace in the logits. */
async function undisturbed({ context, tokens, layers, plain, states }: Subject): Promise<Check> {
  const problems: string[] = [];
  const expectSame = async (what: string, request: Partial<Advance>) => {
    const logits = await logitsOf(context, { tokens, layers, rows: "last", ...request });
    if (!sameBits(logits, plain))
      problems.push(`${what}: the logits changed by ${relativeDistance(logits, plain)}`);
  };
  if (!allFinite(plain)) problems.push("the logits are not finite");
  if (!states.every(allFinite)) problems.push("a block output is not finite");
  await expectSame("a second pass", { layers: [] });
  await expectSame("capture of every layer", {});
  await expectSame("capture of every row", { rows: "all" });
  await expectSame("capture of every row of the last block", { layers: layers.slice(-1), rows: "all" });
  for (const layer of layers) {
    const edits = layer === layers.at(-1) ? [tokens.length - 1] : Array.from(tokens.keys());
    await expectSame(`the same values written back at block ${layer}`, {
      layers: [layer],
      edits: edits.map((position) => ({ layer, positions: [[position, position]] as const, scale: 1 })),
    });
  }
  if (await takesChunks(context, tokens)) {
    problems.push(...(await disturbedContinuation(context, tokens, layers)));
  }
  return { name: "undisturbed", ok: problems.length === 0, detail: problems.slice(0, 3).join("; ") };
}

/**
 * The same in a text's second and third chunk: capturing every row of one leaves the logits there and after it
 * as they are.
 */
async function disturbedContinuation(
  context: Context,
  tokens: Int32Array,
  layers: number[],
): Promise<string[]> {
  const run = async (captured: number[]) => {
    await context.reset();
    await context.advance({ tokens: tokens.slice(0, 5), layers: [] });
    const request = { tokens: tokens.slice(5, -3), layers: captured, logits: true };
    const second = await context.advance(request);
    const third = await context.advance({ tokens: tokens.slice(-3), layers: [], logits: true });
    return [second.logits!, third.logits!];
  };
  const [plain, captured] = [await run([]), await run(layers)];
  return plain.flatMap((logits, i) => {
    const distance = relativeDistance(captured[i]!, logits);
    return sameBits(logits, captured[i]!)
      ? []
      : [`captured in chunk 2: the logits of chunk ${i + 2} changed by ${distance}`];
  });
}

/** Whether a text may come in several passes; a model that attends in both directions takes it as one. */
async function takesChunks(context: Context, tokens: Int32Array): Promise<boolean> {
  await context.reset();
  await context.advance({ tokens: tokens.slice(0, 1), layers: [] });
  return context.advance({ tokens: tokens.slice(1, 2), layers: [] }).then(
    () => true,
    (error) => {
      if (/attends in both directions, so a text is one pass/.test(String(error))) return false;
      throw error;
    },
  );
}

/**
 * Every row of every block is what the last row is where the text ends there: the rows of the last block that a
 * plain pass never computes, too. Models that attend in both directions see another text there.
 */
async function prefixes({ context, tokens, layers, states, model }: Subject): Promise<Check> {
  if (!(await takesChunks(context, tokens)))
    return { name: "prefixes", ok: true, detail: "", note: "one pass only" };
  const width = model.info.nEmbd;
  const problems: string[] = [];
  let largest = 0;
  for (let end = 1; end < tokens.length; ++end) {
    await context.reset();
    const { layers: captured } = await context.advance({
      tokens: tokens.slice(0, end),
      layers,
      rows: "last",
    });
    for (const [i, { states: last }] of captured.entries()) {
      const distance = relativeDistance(last!.data, states[i]!.subarray((end - 1) * width, end * width));
      largest = Math.max(largest, distance);
      if (!(distance <= tolerances.chunked)) problems.push(`row ${end - 1}, block ${i}: off by ${distance}`);
    }
  }
  return {
    name: "prefixes",
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { largest },
  };
}

/** A vector added to the last token's row of any one block moves the logits. */
async function causal({ context, tokens, layers, plain, states, model }: Subject): Promise<Check> {
  const random = randomSource(7);
  const width = model.info.nEmbd;
  const position = tokens.length - 1;
  let smallest = Number.POSITIVE_INFINITY;
  const problems: string[] = [];
  for (const layer of layers) {
    const row = states[layer]!.subarray(position * width, (position + 1) * width);
    const vector = randomVector(width, Math.hypot(...row), random);
    const edits = [{ layer, vector }];
    for (const rows of ["last", "all"] as const) {
      const moved = await logitsOf(context, { tokens, layers: [layer], rows, edits });
      const effect = relativeDistance(moved, plain);
      smallest = Math.min(smallest, effect);
      if (!(effect >= tolerances.effect)) problems.push(`block ${layer}, rows ${rows}: effect ${effect}`);
    }
  }
  return {
    name: "causal",
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { smallest },
  };
}

/**
 * With every row of one block replaced by another prompt's, the model says what it says after the other prompt:
 * nothing passes beside the tap. An added vector alone would move the logits from half of the stream, too.
 */
async function sufficient(subject: Subject): Promise<Check> {
  const { context, tokens, layers, plain, model } = subject;
  const width = model.info.nEmbd;
  const random = randomSource(11);
  const donor = tokens.map(() => Math.floor(random() * model.info.nVocab));
  const expected = await logitsOf(context, { tokens: donor, layers: [] });
  const donors = await statesOf(context, donor, layers);
  const apart = relativeDistance(expected, plain);
  const problems = apart < tolerances.effect ? [`the two prompts' logits differ by ${apart} only`] : [];
  let largest = 0;
  for (const layer of layers) {
    const positions = layer === layers.at(-1) ? [tokens.length - 1] : Array.from(tokens.keys());
    const edits = positions.map((position) => ({
      layer,
      positions: [[position, position]] as const,
      scale: 0,
      vector: donors[layer]!.slice(position * width, (position + 1) * width),
    }));
    const patched = await logitsOf(context, { tokens, layers: [layer], rows: "last", edits });
    const distance = relativeDistance(patched, expected);
    largest = Math.max(largest, distance);
    const bound = context.blockOutputs.sidePath === "" ? tolerances.sufficient : Number.POSITIVE_INFINITY;
    if (!(distance <= bound)) problems.push(`block ${layer} patched from another prompt: off by ${distance}`);
  }
  return {
    name: "sufficient",
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { largest },
  };
}

/** Final-token features of several prompts in one batch equal those of each prompt alone. */
async function packed({ context, layers, model }: Subject): Promise<Check> {
  const random = randomSource(3);
  const sequences = [7, 3, 12, 1, 7, 5, 2].map((length) =>
    Int32Array.from({ length }, () => Math.floor(random() * model.info.nVocab)),
  );
  const together = await context.features({ sequences, layers });
  const width = model.info.nEmbd;
  const problems: string[] = [];
  let largest = 0;
  for (const [i, tokens] of sequences.entries()) {
    const alone = await statesOf(context, tokens, layers);
    for (const layer of layers) {
      const row = together.get(layer)!.data.subarray(i * width, (i + 1) * width);
      const distance = relativeDistance(row, alone[layer]!.subarray(-width));
      largest = Math.max(largest, distance);
      if (!(distance <= tolerances.packed))
        problems.push(`sequence ${i}, block ${layer}: off by ${distance}`);
    }
  }
  return {
    name: "packed",
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { largest },
  };
}

/** A prompt in chunks equals the prompt in one pass; where a text must be one pass, chunks are refused. */
async function chunked({ context, tokens, layers, plain, states, model }: Subject): Promise<Check> {
  if (!(await takesChunks(context, tokens)))
    return { name: "chunked", ok: true, detail: "", note: "one pass only" };
  const width = model.info.nEmbd;
  const chunks = [tokens.slice(0, 4), tokens.slice(4, 9), tokens.slice(9, -1), tokens.slice(-1)];
  const problems: string[] = [];
  let largest = 0;
  let first = 0;
  await context.reset();
  for (const chunk of chunks) {
    const last = chunk === chunks.at(-1);
    const result = await context.advance({
      tokens: chunk,
      layers,
      rows: last ? "last" : "all",
      logits: last,
    });
    for (const { layer, states: part } of result.layers) {
      const whole = states[layer]!.subarray(first * width, (first + chunk.length) * width);
      largest = Math.max(largest, relativeDistance(part!.data, whole));
    }
    if (result.logits) largest = Math.max(largest, relativeDistance(result.logits, plain));
    first += chunk.length;
  }
  if (!(largest <= tolerances.chunked)) problems.push(`off by ${largest}`);
  return { name: "chunked", ok: problems.length === 0, detail: problems.join("; "), measured: { largest } };
}

/** The lens of the last block's last row is the model's own next-token distribution. */
async function lens({ context, tokens, layers, plain, model }: Subject): Promise<Check> {
  if (!context.lens.supported) return { name: "lens", ok: true, detail: "", note: "no lens" };
  const nVocab = model.info.nVocab;
  await context.reset();
  const result = await context.advance({
    tokens,
    layers: layers.slice(-1),
    rows: "all",
    lensTopK: nVocab,
    nextTopK: nVocab,
  });
  const probabilities = softmax(plain);
  const { tokenIds, probabilities: lensed } = result.layers[0]!.lens!;
  const distances = [
    totalVariation(probabilities, {
      tokenIds: tokenIds.subarray(-nVocab),
      probabilities: lensed.subarray(-nVocab),
    }),
    totalVariation(probabilities, result.next!),
  ];
  const largest = Math.max(...distances);
  const ok = largest <= tolerances.lens;
  return { name: "lens", ok, detail: ok ? "" : `off by ${distances.join(" and ")}`, measured: { largest } };
}

/**
 * A patch sweep: every site equals one forward pass, for a prompt within a sliding window and for one beyond
 * those that the test models have (32).
 */
async function patches(subject: Subject): Promise<Check> {
  const problems: string[] = [];
  let largest = 0;
  for (const length of [9, 40]) {
    const found = await patchesOf(subject, length).catch((error: Error) => {
      if (/does not generate text token by token\.$/.test(error.message)) return undefined;
      throw error;
    });
    if (found === undefined) return { name: "patches", ok: true, detail: "", note: "no generation" };
    largest = Math.max(largest, found);
    if (!(found <= tolerances.patched)) problems.push(`${length} tokens: off by ${found}`);
  }
  return {
    name: "patches",
    ok: problems.length === 0,
    detail: problems.join("; "),
    measured: { largest },
  };
}

/**
 * The largest difference of a logit difference between a sweep and a pass for each site, over the largest logit: what
 * rounding does to a logit grows with the logits, however near two of them are.
 */
async function patchesOf({ context, layers, model }: Subject, length: number): Promise<number> {
  const { nEmbd, nVocab } = model.info;
  const random = randomSource(13);
  const clean = Int32Array.from({ length }, () => Math.floor(random() * nVocab));
  const corrupted = clean.slice();
  for (const at of [1, 4]) corrupted[at] = ((clean[at] as number) + 1) % nVocab;
  const positions = [0, 1, 4, length - 3, length - 1];
  const [target, foil] = [3, 9];
  const { patched } = await context.patchSweep({ clean, corrupted, layers, positions, target, foil });
  const donors = await statesOf(context, clean, layers);
  let [apart, size] = [0, 0];
  for (const [row, layer] of layers.entries()) {
    for (const [column, position] of positions.entries()) {
      // Nothing reads the last block's earlier rows.
      const idle = layer === layers.at(-1) && position < length - 1;
      const vector = donors[layer]!.slice(position * nEmbd, (position + 1) * nEmbd);
      const edits = idle ? [] : [{ layer, positions: [[position, position]] as const, scale: 0, vector }];
      const logits = await logitsOf(context, { tokens: corrupted, layers: [layer], rows: "last", edits });
      const expected = logits[target]! - logits[foil]!;
      apart = Math.max(apart, Math.abs(patched[row * positions.length + column]! - expected));
      size = logits.reduce((most, logit) => Math.max(most, Math.abs(logit)), size);
    }
  }
  return apart / size;
}

/**
 * Values that are not finite stay where they are: a pass spoiled by an edit leaves nothing after a reset, and a spoiled row of
 * a sweep none in its neighbours.
 */
async function recovers({ context, tokens, layers, plain, model }: Subject): Promise<Check> {
  const problems: string[] = [];
  const layer = layers[0]!;
  const vector = new Float32Array(model.info.nEmbd).fill(Number.POSITIVE_INFINITY);
  const edits = [{ layer, vector, positions: "all" as const }];
  const logits = await logitsOf(context, { tokens, layers: [layer], edits });
  if (allFinite(logits)) problems.push("an infinite row leaves the logits finite");
  const after = await logitsOf(context, { tokens, layers: [] });
  if (!sameBits(after, plain)) problems.push(`after a reset: off by ${relativeDistance(after, plain)}`);
  problems.push(...(await spoiledNeighbours({ context, tokens, layers }, vector)));
  return { name: "recovers", ok: problems.length === 0, detail: problems.slice(0, 3).join("; ") };
}

/** Plans next to one that spoils its rows, against the same plans without it: the target is the baseline's. */
async function spoiledNeighbours(
  { context, tokens, layers }: Pick<Subject, "context" | "tokens" | "layers">,
  vector: Float32Array,
): Promise<string[]> {
  const layer = layers[0]!;
  const good = [{ layer, scale: 0.4 }];
  const run = async (plans: Edit[][]) => {
    const [trial] = await context.sweep({ prompts: [tokens], plans, maxTokens: steps });
    return trial!;
  };
  let alone: Awaited<ReturnType<typeof run>>;
  try {
    alone = await run([good]);
  } catch (error) {
    if (!/does not generate text token by token\.$/.test(String(error))) throw error;
    return [];
  }
  const beside = await run([[{ layer, vector, positions: "all" }], good]);
  const problems: string[] = [];
  if (beside.rows[0]!.finite) problems.push("an infinite row of a sweep counts as finite");
  if (beside.target !== alone.target) problems.push(`its target is ${beside.target}, not ${alone.target}`);
  for (const [name, found, expected] of [
    ["baseline", beside.baseline, alone.baseline],
    ["neighbour", beside.rows[1]!, alone.rows[0]!],
  ] as const) {
    const distance = Math.abs(found.probability - expected.probability);
    if (!found.finite || !(distance <= tolerances.probability))
      problems.push(`the ${name} of an infinite row is off by ${distance}`);
  }
  return problems;
}

const steps = 4;

/**
 * The batched comparison: strength-neutral rows equal the baseline exactly, every other row equals a plain
 * sequential generation under the same edit.
 */
async function sweep(subject: Subject): Promise<Check> {
  const { context, layers, model } = subject;
  const random = randomSource(5);
  const prompts = [6, 9, 4].map((length) =>
    Int32Array.from({ length }, () => Math.floor(random() * model.info.nVocab)),
  );
  const vector = randomVector(model.info.nEmbd, 1, random);
  const everywhere = { vector, positions: "all" as const };
  const edits = [{ scale: 1 }, { scale: 0.4 }, { vector }, { scale: 0.5, vector }, everywhere];
  const problems: string[] = [];
  let largest = 0;
  for (const layer of new Set([layers[0]!, layers.at(-1)!])) {
    let trials: Awaited<ReturnType<Context["sweep"]>>;
    try {
      const plans = edits.map((edit) => [{ layer, ...edit }]);
      trials = await context.sweep({ prompts, plans, maxTokens: steps });
    } catch (error) {
      if (!/does not generate text token by token\.$/.test(String(error))) throw error;
      return { name: "sweep", ok: true, detail: "", note: "no generation" };
    }
    for (const [p, trial] of trials.entries()) {
      const where = `block ${layer}, prompt ${p}`;
      const [neutral] = trial.rows;
      if (JSON.stringify({ ...neutral, effects: [] }) !== JSON.stringify(trial.baseline))
        problems.push(`${where}: not neutral`);
      for (const [e, row] of [trial.baseline, ...trial.rows].entries()) {
        const edit = { layer, ...(e === 0 ? {} : edits[e - 1]) };
        const oracle = await generate(model, context, prompts[p]!, edit, steps);
        const probability = Math.abs(oracle.first[trial.target]! - row.probability);
        largest = Math.max(largest, probability);
        if (!(probability <= tolerances.probability))
          problems.push(`${where}, row ${e}: off by ${probability}`);
        const longest = Math.max(oracle.tokens.length, row.continuation.length);
        const other = Array.from({ length: longest }).findIndex(
          (_, i) => oracle.tokens[i] !== row.continuation[i],
        );
        // After a tie the two texts may go separate ways.
        const tie = other >= 0 && oracle.margins[other]! <= tolerances.probability;
        if (!tie && other >= 0) {
          problems.push(`${where}, row ${e}: ${row.continuation} where one by one gives ${oracle.tokens}`);
        }
      }
    }
  }
  return {
    name: "sweep",
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { largest },
  };
}

const [path = "", tool = ""] = process.argv.slice(2);
checkModel(path, tool).then(
  (report) => process.stdout.write(`${JSON.stringify(report)}\n`),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
