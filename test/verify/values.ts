/** Where an array lies in the file of values. */
export interface Place {
  at: number;
  shape: number[];
}

/** Arrays collected into one file of float32, for a program in another language. */
export class Values {
  readonly #parts: Float32Array[] = [];
  #length = 0;

  add(values: Float32Array, shape: number[]): Place {
    const at = this.#length;
    this.#parts.push(values.slice());
    this.#length += values.length;
    return { at, shape };
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts.map((part) => Buffer.from(part.buffer)));
  }
}
