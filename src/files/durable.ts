import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * Writes a file so that, whatever dies and when, its path holds the old content or the new one whole: to a
 * temporary file beside it, synced, renamed, and the folder synced so that the rename itself lasts.
 * @param content whole, or in pieces
 */
export async function writeDurably(
  path: string,
  content: string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      // Node takes pieces, too, which its types do not say.
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

/** Removes what processes that were killed left of writing a file. Nobody else may be writing it. */
export async function removeTorn(path: string): Promise<void> {
  const [folder, start] = [dirname(path), `${basename(path)}.`];
  for (const name of await readdir(folder)) {
    const torn = name.startsWith(start) && /^[0-9a-f]{12}\.tmp$/.test(name.slice(start.length));
    if (torn) await rm(join(folder, name), { force: true });
  }
}

/** Makes a folder, with those above it that are not there, private to this account and so that it lasts. */
export async function makeFolderDurably(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = path; ; made = dirname(made)) {
    await syncFolder(dirname(made)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EACCES") throw error; // writable and not readable: nobody can sync it
    });
    if (made === first || made === dirname(made)) return;
  }
}

/** Makes renames and removals in a folder last. Windows has no such call and needs none. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
