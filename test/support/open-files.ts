/** Which files a program opens, and which of them it does not close: a service that forgets one has none left after a while. */
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

export interface OpenFiles {
  /** Paths, as they were opened. */
  readonly opened: string[];
  /** Those that are open still. */
  readonly left: string[];
  stop(): void;
}

/** Watches what is opened by promises from now on. One at a time. */
export function watchOpenFiles(): OpenFiles {
  const { open } = promises;
  const [opened, left]: [string[], string[]] = [[], []];
  const set = (implementation: typeof open) => {
    promises.open = implementation;
    syncBuiltinESMExports();
  };
  set(async (path, ...rest) => {
    const file = await open(path, ...rest);
    const close = file.close.bind(file);
    opened.push(String(path));
    left.push(String(path));
    file.close = () => {
      left.splice(left.indexOf(String(path)), 1);
      return close();
    };
    return file;
  });
  return { opened, left, stop: () => set(open) };
}
