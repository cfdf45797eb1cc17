import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** The path is a FIFO, socket, device or folder instead of a file. */
export class NotRegular extends Error {
  override name = "NotRegular";
  readonly code = "ENOTREG";

  constructor(path: string) {
    super(`${path} is not a regular file`);
  }
}

/**
 * Opens a regular file only: opening a FIFO would block until its other end is opened.
 * @throws NotRegular
 */
export async function openRegular(
  path: string,
  flags: number = constants.O_RDONLY,
  mode?: number,
): Promise<FileHandle> {
  // Windows has no such flag and no FIFOs among files.
  const file = await open(path, flags | (constants.O_NONBLOCK ?? 0), mode).catch((error) => {
    // A FIFO without readers opened for writing, or a socket.
    throw error.code === "ENXIO" ? new NotRegular(path) : error;
  });
  const found = await file.stat().catch(() => undefined);
  if (found?.isFile()) return file;
  await file.close();
  throw new NotRegular(path);
}

/** @throws NotRegular */
export async function readRegular(path: string): Promise<string> {
  const file = await openRegular(path);
  try {
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}
