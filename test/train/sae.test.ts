import { test } from "uvu";
import * as assert from "uvu/assert";
import { initialSaeWeights, NativeError, type SaeWeights, trainSae } from "../../src/native/index.js";
import { type MadeActivations, sparseSums } from "../support/activations.js";
import { fc } from "../support/fc.js";
import { TestRandom } from "../support/random.js";

const small = () => sparseSums({ train: 60, test: 20, hidden: 40, directions: 20, active: 3 });

/** Activations of every example, norms of the decoder columns counted in, and reconstruction errors. */
function encode(set: MadeActivations, sae: { weights: SaeWeights; mean: Float32Array; scale: number }) {
  const { encoderWeight, encoderBias, decoderWeight, decoderBias } = sae.weights;
  const { hidden, count } = set;
  const n = encoderBias.length;
  return Array.from({ length: count }, (_, row) => {
    const x = Array.from(
      { length: hidden },
      (_, k) => (set.features[row * hidden + k]! - sae.mean[k]!) / sae.scale,
    );
    const active = Array.from({ length: n }, (_, f) =>
      Math.max(
        0,
        x.reduce((sum, value, k) => sum + value * encoderWeight[f * hidden + k]!, encoderBias[f]!),
      ),
    );
    const error = x.map(
      (value, k) =>
        active.reduce((sum, a, f) => sum + a * decoderWeight[k * n + f]!, decoderBias[k]!) - value,
    );
    return { x, active, squareError: error.reduce((sum, e) => sum + e * e, 0) };
  });
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const close = (a: number, b: number, relative: number, what = "") =>
  assert.ok(Math.abs(a - b) <= relative * Math.max(Math.abs(a), Math.abs(b), 1e-6), `${what} ${a} and ${b}`);

test("the report is what the returned weights do", async () => {
  const set = small();
  const sae = await trainSae({ ...set, nFeatures: 48, steps: 60 });
  const rows = encode(set, sae);
  const train = rows.filter((_, row) => set.train[row]);
  const held = rows.map((row, index) => ({ ...row, index })).filter(({ index }) => !set.train[index]);
  close(sae.trainMse, mean(train.map(({ squareError }) => squareError)) / set.hidden, 1e-4);
  close(sae.heldOutMse, mean(held.map(({ squareError }) => squareError)) / set.hidden, 1e-4);
  const centre = held[0]!.x.map((_, k) => mean(held.map(({ x }) => x[k]!)));
  const variation = mean(
    held.map(({ x }) => x.reduce((sum, value, k) => sum + (value - centre[k]!) ** 2, 0)),
  );
  close(sae.explainedVariance, 1 - (sae.heldOutMse * set.hidden) / variation, 1e-4);
  const frequency = Array.from({ length: 48 }, (_, f) =>
    mean(held.map(({ active }) => Number(active[f]! > 1e-6))),
  );
  close(
    sae.meanActive,
    frequency.reduce((sum, value) => sum + value, 0),
    0.02,
  );
  assert.is(sae.deadFeatures, frequency.filter((value) => value === 0).length);
  assert.is(sae.deadFraction, sae.deadFeatures / 48);

  assert.ok(sae.features.length > 0 && sae.features.length <= 16);
  const means = sae.features.map((feature) => feature.mean);
  assert.equal(
    means,
    means.toSorted((a, b) => b - a),
  );
  for (const { feature, mean: reported, frequency: share, examples } of sae.features) {
    const activations = held.map(({ active }) => active[feature]!);
    close(reported, mean(activations), 1e-3);
    close(share, frequency[feature]!, 0.06);
    const best = held.map(({ active, index }) => ({ row: index, activation: active[feature]! }));
    best.sort((a, b) => b.activation - a.activation);
    examples.forEach(({ row, activation }, place) => {
      assert.is(set.train[row], 0);
      close(activation, best[place]!.activation, 1e-3);
    });
  }
  const everywhere = sae.features.map(({ mean: value }) => value);
  const allMeans = Array.from({ length: 48 }, (_, f) => mean(held.map(({ active }) => active[f]!)));
  close(Math.max(...allMeans), everywhere[0]!, 1e-3);
});

test("decoder columns have norm 1, and unfolded weights are the same function", async () => {
  const set = small();
  const folded = await trainSae({ ...set, nFeatures: 24, steps: 40 });
  const plain = await trainSae({ ...set, nFeatures: 24, steps: 40, foldDecoderNorms: false });
  for (let f = 0; f < 24; f++) {
    let square = 0;
    for (let k = 0; k < set.hidden; k++) square += folded.weights.decoderWeight[k * 24 + f]! ** 2;
    close(square, 1, 1e-5);
  }
  const [a, b] = [encode(set, folded), encode(set, plain)];
  a.forEach((row, i) => {
    close(row.squareError, b[i]!.squareError, 1e-4);
  });
  assert.equal(folded.losses, plain.losses);
});

test("rows are centred and scaled to a mean norm of sqrt(hidden)", async () => {
  const set = small();
  const sae = await trainSae({ ...set, nFeatures: 8, steps: 1 });
  const rows = encode(set, sae).filter((_, row) => set.train[row]);
  close(mean(rows.map(({ x }) => Math.hypot(...x))), Math.sqrt(set.hidden), 1e-5);
  for (let k = 0; k < set.hidden; k++) {
    assert.ok(Math.abs(mean(rows.map(({ x }) => x[k]!))) < 1e-5);
  }
});

test("initial weights: decoder norms 0.1, encoder its transpose, from the seed", async () => {
  const [a, b, other] = await Promise.all(
    [7, 7, 8].map((seed) => initialSaeWeights({ hidden: 30, nFeatures: 10, seed })),
  );
  assert.equal(a, b);
  assert.not.equal(a, other);
  for (let f = 0; f < 10; f++) {
    const row = a!.encoderWeight.subarray(f * 30, (f + 1) * 30);
    close(Math.hypot(...row), 0.1, 1e-6);
    row.forEach((value, k) => {
      assert.is(value, a!.decoderWeight[k * 10 + f]);
    });
  }
  assert.ok([...a!.encoderBias, ...a!.decoderBias].every((value) => value === 0));
  const set = small();
  const direct = await trainSae({ ...set, nFeatures: 10, steps: 12, seed: 4 });
  const init = await initialSaeWeights({ hidden: set.hidden, nFeatures: 10, seed: 4 });
  const { seconds: _, ...rest } = await trainSae({ ...set, nFeatures: 10, steps: 12, seed: 99, init });
  assert.equal({ ...rest, seconds: direct.seconds }, direct);
});

/** Four features of five dimensions, far from any optimum, and the rows that they are trained on. */
function drawn() {
  const random = new TestRandom(11);
  const [hidden, n, count] = [5, 4, 24];
  const features = random.normals(count * hidden);
  const train = Uint8Array.from({ length: count }, (_, row) => (row < 20 ? 1 : 0));
  const init: SaeWeights = {
    encoderWeight: random.normals(n * hidden),
    encoderBias: random.normals(n).map((x) => 0.3 * x),
    decoderWeight: random.normals(n * hidden),
    decoderBias: random.normals(hidden).map((x) => 0.3 * x),
  };
  return { hidden, n, count, features, train, init, l1: 0.7 };
}

test("the penalty warms up over the first 5 % of steps, the rate decays over 20 %", async () => {
  const { n, features, train, init, l1 } = drawn();
  /** How far the penalty alone moves the encoder's biases, in steps so small that its gradient stays what it is. */
  const moved = async (steps: number, learningRate: number) => {
    // So large an epsilon makes of Adam's step its running mean of the gradients.
    const small = { nFeatures: n, init, learningRate, epsilon: 1e6, foldDecoderNorms: false };
    const [with_, without] = await Promise.all(
      [l1, 0].map((weight) => trainSae({ features, train, ...small, steps, l1: weight })),
    );
    return Array.from(with_!.weights.encoderBias, (bias, f) => bias - without!.weights.encoderBias[f]!);
  };
  // Of 40 steps, two for the one and eight for the other; of one step, none.
  let [weighted, weights, expected] = [0, 0, 0];
  for (let step = 0; step < 40; step++) {
    const penalty = step === 0 ? 0.5 : 1;
    weighted = 0.9 * weighted + 0.1 * penalty;
    weights = 0.9 * weights + 0.1;
    const rate = step < 32 ? 1 : (40 - step) / 8;
    expected += rate * (weighted / weights);
  }
  // One step forty times as long, which float32 holds better.
  const [one, all] = [await moved(1, 800), await moved(40, 20)];
  assert.ok(
    one.every((distance) => distance < -1e-5),
    String(one),
  );
  all.forEach((distance, f) => {
    close((40 * distance) / one[f]!, expected, 8e-3, `feature ${f}`);
  });
});

test("gradients agree with finite differences of the loss", async () => {
  // One step with learning rate 1 and epsilon 1 moves a weight by -g / (|g| + 1), from which g follows.
  const { hidden, n, count, features, train, init, l1 } = drawn();
  const step = await trainSae({
    ...{ features, train, nFeatures: n, steps: 1, init, l1 },
    ...{ learningRate: 1, epsilon: 1, foldDecoderNorms: false },
  });
  const at0 = { mean: step.mean, scale: step.scale };
  const made = { features, train, count, hidden, labels: new Uint8Array(count) };
  const loss = (weights: SaeWeights) => {
    const norms = Array.from({ length: n }, (_, f) =>
      Math.hypot(...Array.from({ length: hidden }, (_, k) => weights.decoderWeight[k * n + f]!)),
    );
    const rows = encode(made, { weights, ...at0 }).slice(0, 20);
    const total = rows.map(
      ({ squareError, active }) => squareError + l1 * active.reduce((sum, a, f) => sum + a * norms[f]!, 0),
    );
    return mean(total) / hidden;
  };
  close(step.losses[0]!.loss, loss(init), 1e-5, "loss");
  for (const name of ["encoderWeight", "encoderBias", "decoderWeight", "decoderBias"] as const) {
    init[name].forEach((value, i) => {
      const h = 1e-4; // in double precision: only the weights themselves are rounded to float32
      const shifted = (by: number) => {
        const array = Float64Array.from(init[name]);
        array[i] = value + by;
        return loss({ ...init, [name]: array as unknown as Float32Array });
      };
      const numeric = (shifted(h) - shifted(-h)) / (2 * h);
      const moved = step.weights[name][i]! - value;
      const gradient = -moved / (1 - Math.abs(moved));
      assert.ok(
        Math.abs(numeric - gradient) < 1e-3 * (1 + Math.abs(numeric)),
        `${name}[${i}] ${gradient} ${numeric}`,
      );
    });
  }
});

test("losses fall, at the steps promised, and sparse sums are explained", async () => {
  const set = sparseSums({ train: 256, test: 64, hidden: 128, directions: 40, active: 4 });
  const sae = await trainSae({ ...set, nFeatures: 64, steps: 105 });
  assert.equal(
    sae.losses.map(({ step }) => step),
    [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 105],
  );
  sae.losses.slice(1).forEach(({ loss }, i) => {
    assert.ok(loss < sae.losses[i]!.loss, `loss ${loss} after ${sae.losses[i]!.loss}`);
  });
  assert.ok(sae.explainedVariance > 0.6, `explained variance ${sae.explainedVariance}`);
  assert.ok(sae.deadFraction < 0.2, `dead ${sae.deadFeatures}`);
  assert.ok(sae.meanActive < 32, `L0 ${sae.meanActive}`);
});

test("features that no held-out example activates are counted as dead", async () => {
  const set = small();
  const init = await initialSaeWeights({ hidden: set.hidden, nFeatures: 16 });
  for (const f of [3, 5, 12]) init.encoderBias[f] = -1000;
  const sae = await trainSae({ ...set, nFeatures: 16, steps: 0, init });
  const active = (f: number) => encode(set, sae).some((row, i) => !set.train[i] && row.active[f]! > 0);
  const dead = Array.from({ length: 16 }, (_, f) => f).filter((f) => !active(f));
  assert.equal(
    [3, 5, 12].filter((f) => dead.includes(f)),
    [3, 5, 12],
  );
  assert.is(sae.deadFeatures, dead.length);
  assert.is(sae.deadFraction, dead.length / 16);
  assert.ok(sae.features.every(({ feature }) => !dead.includes(feature)));
  init.encoderBias.fill(-1000);
  const silent = await trainSae({ ...set, nFeatures: 16, steps: 3, init });
  assert.equal(
    [silent.deadFeatures, silent.deadFraction, silent.meanActive, silent.features],
    [16, 1, 0, []],
  );
});

test("a stronger penalty leaves fewer features active", async () => {
  const [weak, strong] = await Promise.all(
    [0.1, 10].map((l1) => trainSae({ ...small(), nFeatures: 32, l1 })),
  );
  assert.ok(strong!.meanActive < 0.7 * weak!.meanActive, `${strong!.meanActive} and ${weak!.meanActive}`);
});

test("the same numbers for the same seed, whatever the number of threads", async () => {
  const set = sparseSums({ train: 130, test: 30, hidden: 300, directions: 30, active: 4 });
  const runs = await Promise.all(
    [1, 2, 3, 5].map((threads) => trainSae({ ...set, nFeatures: 70, seed: 2, threads })),
  );
  for (const { seconds: _, ...run } of runs) assert.equal({ ...run, seconds: runs[0]!.seconds }, runs[0]);
  const other = await trainSae({ ...set, nFeatures: 70, seed: 3 });
  assert.is.not(other.losses[1]!.loss, runs[0]!.losses[1]!.loss);
});

test("identical examples train without a scale", async () => {
  const set = small();
  const sae = await trainSae({
    ...set,
    features: new Float32Array(set.features.length).fill(2.5),
    steps: 20,
  });
  assert.is(sae.scale, 1);
  assert.ok(Number.isNaN(sae.explainedVariance));
  assert.ok(sae.losses.every(({ loss }) => Number.isFinite(loss)));
});

test("rows that differ in their last digits only have no variance to explain", async () => {
  const set = small();
  // The held-out rows are 1 and the next float32 above it.
  const features = set.features.map((x, i) =>
    set.train[Math.floor(i / set.hidden)] === 1 ? x : 1 + (i % 3 === 0 ? 2 ** -23 : 0),
  );
  const { explainedVariance } = await trainSae({ ...set, features, nFeatures: 8, steps: 2 });
  assert.ok(Number.isNaN(explainedVariance), `${explainedVariance}`);
});

test("a loss is told with the whole penalty, also where it has only begun to count", async () => {
  const set = small();
  // Of 200 steps the first ten have a part of it.
  const [untouched, begun] = [
    await trainSae({ ...set, nFeatures: 8, l1: 3, steps: 0 }),
    await trainSae({ ...set, nFeatures: 8, l1: 3, steps: 200, lossEvery: 100 }),
  ];
  assert.is(begun.losses[0]!.step, 0);
  close(begun.losses[0]!.loss, untouched.losses[0]!.loss, 1e-5);
  const rows = encode(set, untouched).filter((_, row) => set.train[row] === 1);
  const { decoderWeight } = untouched.weights;
  const norms = Array.from({ length: 8 }, (_, f) =>
    Math.hypot(...Array.from({ length: set.hidden }, (_, k) => decoderWeight[k * 8 + f]!)),
  );
  const byHand = mean(
    rows.map(
      ({ squareError, active }) =>
        squareError + 3 * active.reduce((sum, value, f) => sum + value * norms[f]!, 0),
    ),
  );
  close(untouched.losses[0]!.loss, byHand / set.hidden, 1e-4);
});

test("a decoder column of zeros stays what it is", async () => {
  const set = small();
  const init = await initialSaeWeights({ hidden: set.hidden, nFeatures: 8, seed: 1 });
  for (let k = 0; k < set.hidden; k++) init.decoderWeight[k * 8 + 5] = 0;
  const encoder = init.encoderWeight.slice(5 * set.hidden, 6 * set.hidden);
  const { weights, explainedVariance } = await trainSae({ ...set, nFeatures: 8, init, steps: 0 });
  assert.ok([...weights.encoderWeight, ...weights.decoderWeight].every(Number.isFinite));
  assert.equal(weights.encoderWeight.slice(5 * set.hidden, 6 * set.hidden), encoder);
  assert.ok(Number.isFinite(explainedVariance));
});

test("no steps: the initial weights, measured", async () => {
  const sae = await trainSae({ ...small(), nFeatures: 8, steps: 0 });
  assert.equal(
    sae.losses.map(({ step }) => step),
    [0],
  );
});

async function rejection(promise: Promise<unknown>): Promise<NativeError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof NativeError)) throw new Error(`expected a NativeError, not ${error}`);
  return error;
}

test("cancelled in the middle, with progress until then", async () => {
  const set = sparseSums({ train: 400, test: 20, hidden: 1000, directions: 20, active: 3 });
  const abort = new AbortController();
  const seen: Array<[number, number]> = [];
  const error = await rejection(
    trainSae(
      { ...set, nFeatures: 512, steps: 100000 },
      {
        signal: abort.signal,
        onProgress: (done, total) => {
          seen.push([done, total]);
          if (seen.length === 2) abort.abort();
        },
      },
    ),
  );
  assert.is(error.code, "CANCELLED");
  assert.ok(seen.length >= 2 && seen.every(([done, total]) => done > 0 && done < total && total === 100000));
});

test("bad input gets a sentence with the actual value", async () => {
  const set = small();
  const init = await initialSaeWeights({ hidden: set.hidden, nFeatures: 8 });
  const cases: Array<[object, RegExp]> = [
    [{ nFeatures: 0 }, /nFeatures .* got 0/],
    [{ steps: 1.5 }, /steps .* got 1.5/],
    [{ l1: -1 }, /l1 .* got -1/],
    [{ learningRate: 0 }, /learningRate .* got 0/],
    [{ lossEvery: 0 }, /lossEvery .* got 0/],
    [{ nFeatures: 9, init }, /init.encoderWeight must be a Float32Array of 360 numbers/],
    [{ nFeatures: 8, init: { ...init, decoderBias: init.encoderBias } }, /init.decoderBias .* 40 numbers/],
    [{ train: set.train.map(() => 0) }, /one split/],
    [
      { features: set.features.map((x, i) => (i === 41 ? Number.POSITIVE_INFINITY : x)) },
      /Activation 1 of example 1/,
    ],
  ];
  for (const [change, sentence] of cases) {
    const error = await rejection(trainSae({ ...set, ...change } as never));
    assert.is(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, sentence);
  }
  assert.is((await rejection(trainSae({ ...set, learningRate: 1e30 }))).code, "COMPUTE");
});

test("any size works, and nothing crashes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 70 }),
      fc.integer({ min: 2, max: 40 }),
      fc.integer({ min: 1, max: 70 }),
      fc.integer({ min: 0, max: 1 << 30 }),
      fc.constantFrom(1e-20, 1, 1e15),
      async (hidden, count, nFeatures, seed, size) => {
        const random = new TestRandom(seed);
        const features = Float32Array.from({ length: count * hidden }, () => random.normal() * size);
        const train = Uint8Array.from({ length: count }, (_, row) =>
          row === 0 ? 1 : row === 1 ? 0 : random.below(2),
        );
        const sae = await trainSae({ features, train, nFeatures, steps: 3, seed, threads: 2 });
        assert.ok([sae.trainMse, sae.heldOutMse, sae.meanActive].every(Number.isFinite));
        assert.is(sae.weights.encoderWeight.length, nFeatures * hidden);
        assert.ok([...sae.weights.encoderWeight, ...sae.weights.decoderWeight].every(Number.isFinite));
      },
    ),
    { numRuns: 60 },
  );
});

test.run();
