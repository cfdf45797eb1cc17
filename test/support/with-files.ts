import promises from "node:fs/promises";
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
