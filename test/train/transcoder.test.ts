/** Transcoders: dictionaries that predict another row than the one they read. */
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type DictionaryArchitecture,
  DictionaryTrainer,
  type DictionaryTraining,
  type DictionaryWeights,
} from "../../src/native/index.js";
import { pythonWith } from "../support/python.js";
import { TestRandom } from "../support/random.js";
import { reference } from "../support/reference.js";
import { type Rows, trained, transcoding } from "./small-dictionary.js";

const architectures = ["relu", "topk", "batchtopk", "jumprelu"] as const;
const python = pythonWith("numpy");

interface Planted {
  rows: Rows;
  targets: Float32Array;
  /** Unit directions that are read and written. [directions, hidden] */
  read: Float32Array;
  written: Float32Array;
}

/**
 * Rows of three of some directions each, and targets with another direction for each of these. Both are shifted and
 * scaled, and a linear map of the row is added to its target.
 */
function planted({ count = 120, held = 30, hidden = 20, directions = 12, linear = 0 } = {}): Planted {
  const random = new TestRandom(11);
  const units = () => {
    const all = random.normals(directions * hidden);
    for (let d = 0; d < directions; d++) {
      const one = all.subarray(d * hidden, (d + 1) * hidden);
      const length = Math.hypot(...one);
      one.forEach((value, i) => {
        one[i] = value / length;
      });
    }
    return Float32Array.from(all);
  };
  const [read, written, map] = [units(), units(), random.normals(hidden * hidden)];
  const [features, targets] = [new Float32Array(count * hidden), new Float32Array(count * hidden)];
  for (let row = 0; row < count; row++) {
    for (let n = 0; n < 3; n++) {
      const [d, strength] = [random.below(directions), 1 + Math.abs(random.normal())];
      for (let i = 0; i < hidden; i++) {
        features[row * hidden + i]! += strength * read[d * hidden + i]!;
        targets[row * hidden + i]! += strength * written[d * hidden + i]!;
      }
    }
    for (let i = 0; i < hidden; i++) {
      for (let j = 0; j < hidden; j++) {
        targets[row * hidden + i]! +=
          ((linear * map[i * hidden + j]!) / Math.sqrt(hidden)) * features[row * hidden + j]!;
      }
    }
  }
  return {
    rows: {
      features: features.map((value, i) => 3 * value + (i % hidden)),
      hidden,
      uses: Uint8Array.from({ length: count }, (_, row) => (row < count - held ? 1 : 2)),
    },
    targets: targets.map((value, i) => 0.25 * value - ((i % hidden) % 3)),
    ...{ read, written },
  };
}

/** Largest difference of two changes, over the largest change. */
function apart(before: ArrayLike<number>, found: ArrayLike<number>, wanted: ArrayLike<number>): number {
  let [difference, change] = [0, 0];
  for (let i = 0; i < before.length; i++) {
    difference = Math.max(difference, Math.abs(found[i]! - wanted[i]!));
    change = Math.max(change, Math.abs(wanted[i]! - before[i]!));
  }
  return change === 0 ? difference : difference / change;
}

for (const architecture of architectures) {
  const check = async () => {
    const cases: Array<Partial<DictionaryTraining>> = [
      // So large an epsilon makes of Adam's step the gradient itself.
      { epsilon: 1e6, learningRate: 3e6, steps: 1, deadAfter: 1000 },
      { epsilon: 1e6, learningRate: 3e6, steps: 1, deadAfter: 0, auxWeight: 0.5, skip: true },
      { epsilon: 1e-3, learningRate: 1e-2, steps: 4, deadAfter: 1000, skip: true },
    ];
    for (const more of cases) {
      // 40 is more than a panel holds, so that a skip term has four tiles.
      const hidden = more.skip === true && more.steps === 1 ? 40 : 7;
      const { rows, targets } = planted({ count: 44, held: 4, hidden, linear: 1 });
      const settings = transcoding(rows, targets, architecture, {
        ...{ features: 11, k: architecture.endsWith("topk") ? 3 : 0, batch: 40, warmup: 0, decay: 0 },
        ...{ sparsityWarmup: 0, auxK: 5, ...more },
      });
      const start = await trained(settings, (trainer) => trainer.state());
      // It begins at zero, where a wrong product of it would not show.
      start.skip?.set(new TestRandom(5).normals(hidden ** 2).map((value) => 0.2 * value));
      const after = await trained({ ...settings, state: start }, async (trainer) => {
        await trainer.run(settings.steps);
        return trainer.state();
      });
      const wanted = reference<Record<string, number[]>>(
        python as string,
        fileURLToPath(new URL("./fixtures/sparse.py", import.meta.url)),
        {
          ...{ hidden, features: 11, k: settings.k, architecture, steps: settings.steps },
          ...{ sparsity: settings.sparsity, bandwidth: settings.bandwidth, rate: settings.learningRate },
          ...{ epsilon: settings.epsilon as number, aux_weight: settings.auxWeight },
          aux_k: settings.deadAfter === 0 ? settings.auxK : 0,
          ...{ rows: rows.features.subarray(0, 40 * hidden), targets: targets.subarray(0, 40 * hidden) },
          ...(Object.fromEntries(
            Object.entries(start).filter(([name]) => !/\.|fired|progress/.test(name)),
          ) as Record<string, Float32Array>),
        },
      );
      assert.is("skip" in wanted, more.skip === true);
      for (const [name, numbers] of Object.entries(wanted)) {
        const off = apart(start[name]!, after[name]!, numbers);
        assert.ok(off < 1e-3, `${architecture}, ${JSON.stringify(more)}: ${name} is ${off} apart`);
      }
    }
  };
  const title = `${architecture} transcoder: steps are those of finite differences in float64`;
  if (python === undefined) test.skip(title, check);
  else test(title, check);
}

test("a relu transcoder's dense steps are its steps on lists", async () => {
  const { rows, targets } = planted({ count: 120, held: 20, hidden: 40, linear: 1 });
  const settings = transcoding(rows, targets, "relu", { features: 70, steps: 5, batch: 100, skip: true });
  // Features that the auxiliary loss looks after are listed; with this weight it changes nothing.
  const steps = (more: Partial<DictionaryTraining>) =>
    trained({ ...settings, ...more }, async (trainer) => {
      await trainer.run(5);
      return { state: await trainer.state(), mse: (await trainer.evaluate()).mse };
    });
  const [dense, lists] = [await steps({}), await steps({ deadAfter: 0, auxWeight: 1e-30 })];
  assert.ok(Math.abs(dense.mse - lists.mse) < 1e-4 * lists.mse);
  for (const name of ["encoder", "encoder_bias", "decoder", "decoder_bias", "skip"]) {
    for (const [i, value] of dense.state[name]!.entries())
      assert.ok(Math.abs(value - lists.state[name]![i]!) < 2e-4, `${name}[${i}]`);
  }
});

test("a transcoder's numbers do not depend on threads or pauses", async () => {
  const { rows, targets } = planted({ hidden: 40, linear: 1 });
  for (const architecture of architectures) {
    const settings = transcoding(rows, targets, architecture, { steps: 24, skip: true });
    const whole = await trained(settings, async (trainer) => {
      await trainer.run(24);
      return trainer.state();
    });
    const half = await trained({ ...settings, threads: 3 }, async (trainer) => {
      await trainer.run(11);
      return trainer.state();
    });
    const rest = await trained({ ...settings, threads: 2, state: half }, async (trainer) => {
      await trainer.run(24);
      return trainer.state();
    });
    assert.equal(rest, whole, architecture);
  }
});

/** Prediction of a row's target in its own units, from the weights alone. */
function predicted(
  row: ArrayLike<number>,
  weights: DictionaryWeights,
  architecture: DictionaryArchitecture,
  k: number,
): number[] {
  const { encoder, encoderBias, decoder, decoderBias, threshold, mean, scale, skip } = weights;
  const { targetMean, targetScale } = weights;
  const hidden = mean.length;
  const x = Array.from(row, (value, i) => (value - mean[i]!) / scale);
  const h = Array.from(encoderBias, (bias, f) =>
    x.reduce((sum, value, i) => sum + value * encoder[f * hidden + i]!, bias),
  );
  const kept = [...h.keys()].sort((a, b) => h[b]! - h[a]! || a - b).slice(0, k);
  const active = h.map((value, f) => {
    if (architecture === "topk" && !kept.includes(f)) return 0;
    return value > (threshold?.[f] ?? 0) ? value : 0;
  });
  return x.map((_, i) => {
    let sum = decoderBias[i]!;
    for (const [f, value] of active.entries()) sum += value * decoder[f * hidden + i]!;
    for (const [j, value] of x.entries()) sum += value * (skip?.[i * hidden + j] ?? 0);
    return sum * targetScale! + targetMean![i]!;
  });
}

test("an evaluation compares a transcoder's predictions with the targets", async () => {
  const { rows, targets } = planted({ linear: 1 });
  const { hidden, features, uses } = rows;
  const held = [...uses.keys()].filter((row) => uses[row] === 2);
  const rowOf = (all: Float32Array, row: number) => all.subarray(row * hidden, (row + 1) * hidden);
  const centre = Array.from(
    { length: hidden },
    (_, i) => held.reduce((sum, row) => sum + targets[row * hidden + i]!, 0) / held.length,
  );
  for (const architecture of architectures) {
    for (const skip of [false, true]) {
      const settings = transcoding(rows, targets, architecture, { steps: 40, skip });
      await trained(settings, async (trainer) => {
        await trainer.run(40);
        const [found, weights] = [await trainer.evaluate(), await trainer.weights()];
        let [left, all] = [0, 0];
        for (const row of held) {
          const y = rowOf(targets, row);
          const own = predicted(rowOf(features, row), weights, architecture, settings.k);
          for (const [i, value] of own.entries()) {
            left += (value - y[i]!) ** 2;
            all += (y[i]! - centre[i]!) ** 2;
          }
        }
        const what = `${architecture}, skip ${skip}`;
        assert.is(weights.skip?.length, skip ? hidden * hidden : undefined, what);
        const mse = left / (held.length * hidden) / weights.targetScale! ** 2;
        assert.ok(Math.abs(found.mse - mse) < 1e-3 * mse, `${what}: ${found.mse}, ${mse}`);
        assert.ok(Math.abs(found.explainedVariance - (1 - left / all)) < 1e-3, what);
      });
    }
  }
});

const long = {
  ...{ features: 24, steps: 600, batch: 128, learningRate: 5e-3, warmup: 20, decay: 150 },
  ...{ sparsity: 0.01, sparsityWarmup: 40, deadAfter: 30, initialNorm: 0.1 },
};

test("a transcoder recovers the directions that are read and written", async () => {
  const { rows, targets, read, written } = planted({ count: 2200, held: 200 });
  const { hidden } = rows;
  // The best of 24 random directions is at 0.5. Thresholds need more steps than these to part the features.
  for (const [architecture, least] of [
    ["topk", 0.95],
    ["batchtopk", 0.95],
    ["jumprelu", 0.75],
  ] as const) {
    const settings = transcoding(rows, targets, architecture, {
      ...long,
      k: architecture === "jumprelu" ? 0 : 3,
    });
    const { explained, weights } = await trained(settings, async (trainer) => {
      await trainer.run(600);
      return { explained: (await trainer.evaluate()).explainedVariance, weights: await trainer.weights() };
    });
    assert.ok(explained > 0.9, `${architecture} explains ${explained}`);
    const cosine = (matrix: Float32Array, f: number, unit: Float32Array) => {
      const row = matrix.subarray(f * hidden, (f + 1) * hidden);
      return row.reduce((sum, value, i) => sum + value * unit[i]!, 0) / Math.hypot(...row);
    };
    const features = [...weights.encoderBias.keys()];
    for (let d = 0; d < 12; d++) {
      const [from, to] = [read, written].map((all) => all.subarray(d * hidden, (d + 1) * hidden));
      const best = features.reduce((a, b) =>
        cosine(weights.decoder, b, to!) > cosine(weights.decoder, a, to!) ? b : a,
      );
      const found = cosine(weights.decoder, best, to!);
      assert.ok(found > least, `${architecture}: direction ${d} is written by ${found} of ${best}`);
      const readHere = cosine(weights.encoder, best, from!);
      assert.ok(readHere > 0.3, `${architecture}: direction ${d} is read by ${readHere} of ${best}`);
    }
  }
});

test("targets of other rows cannot be predicted", async () => {
  const { rows, targets } = planted({ count: 2200, held: 200 });
  const { hidden } = rows;
  const shuffled = targets.slice();
  const order = Array.from({ length: 2200 }, (_, i) => i);
  const random = new TestRandom(3);
  // Within the training rows and within the held-out ones.
  for (const [first, end] of [
    [0, 2000],
    [2000, 2200],
  ] as const) {
    for (let i = end - 1; i > first; i--) {
      const j = first + random.below(i - first + 1);
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
  }
  for (const [row, from] of order.entries())
    shuffled.set(targets.subarray(from * hidden, (from + 1) * hidden), row * hidden);
  const explained = (each: Float32Array) =>
    trained(transcoding(rows, each, "topk", { ...long, k: 3 }), async (trainer) => {
      await trainer.run(600);
      return (await trainer.evaluate()).explainedVariance;
    });
  const [right, wrong] = [await explained(targets), await explained(shuffled)];
  assert.ok(right > 0.9 && wrong < 0.05, `${right}, shuffled ${wrong}`);
});

test("a skip term learns the linear part that few features cannot", async () => {
  const { rows, targets } = planted({ count: 2200, held: 200, linear: 3 });
  const explained = (skip: boolean) =>
    trained(transcoding(rows, targets, "topk", { ...long, k: 3, skip }), async (trainer) => {
      await trainer.run(600);
      return (await trainer.evaluate()).explainedVariance;
    });
  const [without, withSkip] = [await explained(false), await explained(true)];
  assert.ok(withSkip > 0.95 && withSkip > without, `${withSkip} with it, ${without} without`);
  // A linear map alone, with features that never fire.
  const { hidden } = rows;
  const map = new TestRandom(9).normals(hidden * hidden);
  const linear = new Float32Array(targets.length);
  for (let row = 0; row < linear.length / hidden; row++)
    for (let i = 0; i < hidden; i++)
      for (let j = 0; j < hidden; j++)
        linear[row * hidden + i]! += map[i * hidden + j]! * rows.features[row * hidden + j]!;
  const settings = transcoding(rows, linear, "topk", { ...long, k: 1, skip: true, auxWeight: 0 });
  const state = await trained(settings, (trainer) => trainer.state());
  state.encoder_bias?.fill(-1e6);
  const weights = await trained({ ...settings, state }, async (trainer) => {
    await trainer.run(600);
    return trainer.weights();
  });
  // Rows lie in the span of 12 directions, so only that part of the map is determined: its results are compared.
  let [off, all] = [0, 0];
  for (let row = 0; row < 50; row++) {
    const x = rows.features.subarray(row * hidden, (row + 1) * hidden);
    for (const [i, value] of predicted(x, weights, "topk", 1).entries()) {
      const wanted = linear[row * hidden + i]!;
      off += (value - wanted) ** 2;
      all += (wanted - weights.targetMean![i]!) ** 2;
    }
  }
  assert.ok(off < 0.01 * all, `${off} of ${all}`);
});

test("targets outside of the file and skip terms without targets are refused", async () => {
  const { rows, targets } = planted();
  const sound = transcoding(rows, targets, "topk");
  const refused = async (more: Partial<DictionaryTraining>) => {
    const error = await DictionaryTrainer.open({ ...sound, ...more }).catch((reason) => reason);
    return `${error.code}: ${error.message}`;
  };
  const [piece] = sound.pieces;
  const { targetOffset: _, ...without } = piece!;
  assert.match(
    await refused({ pieces: [without] }),
    /^INVALID_ARGUMENT: 2400 numbers at byte -1\.0* do not lie in a file/,
  );
  assert.match(
    await refused({ pieces: [{ ...piece!, targetOffset: 8 + 4 * 2401 }] }),
    /^INVALID_ARGUMENT: .*do not lie in a file/,
  );
  assert.match(
    await refused({ transcodes: false, skip: true }),
    /^INVALID_ARGUMENT: .*cannot be trained with these settings\.$/,
  );
  const bad = targets.slice();
  bad[5 * rows.hidden + 2] = Number.POSITIVE_INFINITY;
  const error = await trained(transcoding(rows, bad, "topk", { batch: 90 }), (trainer) =>
    trainer.run(1),
  ).catch((reason) => reason);
  assert.match(error.message, /^A number in row 5 of .* is not finite\.$/);
});

test.run();
