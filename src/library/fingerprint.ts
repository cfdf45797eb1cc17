import { createHash } from "node:crypto";
import { open } from "node:fs/promises";

const headBytes = 1024 ** 2;
const blockBytes = 4096;
const blocks = 256;

/**
 * Identifies a model file without reading gigabytes: SHA-256 over its size, its first megabyte (header, vocabulary)
 * and 256 blocks spread evenly over the rest. Not a checksum of every byte.
 */
export async function modelFingerprint(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const hash = createHash("sha256").update(`${size}\n`);
    const read = async (start: number, length: number) => {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, start);
      hash.update(buffer.subarray(0, bytesRead));
    };
    await read(0, Math.min(headBytes, size));
    const step = Math.floor((size - headBytes) / blocks);
    for (let block = 0; step > blockBytes && block < blocks; block++) {
      await read(headBytes + block * step, blockBytes);
    }
    return hash.digest("hex");
  } finally {
    await file.close();
  }
}
