import promises, { rm } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/** While something runs, these stand in the place of node:fs/promises' functions, for all who import them. One at a time. */
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

/** Stands in the place of a function that asks about a file: just before it asks about this one, somebody takes it away. */
export function askingTooLate(gone: string, ask: (path: string) => Promise<unknown>) {
  return (async (path: string) => {
    if (path === gone) await rm(gone, { force: true });
    return ask(path);
  }) as never;
}
