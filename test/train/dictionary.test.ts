import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  DictionaryTrainer,
  type DictionaryTraining,
  type DictionaryWeights,
  NativeError,
} from "../../src/native/index.js";
import { fc } from "../support/fc.js";
import { pythonWith } from "../support/python.js";
import { TestRandom } from "../support/random.js";
import { reference } from "../support/reference.js";
import { fileOf, folder, made, trained, training } from "./small-dictionary.js";

const architectures = ["relu", "topk", "batchtopk", "jumprelu"] as const;

const python = pythonWith("numpy");
type Weights = Record<"encoder" | "decoder" | "encoder_bias" | "decoder_bias" | "log_threshold", number[]>;

/** Largest difference of two changes, over the largest change. */
function apart(before: ArrayLike<number>, found: ArrayLike<number>, wanted: ArrayLike<number>): number {
  let [difference, change] = [0, 0];
  for (let i = 0; i < before.length; i++) {
    difference = Math.max(difference, Math.abs((found[i] as number) - (wanted[i] as number)));
    change = Math.max(change, Math.abs((wanted[i] as number) - (before[i] as number)));
  }
  return change === 0 ? difference : difference / change;
}

const close = (a: number, b: number, within: number, what: string) =>
  assert.ok(Math.abs(a - b) <= within * Math.max(1e-3, Math.abs(a), Math.abs(b)), `${what}: ${a} and ${b}`);

for (const architecture of architectures) {
  const check = async () => {
    const rows = made({ train: 40, test: 4, hidden: 7 });
    const cases: Array<Partial<DictionaryTraining>> = [
      // So large an epsilon makes of Adam's step the gradient itself.
      { epsilon: 1e6, learningRate: 3e6, steps: 1, deadAfter: 1000 },
      { epsilon: 1e6, learningRate: 3e6, steps: 1, deadAfter: 0, auxWeight: 0.5 },
      { epsilon: 1e-3, learningRate: 1e-2, steps: 4, deadAfter: 1000 },
    ];
    for (const more of cases) {
      const settings = training(rows, architecture, {
        ...{ features: 11, k: architecture.endsWith("topk") ? 3 : 0, batch: 40, warmup: 0, decay: 0 },
        ...{ sparsityWarmup: 0, auxK: 5, ...more },
      });
      const [before, after] = await trained(settings, async (trainer) => {
        const start = await trainer.state();
        await trainer.run(settings.steps);
        return [start, await trainer.state()];
      });
      const wanted = reference<Weights>(
        python as string,
        fileURLToPath(new URL("./fixtures/sparse.py", import.meta.url)),
        {
          ...{ hidden: 7, features: 11, k: settings.k, architecture, steps: settings.steps },
          ...{ sparsity: settings.sparsity, bandwidth: settings.bandwidth, rate: settings.learningRate },
          ...{ epsilon: settings.epsilon as number, aux_weight: settings.auxWeight },
          aux_k: settings.deadAfter === 0 ? settings.auxK : 0,
          rows: rows.features.subarray(0, 40 * 7),
          ...(Object.fromEntries(
            Object.entries(before).filter(([name]) => name in after && !/\.|fired|progress/.test(name)),
          ) as Record<string, Float32Array>),
        },
      );
      for (const [name, numbers] of Object.entries(wanted)) {
        const off = apart(before[name] as Float32Array, after[name] as Float32Array, numbers);
        assert.ok(off < 1e-3, `${architecture}, ${JSON.stringify(more)}: ${name} is ${off} apart`);
      }
    }
  };
  const title = `${architecture}: steps are those of finite differences in float64`;
  if (python === undefined) test.skip(title, check);
  else test(title, check);
}

test("relu: steps in dense products, while many features fire, are the steps on lists", async () => {
  const rows = made({ train: 100, test: 20, hidden: 40 });
  const settings = training(rows, "relu", { features: 70, steps: 5, batch: 100 });
  /** States after five steps of a dictionary whose biases begin at `bias`. */
  const steps = (bias: number, lists: boolean) =>
    trained(settings, async (before) => {
      const state = await before.state();
      state.encoder_bias?.fill(bias);
      // Features that the auxiliary loss looks after are listed; with this weight it changes nothing.
      const aux = lists ? { deadAfter: 0, auxWeight: 1e-30 } : {};
      return trained({ ...settings, ...aux, state }, async (trainer) => {
        const { active } = await trainer.run(5);
        return { active, state: await trainer.state(), evaluation: await trainer.evaluate() };
      });
    });
  for (const [bias, least, most] of [
    [0, 20, 70],
    [-0.15, 0, 11],
  ] as const) {
    const [one, other] = [await steps(bias, false), await steps(bias, true)];
    assert.ok(one.active > least && one.active < most, `${one.active} active from a bias of ${bias}`);
    close(one.active, other.active, 1e-3, "active");
    close(one.evaluation.mse, other.evaluation.mse, 1e-4, "mse");
    for (const name of ["encoder", "encoder_bias", "decoder", "decoder_bias"]) {
      const [found, wanted] = [one.state[name] as Float32Array, other.state[name] as Float32Array];
      found.forEach((value, i) => {
        const wide = `${name}[${i}] from a bias of ${bias}: ${value} and ${wanted[i]}`;
        assert.ok(Math.abs(value - (wanted[i] as number)) < 2e-4, wide);
      });
    }
    // Its first step has no feature that died: what fired is counted in either way.
    assert.equal(one.state.last_fired, other.state.last_fired, "last_fired");
  }
});

test("warm-up: the first of four steps has a quarter of the rate or penalty", async () => {
  const rows = made();
  const plain = { steps: 1, warmup: 0, decay: 0, sparsityWarmup: 0 };
  const state = (more: Partial<DictionaryTraining>) =>
    trained(training(rows, "relu", { ...plain, ...more }), async (trainer) => {
      await trainer.run(1);
      return trainer.state();
    });
  const [rate, sparsity] = [4e-3, 0.5];
  const cases: [Partial<DictionaryTraining>, Partial<DictionaryTraining>][] = [
    [{ warmup: 4 }, { learningRate: rate / 4 }],
    [{ decay: 4 }, { learningRate: rate / 4 }],
    [{ sparsityWarmup: 4 }, { sparsity: sparsity / 4 }],
    [{ warmup: 1, decay: 1, sparsityWarmup: 1 }, {}],
  ];
  for (const [schedule, same] of cases) {
    const [one, other] = [
      await state({ learningRate: rate, sparsity, ...schedule }),
      await state({ learningRate: rate, sparsity, ...same }),
    ];
    assert.equal(one, other, JSON.stringify(schedule));
  }
});

test("any number of threads, and any pause, gives the same numbers to the bit", async () => {
  for (const architecture of architectures) {
    const rows = made({ train: 150, test: 20, hidden: 40 });
    const settings = training(rows, architecture, {
      features: 70,
      steps: 14,
      batch: 100,
      deadAfter: 2,
      threads: 2,
    });
    const whole = await trained(settings, async (trainer) => {
      await trainer.run(14);
      return trainer.state();
    });
    for (const threads of [1, 3]) {
      const half = await trained({ ...settings, threads }, async (trainer) => {
        await trainer.run(5);
        assert.is((await trainer.run(0)).stepsDone, 5);
        return trainer.state();
      });
      const rest = await trained({ ...settings, threads, state: half }, async (trainer) => {
        assert.is((await trainer.run(100)).stepsDone, 14, "no more than there are");
        return trainer.state();
      });
      assert.equal(rest, whole, `${architecture}, ${threads} threads`);
    }
  }
});

/** Active features of a row and its error, from the weights alone. */
function rebuilt(row: ArrayLike<number>, weights: DictionaryWeights, architecture: string, k: number) {
  const { encoder, encoderBias, decoder, decoderBias, threshold, mean, scale } = weights;
  const hidden = mean.length;
  const x = Array.from(row, (value, i) => (value - (mean[i] as number)) / scale);
  let f = Array.from(encoderBias, (bias, feature) => {
    const h = x.reduce((sum, value, i) => sum + value * (encoder[feature * hidden + i] as number), bias);
    const reach = architecture === "relu" || architecture === "topk" ? 0 : (threshold?.[feature] as number);
    return h > reach ? h : 0;
  });
  if (architecture === "topk") {
    const kept = [...f.keys()].sort((a, b) => (f[b] as number) - (f[a] as number) || a - b).slice(0, k);
    f = f.map((value, feature) => (kept.includes(feature) ? value : 0));
  }
  const error = x.map((value, i) =>
    f.reduce(
      (sum, one, feature) => sum + one * (decoder[feature * hidden + i] as number),
      (decoderBias[i] as number) - value,
    ),
  );
  return { x, f, square: error.reduce((sum, e) => sum + e * e, 0) };
}

test("an evaluation is what the weights do, whatever the shape", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...architectures),
      fc.record({
        hidden: fc.integer({ min: 1, max: 50 }),
        features: fc.integer({ min: 1, max: 70 }),
        k: fc.integer({ min: 1, max: 70 }),
        rows: fc.integer({ min: 4, max: 60 }),
        batch: fc.integer({ min: 1, max: 130 }),
        initialThreshold: fc.constantFrom(1e-3, 0.3, 50),
      }),
      fc.constantFrom("normal", "zero rows", "all alike", "huge"),
      async (architecture, shape, kind) => {
        const { hidden, features, rows, batch } = shape;
        const random = new TestRandom(rows);
        const numbers = random.normals(rows * hidden).map((value, i) => {
          if (kind === "all alike") return 2.5;
          if (kind === "zero rows" && Math.floor(i / hidden) % 2 === 0) return 0;
          return kind === "huge" ? value * 1e15 : value;
        });
        const uses = Uint8Array.from({ length: rows }, (_, row) => (row % 3 === 0 ? 2 : 1));
        const k = architecture.endsWith("topk") ? Math.min(shape.k, features) : 0;
        const settings = training({ features: numbers, hidden, uses }, architecture, {
          ...{ features, k, batch, steps: 3, deadAfter: 1, initialThreshold: shape.initialThreshold },
        });
        await trained(settings, async (trainer) => {
          const { mse, active } = await trainer.run(3);
          assert.ok(Number.isFinite(mse) && active <= features);
          const found = await trainer.evaluate();
          const weights = await trainer.weights();
          const held = [...uses.keys()].filter((row) => uses[row] === 2);
          assert.is(found.rows, held.length);
          const own = held.map((row) =>
            rebuilt(numbers.subarray(row * hidden, (row + 1) * hidden), weights, architecture, k),
          );
          const sum = (of: (one: (typeof own)[number]) => number) =>
            own.reduce((all, one) => all + of(one), 0);
          close(found.mse, sum(({ square }) => square) / held.length / hidden, 1e-3, "mse");
          // A feature at the edge of firing may round to either side.
          const fired = sum(({ f }) => f.filter((value) => value > 0).length);
          assert.ok(Math.abs(found.active * held.length - fired) <= 1 + 0.01 * fired, "active");
          if (architecture === "topk") assert.ok(found.active <= k);
          const silent = [...found.frequency].filter((share) => share === 0).length;
          assert.is(found.dead, silent);
          const centre = Array.from(
            { length: hidden },
            (_, i) => sum(({ x }) => x[i] as number) / held.length,
          );
          const variation = sum(({ x }) =>
            x.reduce((all, value, i) => all + (value - (centre[i] as number)) ** 2, 0),
          );
          if (kind === "all alike") assert.ok(Number.isNaN(found.explainedVariance));
          else if (variation > 1e-3) {
            close(1 - found.explainedVariance, sum(({ square }) => square) / variation, 2e-3, "unexplained");
          }
          assert.ok([...weights.encoder, ...weights.decoder].every(Number.isFinite));
        });
      },
    ),
    { numRuns: 40 },
  );
});

test("each epoch visits every training row once, in a new order, and no other", async () => {
  const rows = made({ train: 200, test: 3, hidden: 5 });
  // Rows that are of no use may hold anything.
  for (const row of [0, 64, 130]) {
    rows.uses[row] = 0;
    rows.features.fill(Number.NaN, row * 5, (row + 1) * 5);
  }
  const settings = training(rows, "topk", { batch: 1, steps: 500, learningRate: 1e-30, warmup: 0 });
  const errors = await trained(settings, async (trainer) => {
    assert.equal(trainer.rows, { train: 197, heldOut: 3 });
    const found: number[] = [];
    // To five digits: decoder rows are divided by their length once a step.
    for (let i = 0; i < 2 * 197; i++) found.push(Number((await trainer.run(1)).mse.toPrecision(5)));
    return found;
  });
  const [once, twice] = [errors.slice(0, 197), errors.slice(197)];
  assert.is(new Set(once).size, 197);
  assert.not.equal(once, twice);
  assert.equal(once.toSorted(), twice.toSorted());
  const ordered = await trained({ ...settings, seed: 6 }, async (trainer) => (await trainer.run(1)).mse);
  assert.is.not(ordered, once[0]);
});

test("rows of 16 bits in several files are the same rows", async () => {
  const rows = made({ train: 150, test: 30, hidden: 9 });
  // What both types hold: small whole numbers.
  rows.features.forEach((value, i) => {
    rows.features[i] = Math.round(4 * value);
  });
  const bits = new Uint32Array(rows.features.buffer);
  const bf16 = Uint16Array.from(bits, (each) => each >>> 16);
  const f16 = Uint16Array.from(rows.features, halfOf);
  const settings = training(rows, "topk", { steps: 8 });
  const run = (each: DictionaryTraining) =>
    trained(each, async (trainer) => {
      await trainer.run(8);
      return [await trainer.state(), await trainer.evaluate()];
    });
  const wanted = await run(settings);
  for (const [type, data] of [
    ["bf16", bf16],
    ["f16", f16],
  ] as const) {
    assert.equal(
      await run({ ...settings, pieces: [{ ...fileOf(data), type, uses: rows.uses }] }),
      wanted,
      type,
    );
  }
});

/** Of a whole number below 2048. */
function halfOf(value: number): number {
  if (value === 0) return 0;
  const exponent = Math.floor(Math.log2(Math.abs(value)));
  const fraction = Math.round((Math.abs(value) / 2 ** exponent - 1) * 1024);
  return (value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | fraction;
}

test("a sparse dictionary finds the directions that rows are sums of", async () => {
  const rows = made({ train: 1500, test: 200, hidden: 24 });
  for (const architecture of ["topk", "batchtopk", "jumprelu"] as const) {
    const settings = training(rows, architecture, {
      ...{ features: 40, k: architecture === "jumprelu" ? 0 : 4, steps: 400, batch: 128, learningRate: 5e-3 },
      ...{ warmup: 20, decay: 100, sparsity: 0.01, sparsityWarmup: 40, deadAfter: 30 },
    });
    const { active, explainedVariance } = await trained(settings, async (trainer) => {
      await trainer.run(400);
      return trainer.evaluate();
    });
    assert.ok(explainedVariance > 0.8, `${architecture} explains ${explainedVariance}`);
    assert.ok(active < 8, `${architecture} has ${active} active`);
  }
});

test("features that never fire are brought back by the auxiliary loss", async () => {
  const rows = made({ train: 2000, test: 10, hidden: 24, directions: 80 });
  const deadWith = async (auxWeight: number) => {
    const settings = training(rows, "topk", {
      ...{ features: 80, k: 3, steps: 300, batch: 256, deadAfter: 10, auxK: 12, auxWeight },
    });
    const state = await trained(settings, (trainer) => trainer.state());
    state.encoder_bias?.fill(-2, 40); // half of the features begin far from firing
    return trained({ ...settings, state }, async (trainer) => (await trainer.run(300)).dead);
  };
  const [revived, left] = [await deadWith(1 / 32), await deadWith(0)];
  assert.ok(left >= 10 && revived < left / 3, `${revived} dead with it, ${left} without`);
});

async function rejection(promise: Promise<unknown>): Promise<NativeError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof NativeError)) throw new Error(`expected a NativeError, not ${error}`);
  return error;
}

test("what cannot be trained on is told by its place", async () => {
  const rows = made();
  const bad = { ...rows, features: rows.features.slice() };
  bad.features[3 * rows.hidden + 1] = Number.NaN;
  const settings = training(bad, "topk");
  const error = await rejection(trained(settings, (trainer) => trainer.run(60)));
  assert.is(error.code, "COMPUTE");
  assert.match(error.message, /A number in row 3 of .*rows-\d+ is not finite\./);

  const sound = training(rows, "topk");
  const cases: Array<[Partial<DictionaryTraining>, RegExp]> = [
    [{ features: 0 }, /features must be an integer from 1/],
    [{ k: 25 }, /k 25/],
    [{ k: 0 }, /k 0/],
    [{ learningRate: 0 }, /cannot be trained/],
    [{ pieces: [] }, /got 0 and 0\.$/],
    [{ pieces: [{ ...sound.pieces[0]!, uses: new Uint8Array(120).fill(1) }] }, /got 120 and 0\.$/],
    [{ pieces: [{ ...sound.pieces[0]!, uses: new Uint8Array(121).fill(1) }] }, /do not lie in a file/],
    // In the file, but between its numbers: not every processor reads these.
    [{ pieces: [{ ...sound.pieces[0]!, offset: 6 }] }, /2400 numbers at byte 6/],
    [{ pieces: [{ ...sound.pieces[0]!, type: "f16", offset: 7 }] }, /2400 numbers at byte 7/],
    [{ pieces: [{ ...sound.pieces[0]!, path: join(folder, "none") }] }, /cannot be read/],
    [
      { state: { encoder: new Float32Array(3) } },
      /belongs to a different dictionary: its encoder has 3 numbers, not 480/,
    ],
  ];
  for (const [change, sentence] of cases) {
    const refused = await rejection(DictionaryTrainer.open({ ...sound, ...change }));
    assert.is(refused.code, "INVALID_ARGUMENT");
    assert.match(refused.message, sentence);
  }
  const diverged = await rejection(trained({ ...sound, learningRate: 1e30 }, (trainer) => trainer.run(60)));
  assert.match(diverged.message, /diverged at step \d+/);
});

test("a training ends between two steps, and after close() is told to be closed", async () => {
  const trainer = await DictionaryTrainer.open(training(made(), "topk", { steps: 1e9 }));
  const abort = new AbortController();
  const seen: number[] = [];
  const running = trainer.run(1e9, {
    signal: abort.signal,
    onProgress: (done, total) => {
      assert.is(total, 1e9);
      seen.push(done);
      if (seen.length === 2) abort.abort();
    },
  });
  assert.is((await rejection(running)).code, "CANCELLED");
  assert.ok((await trainer.run(0)).stepsDone >= (seen[1] as number));
  await trainer.close();
  await trainer.close();
  assert.is((await rejection(trainer.evaluate())).code, "CLOSED");
});

test.run();
