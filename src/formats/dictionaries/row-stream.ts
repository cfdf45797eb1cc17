import { FormatError } from "../format-error.js";

/** A matrix that may be larger than memory: pieces of whole rows in order, from the file each time. */
export interface RowStream {
  pieces(): AsyncIterable<Float32Array>;
}

/** Values of a piece: 32 MB. */
const pieceValues = 8 * 1024 ** 2;

/**
 * A stream of an array's rows.
 * @param width values per row
 * @param rows reads the rows from the first index up to, but not including, the second
 * @param most values of a piece; a row is never divided
 */
export function rowStream(
  count: number,
  width: number,
  rows: (from: number, end: number) => Promise<Float32Array>,
  most = pieceValues,
): RowStream {
  const together = Math.max(1, Math.floor(most / width));
  return {
    async *pieces() {
      for (let from = 0; from < count; from += together) yield rows(from, Math.min(count, from + together));
    },
  };
}

/** The same stream, each piece changed or checked. */
export function mapped({ pieces }: RowStream, of: (piece: Float32Array) => Float32Array): RowStream {
  return {
    async *pieces() {
      for await (const piece of pieces()) yield of(piece);
    },
  };
}

/** The same stream, which throws if a number is not finite. @throws FormatError while it is read */
export function finite(stream: RowStream, what: string): RowStream {
  return mapped(stream, (piece) => {
    if (!allFinite(piece)) throw notFinite(what);
    return piece;
  });
}

export function allFinite(numbers: Float32Array): boolean {
  for (let i = 0; i < numbers.length; i++) if (!Number.isFinite(numbers[i])) return false;
  return true;
}

export function notFinite(what: string): FormatError {
  return new FormatError(`The dictionary's ${what} contains numbers that are not finite.`);
}
