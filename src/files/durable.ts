import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * Writes a file atomically and durably: after a crash its path holds either the old or the complete new content. Writes a
 * temporary file next to it, syncs, renames, and syncs the folder.
 * @param content whole, or in chunks
 */
export async function writeDurably(
  path: string,
  content: string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      // Node also accepts iterables, which its types omit.
      await file.writeFile(content as Uint8Array);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Removes temporary files left by killed processes. No other process may be writing the file. */
export async function removeTorn(path: string): Promise<void> {
  const [folder, start] = [dirname(path), `${basename(path)}.`];
  for (const name of await readdir(folder)) {
    const torn = name.startsWith(start) && /^[0-9a-f]{12}\.tmp$/.test(name.slice(start.length));
    if (torn) await rm(join(folder, name), { force: true });
  }
}

/** Creates a folder and its missing parents durably, accessible only to this user. */
export async function makeFolderDurably(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = path; ; made = dirname(made)) {
    await syncFolder(dirname(made)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EACCES") throw error; // writable but not readable, so it cannot be synced
    });
    if (made === first || made === dirname(made)) return;
  }
}

/** Makes renames and removals in a folder durable. Windows has no such call and needs none. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
