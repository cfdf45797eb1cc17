import promises, { rm } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/** While something runs, these replace node:fs/promises' functions, for all who import them. One at a time. */
export async function withFiles<T>(others: Partial<typeof promises>, run: () => Promise<T>): Promise<T> {
  const own = Object.fromEntries(
    (Object.keys(others) as (keyof typeof promises)[]).map((name) => [name, promises[name]]),
  );
  const take = (functions: object) => {
    Object.assign(promises, functions);
    syncBuiltinESMExports();
  };
  take(others);
  try {
    return await run();
  } finally {
    take(own);
  }
}

/** Replaces a function that examines a file: just before it examines this one, the file is removed. */
export function askingTooLate(gone: string, ask: (path: string) => Promise<unknown>) {
  return (async (path: string) => {
    if (path === gone) await rm(gone, { force: true });
    return ask(path);
  }) as never;
}
