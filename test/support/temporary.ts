import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new folder that is removed when this process ends. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `tapline-${name}-`));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * A temporary folder for the files of one run, so that what they leave is seen and goes with it. Open to every user, as
 * a database may run as another; what tsx keeps compiled between runs is where it was.
 * @param folder of the run
 */
export function ownTemporaryFolder(folder: string): string {
  const own = join(folder, "t");
  mkdirSync(own);
  chmodSync(own, 0o1777);
  const cache = `tsx-${process.getuid?.() ?? ""}`;
  mkdirSync(join(tmpdir(), cache), { recursive: true });
  symlinkSync(join(tmpdir(), cache), join(own, cache), "junction");
  return own;
}

/** What tapline or its tests left in a temporary folder; what browsers and databases leave is not ours. */
export function leftBehind(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.startsWith("tapline-"));
}
