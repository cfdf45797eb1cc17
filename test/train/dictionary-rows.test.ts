import { test } from "uvu";
import * as assert from "uvu/assert";
import type { DictionaryTrainer, DictionaryTraining } from "../../src/native/index.js";
import { TestRandom } from "../support/random.js";
import { fileOf, made, trained, training } from "./small-dictionary.js";

/** So slow that weights stay what they are. */
const still: Partial<DictionaryTraining> = { learningRate: 1e-30, warmup: 0, decay: 0, sparsityWarmup: 0 };

const near = (found: number, expected: number, what: string) =>
  assert.ok(Math.abs(found - expected) <= 1e-4 * Math.abs(expected), `${what}: ${found}, not ${expected}`);

/** What each feature says of each row of a kind, and the mean error of their reconstruction, from the weights alone. */
async function activationsOf(
  rows: ReturnType<typeof made>,
  settings: DictionaryTraining,
  use = 2,
  steps = 0,
) {
  return trained(settings, async (trainer) => {
    if (steps > 0) await trainer.run(steps);
    const { encoder, encoderBias, decoder, decoderBias, mean, scale } = await trainer.weights();
    const { hidden } = rows;
    const chosen = [...rows.uses.keys()].filter((row) => rows.uses[row] === use);
    let square = 0;
    const all = chosen.map((row) => {
      const x = Array.from(mean, (m, i) => ((rows.features[row * hidden + i] as number) - m) / scale);
      const values = Array.from(encoderBias, (bias, feature) =>
        Math.max(0, bias + x.reduce((sum, value, i) => sum + value * encoder[feature * hidden + i]!, 0)),
      );
      for (const [i, value] of x.entries()) {
        const rebuilt = values.reduce(
          (sum, one, feature) => sum + one * decoder[feature * hidden + i]!,
          decoderBias[i] as number,
        );
        square += (rebuilt - value) ** 2;
      }
      return { row, values };
    });
    const lengths = Array.from(encoderBias, (_, feature) =>
      Math.hypot(...decoder.subarray(feature * hidden, (feature + 1) * hidden)),
    );
    const features = [...encoderBias.keys()];
    return {
      ...{ all, lengths, mse: square / (chosen.length * hidden) },
      evaluation: await trainer.evaluate(),
      strongest: await trainer.strongest(features, 5),
      onTraining: await trainer.trainError(),
    };
  });
}

test("a feature's mean and its strongest rows are the activations of the weights", async () => {
  // Decoder rows of 0.1 at first, and of many lengths once they were trained: where they count, the weights have them.
  const rows = made({ train: 60, test: 40 });
  for (const [settings, steps] of [
    [training(rows, "relu", still), 0],
    [training(rows, "relu"), 40],
  ] as const) {
    const { all, lengths, evaluation, strongest } = await activationsOf(rows, settings, 2, steps);
    for (const [feature, length] of lengths.entries()) near(length, 1, `decoder row ${feature}`);
    assert.is(evaluation.rows, 40);
    for (const [feature, mean] of evaluation.mean.entries()) {
      const values = all.map(({ row, values }) => ({ row, value: values[feature] as number }));
      near(mean, values.reduce((sum, { value }) => sum + value, 0) / 40, `mean of ${feature}`);
      const first = values.sort((a, b) => b.value - a.value).slice(0, 5);
      for (const [i, { activation, row }] of (strongest[feature] ?? []).entries()) {
        near(activation, first[i]?.value as number, `row ${i} of ${feature}`);
        assert.is(row, first[i]?.row);
      }
    }
  }
});

test("the training error is a mean over the training rows, not over the last batch", async () => {
  const rows = made({ train: 60, test: 40 });
  // Batches of 7 rows: the last of them says another number than all rows do.
  const settings = training(rows, "relu", { batch: 7 });
  const { mse, onTraining } = await activationsOf(rows, settings, 1, 60);
  assert.is(onTraining.rows, 60);
  near(onTraining.mse, mse, "training error");
  // Of no more rows than an evaluation reads.
  const few = await trained({ ...settings, heldOut: 20 }, async (trainer) => {
    await trainer.run(60);
    return [await trainer.trainError(), await trainer.run(1)] as const;
  });
  assert.is(few[0].rows, 20);
});

test("a feature that is active in one row of all is not dead", async () => {
  const rows = made({ train: 60, test: 40 });
  // Before the others: what each feature says without a bias. It then fires in its strongest row alone, or nowhere.
  const settings = training(rows, "relu", still);
  const { all } = await activationsOf(rows, settings);
  const state = await trained(settings, (trainer) => trainer.state());
  for (const feature of all[0]?.values.keys() ?? []) {
    const [first = 0, second = 0] = all
      .map(({ values }) => values[feature] as number)
      .sort((a, b) => b - a)
      .map((value) => value / 0.1);
    (state.encoder_bias as Float32Array)[feature] = feature < 5 ? -(first + second) / 2 : -2 * first;
  }
  const found = await trained({ ...settings, state }, (trainer) => trainer.evaluate());
  assert.is(found.dead, 24 - 5);
  assert.equal(
    [...found.frequency].map((share) => Math.round(share * 40)),
    Array.from({ length: 24 }, (_, feature) => (feature < 5 ? 1 : 0)),
  );
});

test("of equally active features the first ones are kept", async () => {
  const rows = made();
  for (const features of [24, 300]) {
    const settings = training(rows, "topk", { ...still, features });
    const state = await trained(settings, (trainer) => trainer.state());
    state.encoder?.fill(0);
    state.encoder_bias?.fill(1);
    const { frequency } = await trained({ ...settings, state }, (trainer) => trainer.evaluate());
    assert.equal(
      [...frequency],
      Array.from({ length: features }, (_, feature) => (feature < 4 ? 1 : 0)),
    );
  }
});

test("a feature is dead once it has been silent for longer than it may", async () => {
  const rows = made();
  const settings = training(rows, "topk", { ...still, deadAfter: 3, auxWeight: 0 });
  const state = await trained(settings, (trainer) => trainer.state());
  state.encoder_bias?.fill(-1000, 20);
  const dead = await trained({ ...settings, state }, async (trainer) => {
    const found: number[] = [];
    for (let step = 0; step < 5; step++) found.push((await trainer.run(1)).dead);
    return found;
  });
  assert.equal(dead.slice(0, 3), [0, 0, 0]);
  assert.ok(dead[3] === 4, `after three silent steps ${dead[3]} of 4 are dead`);
  // Of several steps, those of the last one.
  const last = await trained({ ...settings, state }, async (trainer) => (await trainer.run(6)).dead);
  assert.is(last, 4);
});

test("features without activation are dead, even if the auxiliary loss uses them", async () => {
  const rows = made();
  const more = { ...still, deadAfter: 3, auxK: 6, auxWeight: 0.5 };
  for (const [architecture, bias, silent] of [
    // All say 1, of which the first four are kept.
    ["topk", 1, 20],
    // All say 0.4, of thresholds of 0.5 whose reach is 0.2.
    ["jumprelu", 0.4, 24],
  ] as const) {
    const settings = training(rows, architecture, more);
    const state = await trained(settings, (trainer) => trainer.state());
    state.encoder?.fill(0);
    state.encoder_bias?.fill(bias);
    const dead = await trained({ ...settings, state }, async (trainer) => {
      await trainer.run(6);
      return (await trainer.run(1)).dead;
    });
    assert.is(dead, silent, architecture);
  }
});

test("a batch keeps k features per row, whatever the earlier thresholds", async () => {
  const rows = made();
  const settings = training(rows, "batchtopk", still);
  const state = await trained(settings, (trainer) => trainer.state());
  for (const threshold of [0, 0.5, 1e6]) {
    const progress = Float32Array.from(state.progress as Float32Array).fill(threshold, 2);
    const found = await trained({ ...settings, state: { ...state, progress } }, (trainer) => trainer.run(1));
    assert.is(found.active, 4, `threshold ${threshold}`);
  }
});

test("a training that goes on says of the held-out rows what it said, to the bit", async () => {
  const rows = made();
  for (const architecture of ["relu", "topk", "batchtopk", "jumprelu"] as const) {
    const settings = training(rows, architecture);
    const told = async (trainer: DictionaryTrainer) => ({
      evaluation: await trainer.evaluate(),
      strongest: await trainer.strongest([...Array(24).keys()], 3),
    });
    const [before, state] = await trained(settings, async (trainer) => {
      await trainer.run(20);
      return [await told(trainer), await trainer.state()] as const;
    });
    assert.equal(await trained({ ...settings, state }, told), before, architecture);
  }
});

test("batchtopk's threshold goes a tenth of the way to what each batch keeps least", async () => {
  // Batches of one row and k = 1: what it keeps is the row's most active feature.
  const rows = made({ train: 12, test: 2 });
  const settings = training(rows, "batchtopk", { ...still, k: 1, batch: 1 });
  const found = await trained(settings, async (trainer) => {
    const weights = await trainer.weights();
    const thresholds: number[] = [];
    for (let step = 0; step < 12; step++) {
      await trainer.run(1);
      thresholds.push((await trainer.weights()).threshold?.[0] as number);
    }
    return { weights, thresholds };
  });
  const { encoder, encoderBias, mean, scale } = found.weights;
  const most = Array.from({ length: 12 }, (_, row) =>
    Math.max(
      ...Array.from(encoderBias, (bias, feature) => {
        let h = bias;
        for (let i = 0; i < rows.hidden; i++) {
          const x = ((rows.features[row * rows.hidden + i] as number) - (mean[i] as number)) / scale;
          h += x * (encoder[feature * rows.hidden + i] as number);
        }
        return h;
      }),
    ),
  );
  const kept = found.thresholds.map((threshold, step) => {
    const before = found.thresholds[step - 1];
    return before === undefined ? threshold : before + (threshold - before) / 0.1;
  });
  const sorted = (values: number[]) => values.toSorted((a, b) => a - b);
  // Every row comes once.
  for (const [i, value] of sorted(kept).entries()) near(value, sorted(most)[i] as number, `batch ${i}`);
});

/** 2048 blocks of 64 rows with one training row each: two groups of blocks, which are two batches. */
test("each time through, other blocks of rows come together", async () => {
  const random = new TestRandom(4);
  const count = 2048 * 64;
  const uses = new Uint8Array(count);
  for (let block = 0; block < 2048; block++) uses[block * 64 + (block % 63)] = 1;
  uses[63] = 2;
  const rows = { features: random.normals(count), hidden: 1, uses };
  const settings = training(rows, "relu", { ...still, features: 2, batch: 1024, steps: 4, auxK: 1 });
  const errors = await trained(settings, async (trainer) => {
    assert.equal(trainer.rows, { train: 2048, heldOut: 1 });
    const found: number[] = [];
    for (let step = 0; step < 4; step++) found.push((await trainer.run(1)).mse);
    return found;
  });
  const [a, b, c, d] = errors as [number, number, number, number];
  near(a + b, c + d, "all rows");
  assert.ok(Math.abs(a / c - 1) > 1e-4 && Math.abs(a / d - 1) > 1e-4, `the same groups: ${errors}`);
});

test("rows of one block come in another order each time", async () => {
  const rows = made({ train: 30, test: 3, hidden: 5 });
  const settings = training(rows, "topk", { ...still, batch: 1 });
  const errors = await trained(settings, async (trainer) => {
    const found: number[] = [];
    for (let i = 0; i < 60; i++) found.push(Number((await trainer.run(1)).mse.toPrecision(5)));
    return found;
  });
  assert.is(new Set(errors.slice(0, 30)).size, 30);
  assert.equal(errors.slice(0, 30).toSorted(), errors.slice(30).toSorted());
  assert.not.equal(errors.slice(0, 30), errors.slice(30));
});

test("held-out rows are drawn from everywhere, by the seed", async () => {
  const random = new TestRandom(9);
  const count = 40 * 64;
  const uses = Uint8Array.from({ length: count }, (_, row) => (row % 64 === 7 ? 2 : 1));
  const features = random.normals(2 * count);
  const pieces = [{ ...fileOf(features), type: "f32" as const, uses }];
  const drawn = (seed: number) => {
    const settings = training({ features, hidden: 2, uses }, "relu", {
      ...{ ...still, pieces, seed, features: 1, heldOut: 10, auxK: 1 },
    });
    return trained(settings, async (trainer) => {
      const state = await trainer.state();
      state.encoder_bias?.fill(100); // active in every row
      return trained({ ...settings, state }, async (one) => {
        assert.is((await one.evaluate()).rows, 10);
        const [found = []] = await one.strongest([0], 100);
        return found.map(({ row }) => row).toSorted((a, b) => a - b);
      });
    });
  };
  const [first, other] = [await drawn(1), await drawn(2)];
  for (const rows of [first, other]) {
    assert.is(new Set(rows).size, 10);
    assert.ok(rows.every((row) => uses[row] === 2));
    assert.ok((rows.at(-1) as number) > 20 * 64, `only the beginning: ${rows}`);
  }
  assert.not.equal(first, other);
});

test.run();
