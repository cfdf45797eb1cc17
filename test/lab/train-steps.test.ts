/** The steps of a dictionary's training and its progress reports: a trainer that only counts. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Progress } from "../../src/contracts/index.js";
import type { Checkpoint, History, TrainingIdentity } from "../../src/lab/training/checkpoint.js";
import type { TrainingRows } from "../../src/lab/training/rows.js";
import { type TrainingOptions, trainDictionary } from "../../src/lab/training/train.js";
import {
  type DictionaryEvaluation,
  DictionaryTrainer,
  type DictionaryTraining,
} from "../../src/native/index.js";
import { refusal } from "../support/refusal.js";
import { withTime } from "../support/with-time.js";

const { open } = DictionaryTrainer;
test.after(() => {
  DictionaryTrainer.open = open;
});

/** Features 0 to 4: silent, strong, as strong, rare, weak. */
const evaluation = (step: number): DictionaryEvaluation => ({
  ...{ rows: 70, mse: 0.25, explainedVariance: step / 1000, active: 2, dead: 1 },
  frequency: Float32Array.of(0, 0.5, 1, 1e-6, 0.25),
  mean: Float32Array.of(9, 2, 2, 3, 1),
});

interface Toy {
  /** Evaluated at a step; otherwise the one above. */
  evaluated?: (step: number) => Partial<DictionaryEvaluation>;
  /** The duration of a run of steps, in milliseconds of the test's clock. */
  takes?: number;
  /** Called with the steps that are done, before they are answered. */
  onRun?: (done: number) => void;
}

let ms = 0;

/** Replaces the addon with a trainer that records its calls. */
function trainer({ evaluated = () => ({}), takes = 0, onRun }: Toy = {}) {
  const opened: DictionaryTraining[] = [];
  const did: string[] = [];
  DictionaryTrainer.open = (async (training: DictionaryTraining) => {
    opened.push(training);
    const { progress = [0, 0] } = training.state ?? {};
    let done = progress[0]! * 2 ** 24 + progress[1]!;
    return {
      rows: { train: 80, heldOut: 90 },
      run: async (steps: number, { onProgress }: { onProgress: (done: number) => void }) => {
        onProgress(done);
        done = Math.min(training.steps, done + steps);
        ms += takes;
        did.push(`run to ${done}`);
        onRun?.(done);
        return { stepsDone: done, mse: 1 / done, active: 1, dead: 0 };
      },
      evaluate: async () => {
        did.push("evaluate");
        return { ...evaluation(done), ...evaluated(done) };
      },
      trainError: async () => {
        did.push("train error");
        return { rows: 60, mse: 0.125 };
      },
      strongest: async (features: number[], count: number) => {
        did.push(`strongest ${count} of ${features}`);
        return features.map((feature) => [{ piece: 1, row: feature, activation: feature / 2 }]);
      },
      state: async () => ({ progress: Float32Array.of(0, done) }),
      weights: async () => ({ scale: 2 }),
      close: async () => void did.push("close"),
    };
  }) as unknown as typeof open;
  return { opened, did };
}

/** Rows to train on, to hold out and to leave aside, in two pieces. */
const rows = {
  extraction: { form: { hidden: 4 }, model: { fingerprint: "f" } },
  pieces: [
    [1, 1, 2, 0],
    [1, 0, 2],
  ].map((uses, i) => ({ path: `p${i}`, offset: 8, type: "f32", uses: Uint8Array.from(uses) })),
  at: (piece: number, row: number) => ({ text: 10 * piece, token: row }),
} as unknown as TrainingRows;

const said = { architecture: "topk", features: 5, steps: 1000, seed: 3, k: 2 } as const;

async function train(more: object = {}, options: Partial<TrainingOptions> = {}) {
  const told: Progress[] = [];
  const trained = await trainDictionary({
    ...{ rows, settings: { ...said, ...more } },
    progress: (one) => void told.push(one),
    textOf: ({ text, token }) => `${text}:${token}`,
    ...options,
  });
  return { ...trained, told };
}

test("a loss is recorded every hundredth of the steps, features every tenth and at the end", async () => {
  const { did, opened } = trainer();
  const { report, told, weights, settings } = await train({}, { threads: 3 });
  const runs = Array.from({ length: 100 }, (_, i) => 10 * (i + 1));
  assert.equal(did, [
    ...runs.flatMap((step) => [`run to ${step}`, ...(step % 100 === 0 && step < 1000 ? ["evaluate"] : [])]),
    ...["evaluate", "train error", "strongest 8 of 3,1,2,4", "close"],
  ]);
  assert.equal(
    report.losses,
    runs.map((step) => ({ step, loss: 1 / step })),
  );
  assert.equal(
    report.training!.evaluations,
    Array.from({ length: 9 }, (_, i) => ({
      ...{ step: 100 * (i + 1), explained_variance: (i + 1) / 10, mean_active: 2, dead_features: 1 },
    })),
  );
  assert.equal(
    told.map(({ stage, done, total }) => [stage, done, total]),
    runs.map((step) => [
      // The findings of the last look, until the next one.
      step <= 100 ? "train" : `training, ${(10 * Math.floor((step - 1) / 100)).toFixed(1)} % explained`,
      step - 10,
      1000,
    ]),
  );
  assert.equal([weights, settings.steps, settings.batch], [{ scale: 2 }, 1000, 3]);
  const [training] = opened as [DictionaryTraining];
  assert.equal(
    [training.pieces, training.threads, training.batch, training.hidden, training.state],
    [rows.pieces, 3, 3, 4, undefined],
  );
});

test("steps that do not divide evenly are recorded at most as often, never more", async () => {
  // Of 101 steps a loss every 2 and a look every 12; of 250 every 3 and 27; of 1001 every 11 and 110.
  for (const [steps, losses, looks] of [
    [1, [1], 0],
    [7, [1, 2, 3, 4, 5, 6, 7], 6],
    [99, 99, 9],
    [101, 51, 8],
    [250, 84, 9],
    [1001, 91, 9],
  ] as const) {
    const { did } = trainer();
    const { report } = await train({ steps });
    const { length } = report.losses;
    if (typeof losses === "number") assert.is(length, losses, `${steps}`);
    else
      assert.equal(
        report.losses.map(({ step }) => step),
        losses,
      );
    assert.is(report.losses.at(-1)!.step, steps);
    assert.is(did.filter((one) => one === "evaluate").length, 1 + looks, `looks at ${steps}`);
  }
});

test("progress reports the strongest active features, where they fire, and a histogram", async () => {
  trainer();
  const { report } = await train();
  const { losses: _, training, ...rest } = report;
  const feature = (number: number, mean: number, frequency: number) => ({
    ...{ feature: number, mean, frequency: Math.fround(frequency) },
    examples: [{ text: `10:${number}`, activation: number / 2 }],
  });
  assert.equal(rest, {
    ...{
      architecture: "topk",
      held_out_mse: 0.25,
      train_mse: 0.125,
      explained_variance: 1,
      mean_active: 2,
    },
    ...{ dead_features: 1, dead_fraction: 0.2 },
    features: [feature(3, 3, 1e-6), feature(1, 2, 0.5), feature(2, 2, 1), feature(4, 1, 0.25)],
  });
  const { evaluations, densities, learning_rate, ...settings } = training!;
  assert.equal(settings, {
    ...{ k: 2, steps: 1000, batch: 3, train_rows: 80, held_out_rows: 90, evaluated_rows: 70, sparsity: 0 },
    evaluated_train_rows: 60,
  });
  assert.ok(learning_rate > 0 && evaluations.length === 9);
  assert.is(densities.length, 20);
  assert.ok(densities.every(({ least }, i) => Math.abs(Math.log10(least) - (i / 4 - 5)) < 1e-12));
  // Once in a million is less than the first bin begins with; a quarter is 10 ** -0.6, a half 10 ** -0.3.
  assert.equal(
    densities.map(({ features }) => features),
    Array.from({ length: 20 }, (_, i) => ({ 0: 1, 17: 1, 18: 1, 19: 1 })[i] ?? 0),
  );
  // Rows that hardly differ have no variance to explain: null, and no share is reported while it runs.
  trainer({ evaluated: () => ({ explainedVariance: Number.NaN }) });
  const flat = await train({ architecture: "relu", k: undefined });
  assert.is(flat.report.explained_variance, null);
  assert.ok(flat.report.training!.evaluations.every((one) => one.explained_variance === null));
  assert.ok(flat.told.every(({ stage }) => stage === "train"));
  assert.not("k" in flat.report.training!);
  // At most sixteen.
  const many = Float32Array.from({ length: 40 }, (_, i) => 1 + i);
  trainer({ evaluated: () => ({ frequency: many.map(() => 1), mean: many }) });
  assert.equal(
    (await train({ features: 40 })).report.features.map((one) => one.feature),
    Array.from({ length: 16 }, (_, i) => 39 - i),
  );
});

/** A checkpoint in memory, with the steps that each was written at. */
function keeping(seconds: number, kept?: { state: Record<string, Float32Array>; history: History }) {
  const written: number[] = [];
  const losses: number[] = [];
  const identities: TrainingIdentity[] = [];
  const checkpoint = {
    isThere: () => kept !== undefined,
    read: async () => kept,
    write: async (state: Record<string, Float32Array>, history: History) => {
      written.push(state.progress![1]!);
      losses.push(history.losses.length);
    },
  } as unknown as Checkpoint;
  const open = (identity: TrainingIdentity) => {
    identities.push(identity);
    return checkpoint;
  };
  return { written, losses, identities, checkpoint: { open, seconds } };
}

test("a checkpoint is saved after an interval and on a stop, but not at the end", async () => {
  await withTime({ "performance.now": () => ms }, async () => {
    // Ten runs of 10 steps, each of 40 seconds: 120 seconds are over after every third.
    trainer({ takes: 40_000 });
    const each = keeping(120);
    await train({ steps: 10 }, { checkpoint: each.checkpoint });
    assert.equal(
      [each.written, each.losses],
      [
        [3, 6, 9],
        [3, 6, 9],
      ],
    );
    trainer({ takes: 40_000 });
    const always = keeping(0);
    await train({ steps: 4 }, { checkpoint: always.checkpoint });
    assert.equal(always.written, [1, 2, 3]);
    const abort = new AbortController();
    const stop = new Error("enough");
    const stopping = trainer({
      onRun: (done) => {
        if (done < 5) return;
        abort.abort();
        throw stop;
      },
    });
    const last = keeping(1e6);
    const ended = await train({ steps: 9 }, { checkpoint: last.checkpoint, signal: abort.signal }).catch(
      (e) => e,
    );
    assert.equal([ended, last.written, last.losses], [stop, [5], [4]]);
    assert.is(stopping.did.at(-1), "close");
    // After its own fault there is no point in resuming.
    const broken = trainer({
      onRun: () => {
        throw stop;
      },
    });
    const none = keeping(1e6);
    assert.is(await train({ steps: 9 }, { checkpoint: none.checkpoint }).catch((e) => e), stop);
    assert.equal([none.written, broken.did], [[], ["run to 1", "close"]]);
  });
});

test("a checkpoint resumes after its steps with its reports, for equal settings only", async () => {
  const { did, opened } = trainer();
  const state = { progress: Float32Array.of(1, 5) };
  const losses = [{ step: 2, loss: 7 }];
  const kept = keeping(1e6, { state, history: { losses, evaluations: [] } });
  const behind = 2 ** 24 + 5;
  const steps = behind + 10;
  const { report, told } = await train({ steps }, { checkpoint: kept.checkpoint });
  assert.is(opened[0]!.state, state);
  // The next loss is at a multiple of the distance between two.
  const every = Math.ceil(steps / 100);
  assert.equal(did[0], `run to ${steps}`);
  assert.ok(Math.ceil(behind / every) * every >= steps);
  assert.equal([told[0]!.done, report.losses[0], report.losses.length], [behind, losses[0], 2]);
  const { k, seed, model_fingerprint, used, held_out, rows: counts } = kept.identities[0]!;
  assert.equal([k, seed, model_fingerprint, used, held_out, counts], [2, 3, "f", 3, 2, [4, 3]]);
  assert.equal(kept.identities[0]!.steps, steps);
  // In the middle of two losses it goes to the next of them.
  const middle = trainer();
  const half = keeping(1e6, {
    state: { progress: Float32Array.of(0, 13) },
    history: { losses: [], evaluations: [] },
  });
  await train({ steps: 1000 }, { checkpoint: half.checkpoint });
  assert.equal(middle.did.slice(0, 2), ["run to 20", "run to 30"]);
  // A state without its steps is at the beginning.
  const bare = trainer();
  await train(
    { steps: 2 },
    { checkpoint: keeping(1e6, { state: {}, history: { losses: [], evaluations: [] } }).checkpoint },
  );
  assert.is(bare.did[0], "run to 1");
});

test("a training beyond this machine's memory is refused with both sizes; resuming needs more", async () => {
  const { constrainedMemory } = process;
  try {
    // 120 numbers of matrices twice, 12 rows of 16 bytes, 28 for each of a row's two, 512 a feature and thread.
    const needed = 2 * 24 * 20 + 16 * 3 * 4 + 3 * 28 * 2 + 512 * 2 * 5;
    process.constrainedMemory = () => needed;
    trainer();
    await train({}, { threads: 2 });
    process.constrainedMemory = () => needed - 1;
    const refused = trainer();
    assert.is(
      await refusal(() => train({}, { threads: 2 })),
      "Training 5 features of 4 values (topk, batches of 3 rows) takes up to 6.4 kB; this machine has 6.4 kB.",
    );
    assert.is(refused.opened.length, 0);
    process.constrainedMemory = () => needed;
    const again = keeping(1, { state: {}, history: { losses: [], evaluations: [] } });
    assert.match(
      await refusal(() => train({}, { threads: 2, checkpoint: again.checkpoint })),
      /takes up to 6\.9 kB;/,
    );
  } finally {
    process.constrainedMemory = constrainedMemory;
  }
});

test("with all rows held out, a batch still has one row", async () => {
  trainer();
  const none = { ...rows, pieces: rows.pieces.map((piece) => ({ ...piece, uses: Uint8Array.of(2, 0) })) };
  assert.is((await train({}, { rows: none })).settings.batch, 1);
});

test.run();
