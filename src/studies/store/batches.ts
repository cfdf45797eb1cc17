/** Packages (up to 1 MB each) that are read at a time. */
export const batchRows = 50;

/**
 * Batches of a query with the given limit, until one is not full.
 * @param read the rows after the last one of the batch before, which is undefined at first
 */
export async function* batches<Row>(
  read: (last: Row | undefined, limit: number) => Promise<Row[]>,
  limit = batchRows,
): AsyncGenerator<Row[]> {
  let last: Row | undefined;
  for (;;) {
    const found = await read(last, limit);
    if (found.length > 0) yield found;
    if (found.length < limit) return;
    last = found.at(-1);
  }
}
