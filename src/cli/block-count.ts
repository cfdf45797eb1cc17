import { open } from "node:fs/promises";

/** Metadata about the architecture stands before the vocabulary, well within so many bytes. */
const headBytes = 262_144;
/** Sizes of GGUF's scalar types by number: u8, i8, u16, i16, u32, i32, f32, bool, -, -, u64, i64, f64. */
const scalarBytes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const stringType = 8;
const arrayType = 9;

/**
 * How many blocks a GGUF file's model has, from the head of the file alone: nothing is loaded.
 * @returns undefined where the head does not tell
 */
export async function blockCount(path: string): Promise<number | undefined> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    return readBlockCount(buffer.subarray(0, bytesRead));
  } catch (error) {
    if (error instanceof RangeError) return undefined; // the head ended within a field
    throw error;
  } finally {
    await file.close();
  }
}

function readBlockCount(head: Buffer): number | undefined {
  let at = 0;
  const long = () => {
    at += 8;
    return Number(head.readBigUInt64LE(at - 8));
  };
  const word = () => {
    at += 4;
    return head.readUInt32LE(at - 4);
  };
  const text = () => {
    const length = long();
    at += length;
    if (at > head.length) throw new RangeError("The head ends here.");
    return head.toString("utf8", at - length, at);
  };
  const skip = (type: number) => {
    if (type === stringType) text();
    else if (type === arrayType) {
      const [entry, count] = [word(), long()];
      if (entry === stringType) for (let index = 0; index < count; index++) text();
      else at += count * (scalarBytes[entry] ?? head.length);
    } else at += scalarBytes[type] ?? head.length;
  };

  if (head.toString("latin1", 0, 4) !== "GGUF") return undefined;
  at = 16; // behind magic, version and the number of tensors
  for (let left = long(); left > 0; left--) {
    const [key, type] = [text(), word()];
    if (key.endsWith(".block_count")) return word();
    skip(type);
  }
  return undefined;
}
