import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { UserError } from "../contracts/user-error.js";

/** One of the page's files. */
export interface Asset {
  type: string;
  bytes: Buffer;
}

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/** The built page: next to this file once it is compiled. */
const built = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/workbench/page/" : "./page/", import.meta.url),
);

/** The page's files by name, in memory. @throws UserError */
export async function readAssets(folder = built): Promise<ReadonlyMap<string, Asset>> {
  const names = await readdir(folder).catch(() => []);
  const served = names.filter((name) => types[extname(name)] !== undefined);
  if (!served.includes("index.html")) {
    throw new UserError("The workbench's page is not built; run `npm run build`.");
  }
  return new Map(
    await Promise.all(
      served.map(async (name): Promise<[string, Asset]> => {
        const type = types[extname(name)] as string;
        return [name, { type, bytes: await readFile(join(folder, name)) }];
      }),
    ),
  );
}
