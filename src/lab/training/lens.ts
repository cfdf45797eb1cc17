import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Progress } from "../../contracts/index.js";
import type { LensFit, StoredLens } from "../../contracts/library.js";
import { UserError } from "../../contracts/user-error.js";
import { floatsOf } from "../../formats/float.js";
import type { Lens, Translation } from "../../formats/lens.js";
import { modelFingerprint } from "../../library/index.js";
import { Lenses, type OpenLens } from "../../library/lenses.js";
import { readBytes } from "../../library/tensor-files.js";
import type { Context, Model } from "../../native/index.js";
import { type Extraction, readShard, type ShardRows } from "../extraction/open-extraction.js";
import { LeastSquares } from "./least-squares.js";

/** One in this many texts is held out. */
const heldOutEvery = 10;
/** Rows per dimension: with fewer, a regression overfits. */
const rowsPerNumber = 4;
/** Held-out rows that are evaluated. */
const judgedRows = 2048;
/** Rows that are read and evaluated together. */
const rowsAtOnce = 1024;

export interface LensFitting {
  /** An extraction of every token, including the last block. */
  extraction: Extraction;
  /** The model of the extraction, and its file. */
  model: Model;
  path: string;
  lenses: Lenses;
  name: string;
  progress: (progress: Progress) => void;
  signal?: AbortSignal | undefined;
}

/**
 * Fits a lens by regression: for each block, the least-squares affine map (ridge) from its output to the last block's
 * output, scaled to the square root of the width; the final norm removes the scale again. Every tenth text is held
 * out to measure the divergence of the lens and of the plain logit lens from the model's output.
 * @returns the saved lens
 * @throws UserError if the extraction is of another model, lacks the last block, or has too few rows
 */
export async function fitLens(fitting: LensFitting): Promise<StoredLens> {
  const { extraction, model, path, lenses, name, progress, signal } = fitting;
  await checkExtraction(extraction, model, path);
  const last = model.info.nLayer - 1;
  const layers = extraction.form.layers.filter((layer) => layer !== last).sort((a, b) => a - b);
  const rows = await chosenRows(extraction);
  const needed = rowsPerNumber * (extraction.form.hidden + 1);
  if (rows.fitted < needed) {
    throw new UserError(
      `The extraction has ${rows.fitted} rows to fit on; a lens of width ${extraction.form.hidden} needs ${needed}.`,
    );
  }
  const translations = new Map<number, Translation>();
  for (const [index, layer] of layers.entries()) {
    progress({ stage: "fit", done: index, total: layers.length });
    signal?.throwIfAborted();
    translations.set(layer, await translationOf(extraction, rows, layer, last));
  }
  const lens: Lens = {
    layout: "tapline",
    kind: "regression",
    hidden: extraction.form.hidden,
    residual: false,
    layers,
    modelLayers: model.info.nLayer,
    model: extraction.model.name === "" ? undefined : extraction.model.name,
    texts: rows.texts,
    notes: [
      `Least squares from each block's output to the last block's, on ${rows.fitted} tokens of ${rows.texts} texts; every ` +
        `${heldOutEvery}th text was held out.`,
    ],
    read: async (layer) => translations.get(layer) as Translation,
  };
  const fit = await judged(lens, fitting, rows, last);
  const worse = fit.filter(({ divergence, plain_divergence: plain }) => divergence >= plain);
  if (worse.length > 0) {
    lens.notes.push(
      `At block ${worse.map(({ layer }) => layer).join(", ")} it is not closer to the output than the logit lens.`,
    );
  }
  await lenses.keep(name, lens, { source: null, fit });
  return lenses.get(name);
}

async function checkExtraction(extraction: Extraction, model: Model, path: string): Promise<void> {
  const { form, model: made } = extraction;
  const { nEmbd, nLayer } = model.info;
  const fingerprint = await modelFingerprint(path);
  if (made.fingerprint !== fingerprint) {
    throw new UserError(
      `The extraction was made with a different model (${made.fingerprint.slice(0, 16)}, not ${fingerprint.slice(0, 16)}).`,
    );
  }
  if (form.rows !== "all") {
    throw new UserError(
      `The extraction has the ${form.rows === "last" ? "last token's" : "mean"} activation of each text; a lens is fitted on every token's (tapline extract --rows all).`,
    );
  }
  if (!form.layers.includes(nLayer - 1) || form.layers.length < 2 || form.hidden !== nEmbd) {
    throw new UserError(
      `The extraction has the blocks ${form.layers.join(", ")}; a lens needs the last block, ${nLayer - 1}, and at least one other.`,
    );
  }
}

/** Rows of each shard to fit on and held-out rows; skipped tokens are neither. */
interface Chosen {
  shards: { shard: ShardRows; heldOut: Uint8Array; used: Uint8Array }[];
  texts: number;
  fitted: number;
}

async function chosenRows(extraction: Extraction): Promise<Chosen> {
  const chosen: Chosen = { shards: [], texts: 0, fitted: 0 };
  for (let number = 0; number < extraction.shards.length; number++) {
    const shard = await readShard(extraction, number);
    const [used, heldOut] = [new Uint8Array(shard.rows), new Uint8Array(shard.rows)];
    for (const [text, index] of shard.indices.entries()) {
      const start = shard.starts[text] as number;
      const end = shard.starts[text + 1] as number;
      const out = index % heldOutEvery === heldOutEvery - 1;
      const from = Math.min(end, start + extraction.skipped);
      used.fill(1, from, end);
      if (out) heldOut.fill(1, from, end);
      else {
        chosen.texts++;
        chosen.fitted += end - from;
      }
    }
    chosen.shards.push({ shard, used, heldOut });
  }
  return chosen;
}

/** Rows of some blocks, in pieces of shards. */
async function* pieces(
  { form }: Extraction,
  { shards }: Chosen,
  layers: readonly number[],
): AsyncGenerator<{ rows: Float32Array[]; used: Uint8Array; heldOut: Uint8Array }> {
  const width = form.hidden * (form.dtype === "f32" ? 4 : 2);
  for (const { shard, used, heldOut } of shards) {
    for (let first = 0; first < shard.rows; first += rowsAtOnce) {
      const end = Math.min(shard.rows, first + rowsAtOnce);
      const rows: Float32Array[] = [];
      for (const layer of layers) {
        const at = shard.offsets.get(layer) as number;
        const bytes = await readBytes(shard.path, at + first * width, at + end * width);
        rows.push(floatsOf(form.dtype.toUpperCase(), bytes) as Float32Array);
      }
      yield { rows, used: used.subarray(first, end), heldOut: heldOut.subarray(first, end) };
    }
  }
}

async function translationOf(
  extraction: Extraction,
  chosen: Chosen,
  layer: number,
  last: number,
): Promise<Translation> {
  const { hidden } = extraction.form;
  const squares = new LeastSquares(hidden);
  const row = new Float64Array(hidden);
  const goal = new Float64Array(hidden);
  for await (const { rows, used, heldOut } of pieces(extraction, chosen, [layer, last])) {
    const [from, to] = rows as [Float32Array, Float32Array];
    for (let i = 0; i < used.length; i++) {
      if (used[i] === 0 || heldOut[i] === 1) continue;
      row.set(from.subarray(i * hidden, (i + 1) * hidden));
      goal.set(to.subarray(i * hidden, (i + 1) * hidden));
      const length = Math.sqrt(goal.reduce((sum, value) => sum + value * value, 0));
      if (!(length > 0)) continue;
      const factor = Math.sqrt(hidden) / length;
      for (let j = 0; j < hidden; j++) goal[j] = (goal[j] as number) * factor;
      squares.add(row, goal);
    }
  }
  return squares.solve();
}

/** KL divergence of both lenses from the model's output, on held-out rows. */
async function judged(
  lens: Lens,
  { extraction, model, signal, progress }: LensFitting,
  chosen: Chosen,
  last: number,
): Promise<LensFit[]> {
  const folder = await mkdtemp(join(tmpdir(), "tapline-lens-"));
  const context: Context = await model.createContext({ nCtx: 32 });
  try {
    if (!context.lens.supported) throw new UserError(context.lens.reason);
    const lenses = new Lenses(folder);
    await lenses.keep("fitted", lens, { source: null });
    const open: OpenLens = await lenses.open("fitted");
    const sums = lens.layers.map(() => ({ translated: 0, plain: 0 }));
    let count = 0;
    for await (const { rows, heldOut } of pieces(extraction, chosen, [...lens.layers, last])) {
      if (count >= judgedRows) break;
      signal?.throwIfAborted();
      const kept = [...heldOut.keys()].filter((i) => heldOut[i] === 1).slice(0, judgedRows - count);
      if (kept.length === 0) continue;
      progress({ stage: "judge", done: count, total: judgedRows });
      const states = rows.map((all) => rowsAt(all, kept, lens.hidden));
      const output = states.pop() as Float32Array;
      const places = lens.layers.flatMap((layer, index) => {
        const own = states[index] as Float32Array;
        const translator = open.translator(layer);
        return [{ states: own }, { states: own, ...(translator && { translator }) }];
      });
      const readings = await context.readLens({ places, output, top: 1, ...(signal && { signal }) });
      for (const [index, sum] of sums.entries()) {
        const total = (reading: number) =>
          (readings[reading]?.divergences ?? new Float32Array()).reduce((a, b) => a + b, 0);
        sum.plain += total(2 * index);
        sum.translated += total(2 * index + 1);
      }
      count += kept.length;
    }
    if (count === 0) {
      throw new UserError(
        `The extraction has no held-out texts: every ${heldOutEvery}th text is used to evaluate the lens.`,
      );
    }
    return lens.layers.map((layer, index) => ({
      layer,
      divergence: (sums[index]?.translated ?? 0) / count,
      plain_divergence: (sums[index]?.plain ?? 0) / count,
    }));
  } finally {
    await context.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function rowsAt(all: Float32Array, kept: readonly number[], hidden: number): Float32Array {
  const rows = new Float32Array(kept.length * hidden);
  for (const [at, i] of kept.entries()) rows.set(all.subarray(i * hidden, (i + 1) * hidden), at * hidden);
  return rows;
}
