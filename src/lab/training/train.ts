import { availableParallelism } from "node:os";
import type { Progress, SaeReport } from "../../contracts/index.js";
import { topCounts } from "../../contracts/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { hostMemory } from "../../models/memory.js";
import { DictionaryTrainer, type DictionaryTraining, type DictionaryWeights } from "../../native/index.js";
import { bytesText } from "../../text/words.js";
import type { Checkpoint, History, TrainingIdentity } from "./checkpoint.js";
import type { TrainingRows } from "./rows.js";
import { type DictionarySettings, type FilledSettings, filledSettings, trainingBytes } from "./settings.js";

/** How often a training is evaluated while it runs, and how many losses are recorded. */
const evaluations = 10;
const maxLosses = 100;
const examplesShown = 8;

export interface TrainingOptions {
  rows: TrainingRows;
  settings: DictionarySettings;
  threads?: number | undefined;
  signal?: AbortSignal | undefined;
  progress: (progress: Progress) => void;
  /** The label of a held-out row in the report. */
  textOf: (place: { text: number; token: number }) => string;
  /** Where checkpoints are saved, and the seconds between two of them. */
  checkpoint?: { open: (identity: TrainingIdentity) => Checkpoint; seconds: number };
}

export interface Trained {
  report: Omit<SaeReport, "layer">;
  weights: DictionaryWeights;
  settings: FilledSettings;
}

/** Trains a dictionary on the rows of an extraction. @throws UserError, NativeError */
export async function trainDictionary(options: TrainingOptions): Promise<Trained> {
  const { rows, signal, threads } = options;
  const { pieces, extraction } = rows;
  const trainRows = count(pieces, 1);
  const settings = filledSettings(options.settings, extraction.form.hidden, Math.max(1, trainRows));
  const checkpoint = options.checkpoint?.open(identityOf(rows, settings));
  checkMemory(settings, threads ?? availableParallelism(), checkpoint?.isThere() === true);
  const { trainer, first, history } = await openTrainer(
    { ...settings, pieces, ...(threads !== undefined && { threads }) },
    checkpoint,
    signal,
  );
  try {
    try {
      await runSteps(trainer, first, settings, history, checkpoint, options);
    } catch (error) {
      // Save the state so that an aborted training can be resumed.
      if (signal?.aborted) await checkpoint?.write(await trainer.state(), history);
      throw error;
    }
    const report = await reportOf(trainer, settings, history, options);
    return { report, weights: await trainer.weights(), settings };
  } finally {
    await trainer.close();
  }
}

/** Opens a trainer, resuming from a checkpoint if there is one; the checkpoint's state is then freed. */
async function openTrainer(
  training: DictionaryTraining,
  checkpoint: Checkpoint | undefined,
  signal: AbortSignal | undefined,
): Promise<{ trainer: DictionaryTrainer; first: number; history: History }> {
  const kept = await checkpoint?.read();
  const trainer = await DictionaryTrainer.open(
    { ...training, ...(kept !== undefined && { state: kept.state }) },
    { signal },
  );
  return {
    trainer,
    first: kept === undefined ? 0 : stepsOf(kept.state),
    history: kept?.history ?? { losses: [], evaluations: [] },
  };
}

function count(pieces: TrainingRows["pieces"], use: number): number {
  return pieces.reduce((sum, { uses }) => uses.reduce((own, each) => own + (each === use ? 1 : 0), sum), 0);
}

/** Everything that must match for a training to be resumed. */
function identityOf({ extraction, pieces }: TrainingRows, settings: FilledSettings): TrainingIdentity {
  return {
    ...settings,
    model_fingerprint: extraction.model.fingerprint,
    rows: pieces.map(({ uses }) => uses.length),
    used: count(pieces, 1),
    held_out: count(pieces, 2),
  };
}

function checkMemory(settings: FilledSettings, threads: number, resumed: boolean): void {
  const needed = trainingBytes(settings, { threads, resumed });
  const { total } = hostMemory();
  if (needed <= total) return;
  throw new UserError(
    `Training ${settings.features} features of ${settings.hidden} values (${settings.architecture}, batches of ` +
      `${settings.batch} rows) takes up to ${bytesText(needed)}; this machine has ${bytesText(total)}.`,
  );
}

/** @param first steps already done */
async function runSteps(
  trainer: DictionaryTrainer,
  first: number,
  { steps }: FilledSettings,
  history: History,
  checkpoint: Checkpoint | undefined,
  { progress, signal, checkpoint: keeping }: TrainingOptions,
): Promise<void> {
  const lossEvery = Math.max(1, Math.ceil(steps / maxLosses));
  const evaluateEvery = Math.max(lossEvery, Math.ceil(steps / evaluations / lossEvery) * lossEvery);
  let written = performance.now();
  const onProgress = (done: number) => progress({ stage: stageOf(history), done, total: steps });
  let done = first;
  while (done < steps) {
    const figures = await trainer.run(lossEvery - (done % lossEvery), { signal, onProgress });
    done = figures.stepsDone;
    history.losses.push({ step: done, loss: figures.mse });
    if (done % evaluateEvery === 0 && done < steps) {
      const { explainedVariance, active, dead } = await trainer.evaluate({ signal });
      history.evaluations.push({
        step: done,
        explained_variance: orNull(explainedVariance),
        mean_active: active,
        dead_features: dead,
      });
    }
    const now = performance.now();
    if (checkpoint !== undefined && done < steps && now - written >= (keeping?.seconds ?? 0) * 1000) {
      await checkpoint.write(await trainer.state(), history);
      written = performance.now();
    }
  }
}

/** Steps done in a saved state, stored as two numbers below 2^24. */
function stepsOf({ progress = new Float32Array() }: Readonly<Record<string, Float32Array>>): number {
  return (progress[0] ?? 0) * 2 ** 24 + (progress[1] ?? 0);
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

/** The progress text while it runs, with the latest explained variance. */
function stageOf({ evaluations }: History): string {
  const explained = evaluations.at(-1)?.explained_variance;
  return explained === undefined || explained === null
    ? "train"
    : `training, ${(100 * explained).toFixed(1)} % explained`;
}

async function reportOf(
  trainer: DictionaryTrainer,
  settings: FilledSettings,
  { losses, evaluations }: History,
  { rows, signal, textOf }: TrainingOptions,
): Promise<Trained["report"]> {
  const found = await trainer.evaluate({ signal });
  const onTraining = await trainer.trainError({ signal });
  const strongest = Array.from(found.mean.keys())
    .filter((feature) => (found.frequency[feature] as number) > 0)
    .sort((a, b) => (found.mean[b] as number) - (found.mean[a] as number) || a - b)
    .slice(0, topCounts.features);
  const examples = await trainer.strongest(strongest, examplesShown, { signal });
  const { architecture, features, k, batch, steps } = settings;
  const { train, heldOut } = trainer.rows;
  return {
    architecture,
    held_out_mse: found.mse,
    train_mse: onTraining.mse,
    explained_variance: orNull(found.explainedVariance),
    mean_active: found.active,
    dead_features: found.dead,
    dead_fraction: found.dead / features,
    losses,
    features: strongest.map((feature, i) => ({
      feature,
      mean: found.mean[feature] as number,
      frequency: found.frequency[feature] as number,
      examples: (examples[i] ?? []).map(({ piece, row, activation }) => ({
        text: textOf(rows.at(piece, row)),
        activation,
      })),
    })),
    training: {
      ...(k > 0 && { k }),
      ...{ steps, batch, train_rows: train, held_out_rows: heldOut },
      ...{ evaluated_rows: found.rows, evaluated_train_rows: onTraining.rows },
      learning_rate: settings.learningRate,
      sparsity: settings.sparsity,
      evaluations,
      densities: densitiesOf(found.frequency),
    },
  };
}

/** A histogram of firing frequencies: bins of a quarter of a power of ten, from 1e-5. */
function densitiesOf(frequency: Float32Array): Array<{ least: number; features: number }> {
  const bins = Array.from({ length: 20 }, (_, i) => ({ least: 10 ** (i / 4 - 5), features: 0 }));
  for (const share of frequency) {
    if (share === 0) continue;
    const bin = bins[Math.min(19, Math.max(0, Math.floor(4 * (Math.log10(share) + 5))))];
    if (bin !== undefined) bin.features++;
  }
  return bins;
}
