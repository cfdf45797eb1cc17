import { relative } from "node:path";

/**
 * Writes to standard output and waits until it is taken. Whoever reads it may have seen enough, as `head` does;
 * that is no error.
 */
export function print(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.once("error", () => resolve());
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
