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

/** Rows that are sums of `active` of `directions` random directions, plus noise: what a sparse autoencoder is for. */
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
