import ndarray from "ndarray";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { NativeError, trainProbe } from "../../src/native/index.js";
import { type MadeActivations, twoClasses } from "../support/activations.js";
import { fc } from "../support/fc.js";
import { TestRandom } from "../support/random.js";

const sigmoid = (z: number) => 1 / (1 + Math.exp(-z));
const close = (a: number, b: number, tolerance: number, what = "") =>
  assert.ok(Math.abs(a - b) <= tolerance, `${what} ${a} and ${b} differ by more than ${tolerance}`);

/** Training rows, standardised here and not by the addon. */
function standardised(set: MadeActivations, floor = 0.01): number[][] {
  const rows: number[][] = [];
  for (let row = 0; row < set.count; row++) {
    if (set.train[row]) rows.push([...set.features.subarray(row * set.hidden, (row + 1) * set.hidden)]);
  }
  for (let k = 0; k < set.hidden; k++) {
    const mean = rows.reduce((sum, row) => sum + row[k]!, 0) / rows.length;
    const variance = rows.reduce((sum, row) => sum + (row[k]! - mean) ** 2, 0) / rows.length;
    const std = Math.max(Math.sqrt(variance), floor);
    for (const row of rows) row[k] = (row[k]! - mean) / std;
  }
  return rows;
}

function gradientNorm(
  set: MadeActivations,
  probe: { weight: Float64Array; bias: number },
  c: number,
): number {
  const rows = standardised(set);
  const labels = set.labels.filter((_, row) => set.train[row] === 1);
  const gradient = [...probe.weight].map((w) => w / c);
  let bias = 0;
  rows.forEach((row, i) => {
    const residual = sigmoid(row.reduce((sum, x, k) => sum + x * probe.weight[k]!, probe.bias)) - labels[i]!;
    bias += residual;
    row.forEach((x, k) => {
      gradient[k]! += residual * x;
    });
  });
  return Math.max(Math.abs(bias), ...gradient.map(Math.abs));
}

const easy = { test: 40, separation: 0.3 };

test("two mirrored points have a known optimum", async () => {
  // Standardised, the points are -1 and 1 (labels 0 and 1), so b = 0 and w = 2 sigmoid(-w): w = 0.6850...
  const probe = await trainProbe({
    features: Float32Array.of(-3, 5, 0, 1),
    labels: Uint8Array.of(0, 1, 0, 1),
    train: Uint8Array.of(1, 1, 0, 0),
  });
  let w = 0.7;
  for (let i = 0; i < 200; i++) w -= (w - 2 * sigmoid(-w)) / (1 + 2 * sigmoid(-w) * sigmoid(w));
  close(probe.weight[0]!, w, 1e-9);
  close(probe.bias, 0, 1e-9);
  assert.equal([probe.mean[0], probe.std[0]], [1, 4]);
  assert.equal([probe.trainSize, probe.testSize, probe.converged], [2, 2, true]);
});

for (const [train, hidden, c] of [
  [60, 100, 1],
  [60, 30, 1],
  [40, 700, 1],
  [150, 149, 10],
  [90, 33, 0.01],
  // As far as single precision leads the way, and where it would lead nowhere.
  [40, 700, 2000],
  [60, 64, 1e6],
  [40, 700, 1e6],
] as const) {
  test(`the gradient vanishes at ${train} x ${hidden}, C = ${c}`, async () => {
    const set = twoClasses({ train, hidden, ...easy }, train + hidden);
    const probe = await trainProbe({ ...set, c });
    assert.ok(probe.converged);
    const measured = gradientNorm(set, probe, c);
    assert.ok(measured <= 1e-8, `gradient ${measured}`);
    assert.ok(probe.gradientNorm <= 1e-8, `reported ${probe.gradientNorm}`);
  });
}

/** What only single precision has trouble with: every feature says the same of an example, up to its sign. */
function oneNumber(numbers: number[], hidden: number, labels: number[]): MadeActivations {
  const count = numbers.length;
  return {
    features: Float32Array.from(
      { length: count * hidden },
      (_, i) => ((i % hidden) % 2 === 1 ? -1 : 1) * numbers[Math.floor(i / hidden)]!,
    ),
    labels: Uint8Array.from(labels),
    train: Uint8Array.from(labels, (_, row) => Number(row < count - 1)),
    ...{ count, hidden },
  };
}

/** Its optimum: all weights are as long, so that one number and the bias are left; Newton's method on both. */
function optimumOfOne({ features, labels, count, hidden }: MadeActivations, c: number) {
  const numbers = Array.from({ length: count - 1 }, (_, row) => features[row * hidden]!);
  const mean = numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
  const std = Math.sqrt(numbers.reduce((sum, x) => sum + (x - mean) ** 2, 0) / numbers.length);
  let [w, b] = [0, 0]; // of the sum of the weights, with their signs
  for (let step = 0; step < 100; step++) {
    let [gw, gb, hww, hwb, hbb] = [w / (c * hidden), 0, 1 / (c * hidden), 0, 0];
    for (const [row, number] of numbers.entries()) {
      const x = (number - mean) / std;
      const p = sigmoid(w * x + b);
      gw += (p - labels[row]!) * x;
      gb += p - labels[row]!;
      hww += p * (1 - p) * x * x;
      hwb += p * (1 - p) * x;
      hbb += p * (1 - p);
    }
    const determinant = hww * hbb - hwb * hwb;
    w -= (gw * hbb - gb * hwb) / determinant;
    b -= (gb * hww - gw * hwb) / determinant;
  }
  return { weight: w / hidden, bias: b };
}

test("if single precision cannot factor the Gram matrix, double precision does", async () => {
  // Its rows' products are sums of a thousand equal numbers, which float32 rounds a thousand times the same way.
  const set = oneNumber([-2.3, -1.7, -0.4, 0.1, 0.9, 1.3, 2.2, 3.1, 0], 1000, [0, 0, 1, 0, 1, 0, 1, 1, 0]);
  const c = 7000;
  const { weight, bias } = optimumOfOne(set, c);
  for (const threads of [1, 2]) {
    const probe = await trainProbe({ ...set, c, threads, permutations: 4 });
    assert.ok(probe.converged);
    for (const [k, value] of probe.weight.entries())
      close(value, k % 2 ? -weight : weight, 1e-9, `weight ${k}`);
    close(probe.bias, bias, 1e-8, "bias");
    assert.ok(gradientNorm(set, probe, c) <= 1e-8);
  }
});

test("if single precision stalls, double precision restarts; all steps count", async () => {
  // Rows that are all but multiples of one another, and labels that only the rest of them can tell.
  const hidden = 200;
  let most = 0;
  for (let seed = 0; seed < 8; seed++) {
    const random = new TestRandom(seed);
    const count = 13;
    const along = random.normals(count);
    const features = random.normals(count * hidden).map((x, i) => along[Math.floor(i / hidden)]! + 1e-3 * x);
    const labels = Uint8Array.from({ length: count }, (_, row) => row % 2);
    const train = Uint8Array.from({ length: count }, (_, row) => Number(row < 12));
    const set = { features, labels, train, count, hidden };
    const probe = await trainProbe({ ...set, c: 14_000, control: false });
    assert.ok(probe.converged, `seed ${seed}`);
    const gradient = gradientNorm(set, probe, 14_000);
    assert.ok(gradient <= 1e-8, `seed ${seed}: gradient ${gradient}`);
    most = Math.max(most, probe.iterations);
  }
  assert.ok(most > 100, `${most} iterations, where one attempt has 100 at most`);
});

test("Gram matrix and weights find the same optimum", async () => {
  // The same 60 examples: 59 dimensions are solved by weights, 64 by the Gram matrix. Constant ones change nothing.
  const few = twoClasses({ train: 60, hidden: 59, ...easy });
  const hidden = 64;
  const features = new Float32Array(few.count * hidden).fill(7);
  for (let row = 0; row < few.count; row++) {
    features.set(few.features.subarray(row * few.hidden, (row + 1) * few.hidden), row * hidden);
  }
  const byWeights = await trainProbe(few);
  const byGram = await trainProbe({ ...few, features });
  for (let k = 0; k < few.hidden; k++) close(byWeights.weight[k]!, byGram.weight[k]!, 1e-8);
  for (let k = few.hidden; k < hidden; k++) {
    assert.equal(byGram.weight[k], 0);
    assert.equal([byGram.mean[k], byGram.std[k]], [7, 0.01]);
  }
  close(byWeights.auc, byGram.auc, 0);
});

test("separable examples, duplicates and huge constants still have an optimum", async () => {
  for (const hidden of [12, 300]) {
    const set = twoClasses({ train: 80, test: 40, hidden, separation: 6 });
    const features = set.features.map((x, i) => (i % hidden === 0 ? 1e30 : x));
    for (let row = 40; row < 80; row++) {
      features.copyWithin(row * hidden, (row - 40) * hidden, (row - 39) * hidden);
      set.labels[row] = set.labels[row - 40]!;
    }
    const probe = await trainProbe({ ...set, features });
    assert.ok(probe.converged, `hidden ${hidden}`);
    assert.is(probe.weight[0], 0);
    assert.ok(probe.accuracy > 0.9, `accuracy ${probe.accuracy}`);
  }
});

test("order of examples does not matter, and exchanged labels turn the weights around", async () => {
  for (const hidden of [25, 200]) {
    const set = twoClasses({ train: 70, hidden, ...easy });
    const probe = await trainProbe(set);
    const order = Array.from({ length: set.count }, (_, row) => (row * 37) % set.count);
    const features = new Float32Array(set.features.length);
    order.forEach((from, to) => {
      features.set(set.features.subarray(from * hidden, (from + 1) * hidden), to * hidden);
    });
    const shuffled = await trainProbe({
      features,
      labels: set.labels.map((_, row) => set.labels[order[row]!]!),
      train: set.train.map((_, row) => set.train[order[row]!]!),
    });
    const exchanged = await trainProbe({ ...set, labels: set.labels.map((label) => 1 - label) });
    for (let k = 0; k < hidden; k++) {
      close(probe.weight[k]!, shuffled.weight[k]!, 1e-8);
      close(probe.weight[k]!, -exchanged.weight[k]!, 1e-8);
    }
    close(probe.bias, -exchanged.bias, 1e-8);
    close(probe.auc, exchanged.auc, 1e-12);
    close(probe.brier, exchanged.brier, 1e-8);
    close(probe.accuracy, exchanged.accuracy, 1e-12);
  }
});

test("scores follow the published formula, and the report follows the scores", async () => {
  const set = twoClasses({ train: 50, test: 30, hidden: 90, separation: 0.1 });
  const probe = await trainProbe(set);
  const scores = Array.from({ length: set.count }, (_, row) => {
    let z = probe.bias;
    for (let k = 0; k < set.hidden; k++) {
      z += ((set.features[row * set.hidden + k]! - probe.mean[k]!) / probe.std[k]!) * probe.weight[k]!;
    }
    return sigmoid(z);
  });
  assert.is(probe.scores.length, set.count);
  scores.forEach((score, row) => {
    close(score, probe.scores[row]!, 1e-12);
  });
  const held = scores.map((score, row) => ({ score, label: set.labels[row]! })).slice(50);
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  close(probe.accuracy, mean(held.map(({ score, label }) => Number(score > 0.5 === (label === 1)))), 1e-12);
  close(probe.brier, mean(held.map(({ score, label }) => (score - label) ** 2)), 1e-12);
  const pairs = held
    .filter(({ label }) => label === 1)
    .flatMap((one) =>
      held.filter(({ label }) => label === 0).map((zero) => Math.sign(one.score - zero.score)),
    );
  close(probe.auc, mean(pairs.map((sign) => (sign + 1) / 2)), 1e-12);
  const majority = mean([...set.labels.slice(0, 50)]) > 0.5 ? 1 : 0;
  close(probe.majorityAccuracy, mean(held.map(({ label }) => Number(label === majority))), 1e-12);
});

test("tied scores count half in the AUROC", async () => {
  // Held-out examples are only -1 or 1: (1, 1), (1, 1), (0, 1), (0, -1): 2 + 2 / 2 of 4 pairs.
  const probe = await trainProbe({
    features: Float32Array.of(-1, -1, 1, 1, 1, 1, 1, -1),
    labels: Uint8Array.of(0, 0, 1, 1, 1, 1, 0, 0),
    train: Uint8Array.of(1, 1, 1, 1, 0, 0, 0, 0),
  });
  close(probe.auc, 0.75, 1e-12);
});

test("one class in the held-out examples leaves the AUROC undefined", async () => {
  const set = twoClasses({ train: 20, hidden: 5, ...easy });
  const labels = set.labels.map((label, row) => (set.train[row] ? label : 1));
  assert.ok(Number.isNaN((await trainProbe({ ...set, labels })).auc));
});

test("the control depends on the seed alone, and nothing on the number of threads", async () => {
  const set = twoClasses({ train: 100, test: 100, hidden: 150, separation: 1 });
  const runs = await Promise.all([1, 2, 3].map((threads) => trainProbe({ ...set, seed: 5, threads })));
  for (const run of runs) assert.equal(run, runs[0]);
  const controls = await Promise.all(
    Array.from({ length: 8 }, (_, seed) => trainProbe({ ...set, seed }).then((p) => p.shuffledLabelAccuracy)),
  );
  assert.ok(new Set(controls).size > 1, `controls ${controls}`);
  const mean = controls.reduce((sum, value) => sum + value, 0) / controls.length;
  assert.ok(mean > 0.3 && mean < 0.7, `permuted labels predict ${mean}`);
  assert.ok(runs[0]!.accuracy > 0.95, `accuracy ${runs[0]!.accuracy}`);
  assert.ok(Number.isNaN((await trainProbe({ ...set, control: false })).shuffledLabelAccuracy));
});

test("a factorisation that threads share is bit for bit that of one thread", async () => {
  for (const hidden of [500, 250]) {
    const set = twoClasses({ train: 400, test: 20, hidden, separation: 0.1 });
    const fit = (threads: number) => trainProbe({ ...set, threads, control: false });
    const [one, two, three] = await Promise.all([fit(1), fit(2), fit(3)]);
    assert.ok(one.converged && one.iterations > 2, `${one.iterations} iterations`);
    assert.equal(two, one);
    assert.equal(three, one);
  }
});

test("views on a larger array are read by their strides", async () => {
  const set = twoClasses({ train: 30, hidden: 6, ...easy });
  const whole = ndarray(new Float32Array(set.count * 13), [set.count, 13]);
  const turned = ndarray(new Float32Array(set.count * 6), [6, set.count]);
  for (let row = 0; row < set.count; row++) {
    for (let k = 0; k < 6; k++) {
      whole.set(row, 2 + 2 * k, set.features[row * 6 + k]!);
      turned.set(k, row, set.features[row * 6 + k]!);
    }
  }
  const expected = await trainProbe(set);
  assert.equal(await trainProbe({ ...set, features: whole.lo(0, 2).step(1, 2) }), expected);
  assert.equal(await trainProbe({ ...set, features: turned.transpose(1, 0) }), expected);
});

test("features may change while training runs", async () => {
  const set = twoClasses({ train: 60, hidden: 80, ...easy });
  const expected = await trainProbe(set);
  const features = set.features.slice();
  const running = trainProbe({ ...set, features });
  features.fill(Number.NaN);
  assert.equal(await running, expected);
});

async function rejection(promise: Promise<unknown>): Promise<NativeError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof NativeError)) throw new Error(`expected a NativeError, not ${error}`);
  return error;
}

test("cancelled before it begins, and once it was handed over", async () => {
  const set = twoClasses({ train: 12, hidden: 3, test: 4, separation: 0.5 });
  assert.is((await rejection(trainProbe(set, { signal: AbortSignal.abort() }))).code, "CANCELLED");
  // The signal falls while the arguments are read: behind the first look at it, before any thread works on them.
  const abort = new AbortController();
  const late = Object.defineProperty({ ...set }, "c", {
    get: () => {
      abort.abort();
      return 1;
    },
  });
  assert.is((await rejection(trainProbe(late, { signal: abort.signal }))).code, "CANCELLED");
});

test("a cancel among the iterations of a fit ends it", async () => {
  const set = twoClasses({ train: 600, hidden: 800, test: 10, separation: 0.1 });
  const whole = await trainProbe(set);
  // It is cancelled when it first tells how far it is, behind an iteration. On a busy machine that may be heard of
  // when the fit is over, which then is as it would have been; not each time.
  for (let attempt = 0; attempt < 100; attempt++) {
    const abort = new AbortController();
    const outcome = await trainProbe(set, { signal: abort.signal, onProgress: () => abort.abort() }).catch(
      (error: unknown) => error,
    );
    if (outcome instanceof NativeError) return assert.is(outcome.code, "CANCELLED");
    assert.equal(outcome, whole);
  }
  assert.unreachable("no fit was cancelled");
});

test("where features say nothing, the bias alone is fitted, and its gradient is told", async () => {
  // Three of four labels are 1: p = 3/4 at b = ln 3, whatever is solved for, 1 weight or 8 rows.
  for (const hidden of [1, 9]) {
    const labels = Uint8Array.of(1, 1, 0, 1, 1, 1, 0, 1, 0, 1);
    const train = labels.map((_, row) => Number(row < 8));
    const set = { features: new Float32Array(10 * hidden).fill(7), labels, train };
    const probe = await trainProbe({ ...set });
    assert.ok(probe.converged);
    close(probe.bias, Math.log(3), 1e-8);
    assert.ok(probe.weight.every((value) => value === 0));
    // Content with any gradient, it stays at 0, where six residuals are -1/2 and two are 1/2.
    const idle = await trainProbe({ ...set, tolerance: 10 });
    assert.equal([idle.converged, idle.iterations, idle.bias], [true, 0, 0]);
    close(idle.gradientNorm, 2, 1e-12);
    // What decides is exactly 0 there, which says 0: right of two held-out zeros.
    const zeros = Uint8Array.of(1, 1, 0, 1, 1, 1, 0, 1, 0, 0);
    assert.is((await trainProbe({ ...set, labels: zeros, tolerance: 10 })).accuracy, 1);
    // Of as many ones as zeros neither is the majority: then it says 0, as one of the two held-out labels does.
    const even = await trainProbe({ ...set, labels: Uint8Array.of(1, 1, 0, 1, 0, 0, 0, 1, 0, 1) });
    close(even.bias, 0, 1e-8);
  }
});

test("a gradient that rounding does not let vanish is no convergence", async () => {
  for (const hidden of [5, 80]) {
    const set = twoClasses({ train: 40, hidden, ...easy });
    const probe = await trainProbe({ ...set, tolerance: 1e-300 });
    assert.is(probe.converged, false, `${hidden}: ${probe.gradientNorm}`);
    assert.ok(probe.gradientNorm > 0 && probe.gradientNorm < 1e-8);
  }
});

test("one-class training sets and non-finite numbers are refused", async () => {
  const set = twoClasses({ train: 20, hidden: 5, ...easy });
  for (const label of [0, 1]) {
    const labels = set.labels.map((_, row) => (set.train[row] === 1 ? label : row % 2));
    const error = await rejection(trainProbe({ ...set, labels }));
    assert.is(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, new RegExp(`^Both labels must occur .* but only ${label} does\\.$`));
  }
  const last = set.features.length - 1;
  for (const [at, value] of [
    [0, Number.NaN],
    [last, Number.POSITIVE_INFINITY],
  ] as const) {
    const features = set.features.map((x, i) => (i === at ? value : x));
    const error = await rejection(trainProbe({ ...set, features }));
    const place = `Activation ${at % 5} of example ${Math.floor(at / 5)} is not a finite number.`;
    assert.equal([error.code, error.message], ["INVALID_ARGUMENT", place]);
  }
});

test("a cancel among permutations ends them", async () => {
  const set = twoClasses({ train: 12, hidden: 3, test: 4, separation: 0.5 });
  const abort = new AbortController();
  const onProgress = (done: number) => {
    if (done > 0.2) abort.abort(); // the probe itself is a fifth
  };
  const running = trainProbe({ ...set, permutations: 400_000 }, { signal: abort.signal, onProgress });
  assert.is((await rejection(running)).code, "CANCELLED");
});

test("bad input gets a sentence with the actual value", async () => {
  const set = twoClasses({ train: 20, hidden: 5, ...easy });
  const cases: Array<[object, RegExp]> = [
    [{ features: new Float32Array(7) }, /7 activations cannot be 60 rows/],
    [{ features: [1, 2] }, /Float32Array/],
    [{ features: ndarray(new Float32Array(60), [12, 5]) }, /60 entries for 12 rows/],
    [{ features: ndarray(new Float32Array(60), [60]) }, /two dimensions/],
    [{ labels: set.labels.slice(1) }, /59 entries for 60 examples/],
    [{ labels: set.labels.map(() => 2) }, /entry 0 is 2/],
    [{ labels: set.labels.map(() => 1) }, /only 1 does/],
    [{ train: set.train.map(() => 1) }, /one split/],
    [{ seed: -1 }, /got -1/],
    [{ seed: 2 ** 31 }, /got 2147483648/],
    [{ c: 0 }, /c must be a positive number, got 0/],
    [{ tolerance: Number.NaN }, /got NaN/],
    [{ threads: 0 }, /threads .* got 0/],
    [{ features: set.features.map((x, i) => (i === 13 ? Number.NaN : x)) }, /Activation 3 of example 2/],
  ];
  for (const [change, sentence] of cases) {
    const error = await rejection(trainProbe({ ...set, ...change } as never));
    assert.is(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, sentence);
  }
});

test("any finite numbers train or are refused, and nothing crashes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 4, max: 40 }),
      fc.integer({ min: 0, max: 1 << 30 }),
      fc.constantFrom(1e-38, 1e-3, 1, 1e10, 3e38),
      async (hidden, count, seed, size) => {
        const random = new TestRandom(seed);
        const features = Float32Array.from(
          { length: count * hidden },
          () => (2 * random.uniform() - 1) * size,
        );
        const labels = Uint8Array.from({ length: count }, (_, row) => (row < 2 ? row : random.below(2)));
        const train = Uint8Array.from({ length: count }, (_, row) =>
          row < 3 ? 1 : row === 3 ? 0 : random.below(2),
        );
        const probe = await trainProbe({ features, labels, train, seed, threads: 2 });
        assert.ok(probe.converged, `gradient ${probe.gradientNorm}`);
        assert.ok([...probe.weight, ...probe.scores, probe.bias, probe.brier].every(Number.isFinite));
      },
    ),
    { numRuns: 60 },
  );
});

test("permuted labels show how far chance reaches, and leave the probe alone", async () => {
  for (const hidden of [30, 200]) {
    const set = twoClasses({ train: 80, test: 60, hidden, separation: 6 });
    const alone = await trainProbe({ ...set, seed: 3 });
    const [one, three] = await Promise.all(
      [1, 3].map((threads) => trainProbe({ ...set, seed: 3, permutations: 120, threads })),
    );
    assert.equal(three, one);
    const { permutedAccuracies, permutedAucs, ...probe } = one!;
    const { permutedAccuracies: none, permutedAucs: noneEither, ...bare } = alone;
    assert.equal([none.length, noneEither.length], [0, 0]);
    assert.equal(probe, bare);
    assert.is(permutedAccuracies.length, 120);
    assert.not.equal(permutedAucs, permutedAccuracies);
    assert.ok(probe.accuracy > 0.9, `accuracy ${probe.accuracy}`);
    // Directions of no meaning rank half of the pairs right; with two clear classes they vary a lot.
    for (const values of [permutedAccuracies, permutedAucs]) {
      close(values.reduce((sum, value) => sum + value, 0) / 120, 0.5, 0.1, "mean");
      assert.ok(new Set(values).size > 10, "the permutations differ");
      assert.ok(values.every((value) => value >= 0 && value <= 1));
    }
    const other = await trainProbe({ ...set, seed: 4, permutations: 120 });
    assert.not.equal(other.permutedAccuracies, permutedAccuracies);
  }
});

test("the control is no permutation of those that are counted", async () => {
  const set = twoClasses({ train: 40, test: 40, hidden: 20, separation: 2 });
  const differs: boolean[] = [];
  for (let seed = 1; seed <= 6; seed++) {
    const found = await trainProbe({ ...set, seed, permutations: 1, threads: 1 });
    differs.push(found.permutedAccuracies[0] !== found.shuffledLabelAccuracy);
  }
  assert.ok(differs.includes(true));
});

test("noise has an accuracy and AUROC within the spread of its permutations", async () => {
  const set = twoClasses({ train: 60, test: 40, hidden: 100, separation: 0 });
  const { auc, permutedAucs } = await trainProbe({ ...set, permutations: 100 });
  const sorted = permutedAucs.toSorted();
  assert.ok(auc > sorted[2]! && auc < sorted[97]!, `${auc} of ${sorted[2]} to ${sorted[97]}`);
});

test.run();
