import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";

/**
 * Writes a file that is there complete or not at all: what stood there before stays until the last byte is
 * written, and a failure leaves nothing behind.
 */
export async function writeWhole(
  destination: string,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const partial = `${destination}.${randomBytes(6).toString("hex")}.part`;
  try {
    const file = await open(partial, "wx");
    try {
      for await (const chunk of content) await file.writeFile(chunk);
    } finally {
      await file.close();
    }
    await rename(partial, destination);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
