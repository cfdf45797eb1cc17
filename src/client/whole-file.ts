import { randomBytes } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";

/**
 * Writes a file atomically: an existing file stays until the new one is complete, and a failure leaves no partial file.
 * Devices and named pipes are written to directly.
 */
export async function writeWhole(
  destination: string,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const there = await stat(destination).catch(() => undefined);
  // For a folder, the rename below fails.
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
