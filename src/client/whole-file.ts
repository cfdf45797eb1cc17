import { randomBytes } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";

/**
 * Writes a file that is there complete or not at all: what stood there before stays until the last byte is
 * written, and a failure leaves nothing behind. What is no file (a device, a named pipe) is written to as it is.
 */
export async function writeWhole(
  destination: string,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const there = await stat(destination).catch(() => undefined);
  // A folder is refused by the renaming.
  if (there !== undefined && !there.isFile() && !there.isDirectory()) return pour(destination, content);
  const partial = `${destination}.${randomBytes(6).toString("hex")}.part`;
  try {
    await pour(partial, content, "wx");
    await rename(partial, destination);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

async function pour(
  path: string,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  flags = "w",
): Promise<void> {
  const file = await open(path, flags);
  try {
    for await (const chunk of content) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
}
