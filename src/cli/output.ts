import { relative } from "node:path";
import { UserError } from "../contracts/user-error.js";

/**
 * Whoever reads what this program writes may have seen enough, as `head` does. That is no error of the program:
 * what it has begun it does to the end.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.off("error", unread).on("error", unread);
  }
}

const unread = () => {};

/** Writes to standard output and waits until it is taken, or nobody reads it any more. */
export function print(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(text.endsWith("\n") ? text : `${text}\n`, () => resolve());
  });
}

export function printJson(value: unknown): Promise<void> {
  return print(JSON.stringify(value, null, 2));
}

/** A path as short as it can be said from where the user stands. */
export function shortPath(path: string, folder = process.cwd()): string {
  const near = relative(folder, path);
  return near.startsWith("..") || near === "" ? path : near;
}

/** Writes a file that was asked for with --out, as a whole or not at all. @throws UserError */
export async function writeOut(path: string, bytes: Uint8Array): Promise<void> {
  const { writeWhole } = await import("../client/whole-file.js");
  try {
    await writeWhole(path, [bytes]);
  } catch (error) {
    throw new UserError(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}); see --out.`);
  }
}
