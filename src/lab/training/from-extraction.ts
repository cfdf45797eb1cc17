import { existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Progress, SaeReport } from "../../contracts/index.js";
import type { BlockPoint, RowsRead } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { version } from "../../contracts/version.js";
import { removeTorn, syncFolder, writeDurably } from "../../files/durable.js";
import { differenceOf } from "../../formats/difference.js";
import { NativeError } from "../../native/index.js";
import { Artifacts } from "../artifacts.js";
import { openExtraction, pointOfRows } from "../extraction/open-extraction.js";
import { lock } from "../lock.js";
import { Checkpoint, type TrainingIdentity } from "./checkpoint.js";
import { hasSaeLens, writeOwn, writeSaeLens } from "./files.js";
import { trainingRows } from "./rows.js";
import type { DictionarySettings } from "./settings.js";
import { trainDictionary } from "./train.js";

/** Seconds between two checkpoints. */
const checkpointSeconds = 300;
const resultFile = "sae.json";

export interface ExtractionTraining extends Omit<DictionarySettings, "seed"> {
  /** Folder of an extraction. */
  from: string;
  /** Default: those of the extraction. */
  layers?: readonly number[] | undefined;
  rows?: RowsRead | undefined;
  /** Tokens of each text before this index are left out. */
  first_position?: number | undefined;
  /** The required point of the extraction; by default any. */
  point?: BlockPoint | undefined;
  seed: number;
}

/** The record of a training, saved with its weights. */
export interface ExtractionTrained {
  /** Everything that determines the numbers. */
  training: Record<string, unknown>;
  /** The model's name in its file. */
  model: string;
  tapline: string;
  /** Reports of the finished layers. */
  reports: SaeReport[];
}

export interface ExtractionTrainingOptions {
  threads?: number | undefined;
  signal?: AbortSignal | undefined;
  progress?: (progress: Progress) => void;
  checkpointSeconds?: number;
}

/**
 * Trains dictionaries on the rows of an extraction in this process, without a model or time limit, and writes them
 * into a folder: `sae-layer-<n>.safetensors` with its normalisation, `saelens-layer-<n>/` in SAELens's layout, and
 * the results in `sae.json`. An interrupted training of the same settings is resumed; layers that are already
 * finished are only reported.
 * @throws UserError, NativeError
 */
export async function trainFromExtraction(
  said: ExtractionTraining,
  out: string,
  options: ExtractionTrainingOptions = {},
): Promise<ExtractionTrained> {
  // The extraction is identified by its hash.
  const { from, point, ...settings } = said;
  const extraction = await openExtraction(from);
  const layers = said.layers ?? extraction.form.layers;
  await makeFolder(out);
  const held = await lock(join(out, "training.lock"), (holder) =>
    holder === null
      ? `${out} could not be locked, because another process is starting there.`
      : `Process ${holder.pid} has been training in ${out} since ${holder.since}.`,
  );
  try {
    // Partial files of killed processes: a checkpoint is as large as the weights and their moments.
    await removeTorn(join(out, resultFile));
    for (const layer of layers) await checkpointOf(out, layer, {}).removeTorn();
    const result = await begin(out, layers, said, {
      training: { ...settings, layers, extraction: extraction.sha256 },
      model: extraction.model.name,
      tapline: version,
      reports: [],
    });
    for (const layer of layers) {
      if (result.reports.some((report) => report.layer === layer)) continue;
      const report = await trainLayer(said, layer, out, {
        ...options,
        progress: ({ stage, done, total }) =>
          options.progress?.({
            stage: layers.length === 1 ? stage : `layer ${layer}: ${stage}`,
            done: layers.indexOf(layer) * total + done,
            total: layers.length * total,
          }),
      });
      result.reports.push(report);
      await write(out, result);
      await checkpointOf(out, layer, {}).remove();
    }
    return result;
  } finally {
    await held.release();
  }
}

async function trainLayer(
  said: ExtractionTraining,
  layer: number,
  out: string,
  options: ExtractionTrainingOptions & { progress: (progress: Progress) => void },
): Promise<SaeReport> {
  const { from, rows: which, point, target, first_position, seed } = said;
  const rows = await trainingRows(from, { layer, rows: which, point, target, first_position, seed });
  const { extraction } = rows;
  const { report, weights, settings } = await trainDictionary({
    rows,
    settings: said,
    threads: options.threads,
    signal: options.signal,
    progress: options.progress,
    textOf: ({ text, token }) => `text ${text}, token ${token}`,
    checkpoint: {
      open: (identity) => checkpointOf(out, layer, identity),
      seconds: options.checkpointSeconds ?? checkpointSeconds,
    },
  });
  const trained = {
    ...{ layer, point: pointOfRows(extraction), target, weights },
    ...{ architecture: settings.architecture, k: settings.k },
    model: extraction.model.name,
    prependBos: extraction.skipped > 0,
    firstPosition: first_position,
  };
  for (const file of filesOf(out, layer, said)) await rm(`${file}.partial`, { force: true });
  const folder = hasSaeLens(said) ? saeLensFolder(out, layer) : undefined;
  if (folder !== undefined) await makeFolder(folder);
  try {
    await writeOwn(new Artifacts(out), trained);
    if (folder !== undefined) await writeSaeLens(new Artifacts(folder), trained);
  } catch (error) {
    throw unwritten(`The dictionary of block ${layer}`, out, error);
  }
  return { layer, ...report };
}

/** The error for a failed write; other errors are returned unchanged. */
function unwritten(what: string, out: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined || error instanceof NativeError) return error;
  return new UserError(
    `${what} cannot be written to ${out} (${code}); once there is room, run the same command again to resume from the last checkpoint.`,
  );
}

const checkpointOf = (out: string, layer: number, identity: TrainingIdentity) =>
  new Checkpoint(out, layer, identity);
const saeLensFolder = (out: string, layer: number) => join(out, `saelens-layer-${layer}`);

/** The files of a trained layer. */
export function filesOf(
  out: string,
  layer: number,
  said: Pick<DictionarySettings, "architecture" | "skip"> = { architecture: "relu" },
): string[] {
  const theirs = hasSaeLens(said) ? ["cfg.json", "sae_weights.safetensors"] : [];
  return [
    join(out, `sae-layer-${layer}.safetensors`),
    join(out, `sae-normalization-${layer}.npz`),
    ...theirs.map((file) => join(saeLensFolder(out, layer), file)),
  ];
}

/**
 * Records the training in the folder, or reads an existing record.
 * @returns the record with finished layers
 * @throws UserError if the folder contains something else
 */
async function begin(
  out: string,
  layers: readonly number[],
  said: ExtractionTraining,
  wanted: ExtractionTrained,
): Promise<ExtractionTrained> {
  const path = join(out, resultFile);
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new UserError(`${path} cannot be read (${error.code}).`);
  });
  if (text === undefined) {
    const there = layers.flatMap((layer) => filesOf(out, layer, said)).find((file) => existsSync(file));
    if (there !== undefined) throw new UserError(`${there} already exists; choose another folder.`);
    await write(out, wanted);
    return wanted;
  }
  const known = parsed(text);
  if (known === undefined) throw new UserError(`${path} is not a training record; choose another folder.`);
  const other = differenceOf(known.training, wanted.training);
  if (other !== undefined) {
    throw new UserError(`${out} contains a different training: ${other}. Choose another folder.`);
  }
  return known;
}

function parsed(text: string): ExtractionTrained | undefined {
  try {
    const known = JSON.parse(text) as ExtractionTrained;
    return Array.isArray(known.reports) && typeof known.training === "object" ? known : undefined;
  } catch {
    return undefined;
  }
}

async function write(out: string, result: ExtractionTrained): Promise<void> {
  try {
    await writeDurably(join(out, resultFile), `${JSON.stringify(result, null, 1)}\n`);
  } catch (error) {
    throw unwritten(resultFile, out, error);
  }
}

/** Only one level: parents are the user's decision. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
    await syncFolder(dirname(path));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST") throw new UserError(`Cannot write to ${path} (${code}).`);
  }
}
