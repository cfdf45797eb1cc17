import { UserError } from "../../contracts/user-error.js";

/** Share of the mean square added to the diagonal, so that directions without data stay small. */
const ridge = 1e-4;

/**
 * Fits an affine map between vectors of the same width by least squares, with a small ridge on all but the constant:
 * normal equations in float64, solved by Cholesky.
 */
export class LeastSquares {
  /** Gram matrix of rows extended by a 1: [size, size], lower triangle. */
  readonly #gram: Float64Array;
  /** [size, width] */
  readonly #cross: Float64Array;
  readonly #extended: Float64Array;

  constructor(private readonly width: number) {
    const size = width + 1;
    this.#gram = new Float64Array(size * size);
    this.#cross = new Float64Array(size * width);
    this.#extended = new Float64Array(size).fill(1);
  }

  add(row: Float64Array, goal: Float64Array): void {
    const [width, size] = [this.width, this.width + 1];
    const [x, gram, cross] = [this.#extended, this.#gram, this.#cross];
    x.set(row);
    for (let i = 0; i < size; i++) {
      const one = x[i] as number;
      if (one === 0) continue;
      const [at, to] = [i * size, i * width];
      for (let j = 0; j <= i; j++) gram[at + j] = (gram[at + j] as number) + one * (x[j] as number);
      for (let j = 0; j < width; j++) cross[to + j] = (cross[to + j] as number) + one * (goal[j] as number);
    }
  }

  /**
   * @returns the map: matrix [width, width], one row per output, and bias. @throws UserError if rows are not finite
   */
  solve(): { matrix: Float32Array; bias: Float32Array } {
    const [width, size] = [this.width, this.width + 1];
    const factor = this.#gram;
    let trace = 0;
    for (let i = 0; i < width; i++) trace += factor[i * size + i] as number;
    for (let i = 0; i < width; i++) {
      factor[i * size + i] = (factor[i * size + i] as number) + (ridge * trace) / width;
    }
    for (let i = 0; i < size; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = factor[i * size + j] as number;
        for (let k = 0; k < j; k++) {
          sum -= (factor[i * size + k] as number) * (factor[j * size + k] as number);
        }
        if (i === j && !(sum > 0)) throw new UserError("The rows are not finite, or all are zero.");
        factor[i * size + j] = i === j ? Math.sqrt(sum) : sum / (factor[j * size + j] as number);
      }
    }
    const found = this.#cross;
    for (let i = 0; i < size; i++) this.#eliminate(found, i, 0, i, (k) => factor[i * size + k] as number);
    for (let i = size - 1; i >= 0; i--) {
      this.#eliminate(found, i, i + 1, size, (k) => factor[k * size + i] as number);
    }
    const matrix = new Float32Array(width * width);
    const bias = Float32Array.from(found.subarray(width * width));
    for (let i = 0; i < width; i++) {
      for (let j = 0; j < width; j++) matrix[j * width + i] = found[i * width + j] as number;
    }
    return { matrix, bias };
  }

  /** Subtracts the weighted rows `from` to `end` from row i, and divides by the diagonal. */
  #eliminate(rows: Float64Array, i: number, from: number, end: number, weight: (k: number) => number): void {
    const width = this.width;
    for (let k = from; k < end; k++) {
      const one = weight(k);
      for (let j = 0; j < width; j++) {
        rows[i * width + j] = (rows[i * width + j] as number) - one * (rows[k * width + j] as number);
      }
    }
    const diagonal = this.#gram[i * (width + 1) + i] as number;
    for (let j = 0; j < width; j++) rows[i * width + j] = (rows[i * width + j] as number) / diagonal;
  }
}
