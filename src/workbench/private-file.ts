import { rename, writeFile } from "node:fs/promises";

/** Writes a file that only the user may read; another process finds the old or the new text, never a part. */
export async function writePrivately(path: string, text: string): Promise<void> {
  await writeFile(`${path}.part`, text, { mode: 0o600 });
  await rename(`${path}.part`, path);
}
