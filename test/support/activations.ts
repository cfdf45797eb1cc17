import { TestRandom } from "./random.js";

/** A made-up data set in the shape of captured activations. */
export interface MadeActivations {
  features: Float32Array;
  labels: Uint8Array;
  train: Uint8Array;
  count: number;
  hidden: number;
}

/**
 * Two classes that differ by `separation` along one random direction, in dimensions of different scale and offset.
 */
export function twoClasses(
  options: { train: number; test: number; hidden: number; separation: number },
  seed = 1,
): MadeActivations {
  const random = new TestRandom(seed);
  const { hidden } = options;
  const count = options.train + options.test;
  const direction = random.normals(hidden);
  const labels = Uint8Array.from({ length: count }, () => random.below(2));
  const features = new Float32Array(count * hidden);
  for (let row = 0; row < count; row++) {
    const shift = (labels[row] === 1 ? 0.5 : -0.5) * options.separation;
    for (let k = 0; k < hidden; k++) {
      features[row * hidden + k] = (random.normal() + shift * direction[k]!) * (1 + (k % 7)) + (k % 11) - 5;
    }
  }
  const train = Uint8Array.from({ length: count }, (_, row) => (row < options.train ? 1 : 0));
  return { features, labels, train, count, hidden };
}

/**
 * Two classes in activations shaped like a model's block outputs: strongly correlated dimensions, whose covariance
 * has eigenvalues 1/1, 1/2, 1/3, ... in a randomly rotated basis, and classes that differ along 16 of its 64
 * strongest directions by `separation` standard deviations each.
 */
export function correlatedClasses(
  options: { train: number; test: number; hidden: number; separation: number },
  seed = 1,
): MadeActivations {
  const random = new TestRandom(seed);
  const { hidden } = options;
  const count = options.train + options.test;
  const labels = Uint8Array.from({ length: count }, () => random.below(2));
  const shift = new Float64Array(hidden);
  for (let k = 1; k < Math.min(64, hidden); k += 4) {
    shift[k] = (random.below(2) - 0.5) * options.separation;
  }
  const features = new Float32Array(count * hidden);
  for (let row = 0; row < count; row++) {
    const side = labels[row] === 1 ? 1 : -1;
    for (let k = 0; k < hidden; k++) {
      features[row * hidden + k] = (random.normal() + side * shift[k]!) / Math.sqrt(k + 1);
    }
  }
  rotate(features, hidden, random);
  const train = Uint8Array.from({ length: count }, (_, row) => (row < options.train ? 1 : 0));
  return { features, labels, train, count, hidden };
}

/**
 * Rows of texts: each text has a center, which deviates by `alike` from the others' in the first `own` dimensions (all
 * by default), around which its rows lie; centres of the two classes are `separation` apart along one direction.
 * Texts have from half of `rows` to one and a half times as many.
 */
export function rowsOfTexts(
  options: {
    train: number;
    test: number;
    rows: number;
    hidden: number;
    alike: number;
    separation: number;
    own?: number;
  },
  seed = 1,
): MadeActivations & { groups: Int32Array } {
  const random = new TestRandom(seed);
  const { hidden, rows, train, test } = options;
  const direction = random.normals(hidden);
  const features: number[] = [];
  const [labels, sides, groups]: [number[], number[], number[]] = [[], [], []];
  for (let text = 0; text < train + test; text++) {
    const label = text % 2;
    const shift = (label - 0.5) * options.separation;
    const apart = (k: number) => (k < (options.own ?? hidden) ? options.alike * random.normal() : 0);
    const centre = direction.map((value, k) => shift * value + apart(k));
    const count = Math.ceil(rows / 2) + random.below(rows + 1);
    for (let row = 0; row < count; row++) {
      for (const value of centre) features.push(value + random.normal());
      labels.push(label);
      sides.push(text < train ? 1 : 0);
      groups.push(text);
    }
  }
  return {
    features: Float32Array.from(features),
    labels: Uint8Array.from(labels),
    train: Uint8Array.from(sides),
    groups: Int32Array.from(groups),
    ...{ count: groups.length, hidden },
  };
}

/** Turns all rows by one random rotation: rounds of rotations in randomly paired dimensions, enough to mix all. */
function rotate(features: Float32Array, hidden: number, random: TestRandom): void {
  const order = Array.from({ length: hidden }, (_, k) => k);
  for (let round = 0; round < 3 * Math.ceil(Math.log2(hidden)); round++) {
    for (let k = hidden - 1; k > 0; k--) {
      const other = random.below(k + 1);
      [order[k], order[other]] = [order[other]!, order[k]!];
    }
    for (let pair = 0; pair + 1 < hidden; pair += 2) {
      const [i, j] = [order[pair]!, order[pair + 1]!];
      const angle = 2 * Math.PI * random.uniform();
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      for (let row = 0; row < features.length; row += hidden) {
        const [a, b] = [features[row + i]!, features[row + j]!];
        features[row + i] = a * cos - b * sin;
        features[row + j] = a * sin + b * cos;
      }
    }
  }
}

/** Rows that are sums of `active` of `directions` random directions, plus noise: typical data for a sparse autoencoder. */
export function sparseSums(
  options: { train: number; test: number; hidden: number; directions: number; active: number },
  seed = 1,
): MadeActivations {
  const random = new TestRandom(seed);
  const { hidden } = options;
  const count = options.train + options.test;
  const dictionary = Array.from({ length: options.directions }, () => random.normals(hidden));
  const features = random.normals(count * hidden).map((noise) => 0.3 * noise);
  for (let row = 0; row < count; row++) {
    for (let i = 0; i < options.active; i++) {
      const direction = dictionary[random.below(options.directions)]!;
      const strength = 1 + random.uniform();
      for (let k = 0; k < hidden; k++) features[row * hidden + k]! += strength * direction[k]!;
    }
  }
  const train = Uint8Array.from({ length: count }, (_, row) => (row < options.train ? 1 : 0));
  return { features, labels: new Uint8Array(count), train, count, hidden };
}
